"""What was really said, kept by those who said it, and in which ways a log differs from that."""

import itertools
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bots.sandbox.discord.model import Channel
from bots.sandbox.telegram.chats import Chat
from core.ids import SessionId

Json = dict[str, Any]

WAKES_EVERY = 4.0
"""Seconds between messages that may wake, in one chat: a session's 21st turn in a minute would have to wait."""

_WORD = re.compile(r"\bw\d+v\d+\b")


def word(number: int, version: int) -> str:
    """What stands in version n of a message, and nowhere else."""
    return f"w{number}v{version}"


@dataclass(slots=True, eq=False)
class Said:
    """A message: its versions, from the first; ``""`` has no text. ``file`` are the bytes that came with it.

    ``all_told``: the platform keeps every version, and the retraction, for us until we have them; else only what it
    shows in the end is sure. ``gone``: it was taken back. ``number`` is that of its `word`.
    """

    session: SessionId
    id: str
    versions: list[str]
    all_told: bool
    file: bytes | None = None
    gone: bool = False
    wakes: bool = False
    number: int = 0


@dataclass(slots=True)
class Book:
    """Everything that was said, by session and message id, in order of the ids."""

    said: dict[SessionId, dict[str, Said]] = field(default_factory=dict[SessionId, dict[str, Said]])
    places: dict[SessionId, Chat | Channel] = field(default_factory=dict[SessionId, Chat | Channel])
    woken: dict[SessionId, float] = field(default_factory=dict[SessionId, float])
    words: int = 0

    def next_word(self) -> int:
        self.words += 1
        return self.words

    def place(self, session: SessionId, place: Chat | Channel) -> None:
        """Where a session's messages are."""
        self.places[session] = place

    def may_wake(self, session: SessionId) -> bool:
        """Whether one more message there may wake; if so it is noted."""
        now = time.monotonic()
        if now < self.woken.get(session, -WAKES_EVERY) + WAKES_EVERY:
            return False
        self.woken[session] = now
        return True

    def write(self, said: Said) -> Said:
        self.said.setdefault(said.session, {})[said.id] = said
        return said

    def differences(self, data: Path) -> Iterator[str]:
        """In which ways the logs of a data folder differ from what was said."""
        for session, messages in self.said.items():
            for difference in _differences(messages, lines_of(data, session), data / "runtimes" / session):
                yield f"{session}: {difference}"


def lines_of(data: Path, session: SessionId) -> list[Json]:
    """The whole lines of a log."""
    path = data / "runtimes" / session / "events.jsonl"
    whole = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in whole]


def facts(lines: list[Json], kind: str) -> Iterator[Json]:
    """The payloads of one kind of message."""
    for line in lines:
        if line["type"] == "message" and line["data"].get("type") == kind:
            yield line["data"]["data"]


def _differences(messages: dict[str, Said], lines: list[Json], folder: Path) -> Iterator[str]:
    logged: dict[str, list[Json]] = {}
    for fact in facts(lines, "ishiki.message.created"):
        logged.setdefault(fact["messageId"], []).append(fact)
    deleted = [fact["messageId"] for fact in facts(lines, "ishiki.message.deleted")]
    attached = {fact["messageId"]: fact for fact in facts(lines, "ishiki.attachment")}
    for unknown in {*logged, *deleted} - messages.keys():
        yield f"{unknown} was never said"
    # One that was told, and was gone before we asked for what came before it, stands where it can.
    numbers = [int(message) for message in logged if message not in deleted]
    if numbers != sorted(numbers):
        yield f"not in message order: {[b for a, b in itertools.pairwise(numbers) if b < a]}"
    for said in messages.values():
        yield from (f"{said.id} {problem}" for problem in _problems(said, logged.get(said.id, []), deleted))
        if said.file is not None and said.id in logged and said.id not in deleted:
            yield from (f"{said.id} {problem}" for problem in _file_problems(said, attached, folder))


def _problems(said: Said, logged: list[Json], deleted: list[str]) -> Iterator[str]:
    """What is wrong with one message, ``logged`` in file order."""
    if not logged and (said.all_told or not said.gone):
        yield "is missing"
    times = deleted.count(said.id)
    if times > 1 or (times and not said.gone) or (not times and said.gone and (logged or said.all_told)):
        yield f"is deleted {times} times, but gone is {said.gone}"
    by_revision = {fact.get("edited", {}).get("revision", 0): fact for fact in logged}
    revisions = [fact["edited"]["revision"] for fact in logged if "edited" in fact]
    if len(by_revision) != len(logged) or revisions != list(range(1, len(revisions) + 1)):
        yield f"has revisions {[fact.get('edited', {}).get('revision', 0) for fact in logged]}"
    words = [(_WORD.findall(by_revision[revision]["content"]) or [""])[-1] for revision in sorted(by_revision)]
    places = [said.versions.index(one) if one in said.versions else -1 for one in words]
    if -1 in places or places != sorted(set(places)):
        yield f"reads {words}, not {said.versions}"
    elif said.all_told and words != said.versions:
        yield f"reads {words}, not all of {said.versions}"
    elif words and not said.gone and words[-1] != said.versions[-1]:
        yield f"reads {words[-1]} in the end, not {said.versions[-1]}"


def _file_problems(said: Said, attached: dict[str, Json], folder: Path) -> Iterator[str]:
    if said.id not in attached:
        yield "has no attachment line"
        return
    for item in attached[said.id]["items"]:
        blob = folder / "resources" / "assets" / item["url"].removeprefix("asset://")
        if not blob.exists():
            yield "has a file that was not fetched"
        elif blob.read_bytes() != said.file:
            yield "has a file of other bytes"
