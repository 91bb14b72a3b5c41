"""The grammar of ``action.log`` (sessions.md 1.3). Pure: a line in, a line out.

::

    [2026-11-01 19:04:09.900][3fa91c0e][user][] is the film on Friday?

Local time, the window that wrote it, the kind, the run that it belongs to; then the text, in which 0x1F stands for a
line feed. Lines from before there was a fourth bracket have three.
"""

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias, cast, get_args

Kind = Literal[
    "user", "steer", "edit", "delete", "assistant", "thinking", "tool_call", "tool_result", "tool_skipped",
    "tool_confirm", "pending", "decision", "todo", "error", "edited_files", "done", "canceled", "skill_result",
    "agent_result",
]  # fmt: skip
KINDS: Final[frozenset[str]] = frozenset(get_args(Kind))
NO_WINDOW: Final = "-" * 8
MOST_REPLAYED: Final = 512

_UUID: Final = "-".join(f"[0-9A-Fa-f]{{{digits}}}" for digits in (8, 4, 4, 4, 12))
_LINE: Final = re.compile(
    r"\[(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3})\]\[(?P<window>[0-9a-f]{8}|-{8})\]\[(?P<kind>[a-z_]+)\]"
    rf"(?:\[(?P<task>(?:{_UUID})?)\])?(?: (?P<content>.*)|(?P<glued>.*))"
)
_BREAK: Final = re.compile("\r\n?|\n")


class Line(NamedTuple):
    """``at`` is local time as it stands in the file; ``task`` None where there is no fourth bracket."""

    at: str
    window: str
    kind: Kind
    task: str | None
    content: str

    def __str__(self) -> str:
        task = "" if self.task is None else f"[{self.task}]"
        return f"[{self.at}][{self.window}][{self.kind}]{task} {_BREAK.sub(chr(0x1F), self.content)}"


class Input(NamedTuple):
    text: str


class Said(NamedTuple):
    text: str


class Thought(NamedTuple):
    text: str


class Todo(NamedTuple):
    items: list[object]


class Called(NamedTuple):
    """``skipped``: it was not run."""

    name: str
    rest: str
    skipped: bool


class Result(NamedTuple):
    tool: str
    failed: bool


class Failed(NamedTuple):
    tool: str | None
    message: str


class Ended(NamedTuple):
    model: str | None
    figures: dict[str, str]
    canceled: bool


class Other(NamedTuple):
    """A kind that a conversation is not made of."""

    kind: Kind
    content: str


Event: TypeAlias = Input | Said | Thought | Todo | Called | Result | Failed | Ended | Other


class Replayed(NamedTuple):
    """Each line with what it tells; ``dropped`` counts what is no line of ours."""

    events: list[tuple[Line, Event]]
    dropped: int


def stamp(at: int) -> str:
    """A moment in Unix ms as a line bears it."""
    seconds, thousandths = divmod(at, 1000)
    return f"{_local(seconds)}.{thousandths:03d}"


def read(text: str) -> Line | None:
    """One line without its line feed; None where it is none, or of a kind that is not known."""
    found = _LINE.fullmatch(text)
    if found is None or found["kind"] not in KINDS:
        return None
    content = found["glued"] if found["content"] is None else found["content"]
    kind = cast("Kind", found["kind"])
    return Line(found["at"], found["window"], kind, found["task"], content.replace("\x1f", "\n"))


def replay(lines: Iterable[str], *, most: int = MOST_REPLAYED) -> Replayed:
    """What the last of these lines tell, in their order."""
    events: list[tuple[Line, Event]] = []
    newest = list(lines)[-most:]
    for text in newest:
        line = read(text)
        event = None if line is None else event_of(line)
        if line is not None and event is not None:
            events.append((line, event))
    return Replayed(events, len(newest) - len(events))


def event_of(line: Line) -> Event | None:  # noqa: PLR0911 - one for each kind
    """What a line tells; None where its content is not of its kind."""
    first, _, rest = line.content.partition(" ")
    match line.kind:
        case "user" | "steer":
            return Input(line.content)
        case "assistant":
            return Said(line.content)
        case "thinking":
            return Thought(line.content)
        case "todo":
            return _todo(line.content)
        case "tool_call" | "tool_skipped":
            return Called(first, rest, skipped=line.kind == "tool_skipped")
        case "tool_result":
            return Result(first, failed=rest.startswith("err"))
        case "error":
            return Failed(None if first == "-" else first, rest)
        case "done" | "canceled":
            return _ended(line)
        case _:
            return Other(line.kind, line.content)


def _todo(content: str) -> Todo | None:
    try:
        items: object = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return Todo(cast("list[object]", items)) if isinstance(items, list) else None


def _ended(line: Line) -> Ended:
    tokens = line.content.split()
    model = next((token for token in tokens if "=" not in token and not token.startswith("(")), None)
    figures = dict(token.split("=", 1) for token in tokens if "=" in token)
    return Ended(model, figures, canceled=line.kind == "canceled")


@lru_cache(maxsize=64)
def _local(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
