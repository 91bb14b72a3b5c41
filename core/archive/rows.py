"""Which rows a line of the log makes. Depends on the log alone, so that a rebuild gives the same.

A line of a foreign shape makes none, and stops nobody.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple, cast

import msgspec

from core.archive.turn import Turn, cleaned, turn_that_ended
from core.codec import parts_of
from core.content import plain_text
from core.entries import (
    AnyEntry,
    AssistantMessage,
    MessageCreated,
    MessageDeleted,
    TextPart,
    ToolCallPart,
    ToolMessage,
    ToolResultPart,
    TurnAborted,
    TurnDone,
    TurnFailed,
    UserMessage,
    fact_of,
)
from core.errors import InvalidEntry
from core.ids import MessageId, SessionId
from core.sessions.reading import Reading, Recorded

LATEST_MS: Final = (1 << 42) - 1
MOST_BACK: Final = 64
"""Lines between a call and its result; ours stand side by side."""


class Told(NamedTuple):
    """Something that was said: a row of ``messages``. ``sent_at`` in ms, as the platform has it."""

    entry_id: str
    message_id: str
    revision: int
    sent_at: int
    role: str
    content: str
    sender: str


class Used(NamedTuple):
    """What a model's reply cost: a row of ``usage``. ``at`` in seconds."""

    at: int
    model: str
    input: int
    output: int
    write: int
    hit: int
    elapsed_ms: int
    tool_calls: str


class Batch(msgspec.Struct):
    """What some lines of one session, in file order, add to the tables. Times in ms; 0: none."""

    session: SessionId
    told: list[Told | MessageId] = []
    """Messages, and the ids of those taken back, in the order of the log."""
    used: list[Used] = []
    turns: list[Turn] = []
    first_at: int = 0
    last_at: int = 0


def rows_of(session: SessionId, lines: Iterable[Recorded], reading: Reading) -> Batch:
    """What these lines make. ``reading`` is asked for earlier ones. Blocks."""
    batch = Batch(session)
    for recorded in lines:
        at = _in_range(recorded.entry.timestamp)
        batch.first_at = min(batch.first_at, at) if batch.first_at else at
        batch.last_at = max(batch.last_at, at)
        try:
            _add(batch, recorded, reading)
        except (InvalidEntry, msgspec.MsgspecError, UnicodeError, TypeError, ValueError):
            continue  # somebody else's idea of a call or a cost: it stands in the log
    return batch


def _add(batch: Batch, recorded: Recorded, reading: Reading) -> None:
    entry = recorded.entry
    match entry.data:
        case UserMessage() as message:
            batch.told.append(
                Told(entry.id, "", 0, _in_range(message.timestamp), "user", cleaned(_text_of(message)), "")
            )
        case AssistantMessage() as message if message.usage:
            batch.used.append(_used(message, entry.timestamp))
        case ToolMessage() as message if b'"send_message"' in bytes(message.content):
            batch.told += _spoken(recorded, message, reading)
        case TurnDone() | TurnFailed() | TurnAborted():
            batch.turns.append(turn_that_ended(recorded, reading))
        case _:
            fact = fact_of(entry)
            if isinstance(fact, MessageCreated):
                batch.told.append(_said(entry, fact))
            elif isinstance(fact, MessageDeleted):
                batch.told.append(MessageId(cleaned(fact.message_id)))


def _said(entry: AnyEntry, fact: MessageCreated) -> Told:
    content = fact.content
    if "<" in content or "&" in content:
        content = plain_text(content)
    return Told(
        cleaned(entry.id),
        cleaned(fact.message_id),
        _count(fact.edited.revision) if fact.edited is not None else 0,
        _in_range(fact.timestamp),
        "user",
        cleaned(content),
        cleaned(fact.user.name or fact.user.id),
    )


def _text_of(message: UserMessage | AssistantMessage) -> str:
    return "\n".join(part.text for part in parts_of(message.content) if isinstance(part, TextPart))


class _Outcome(msgspec.Struct, rename="camel"):
    """The output of ``send_message`` (log-format 14.2)."""

    ok: bool
    ids: list[str] = []
    sent: list[str] = []
    failed_at: int = 0


class _Speech(msgspec.Struct):
    messages: list[str]
    mode: str = "raw"


def _spoken(recorded: Recorded, message: ToolMessage, reading: Reading) -> Iterator[Told]:
    """The texts that stand in the chat. One in several parts bears the first one's number."""
    results = [
        part
        for part in parts_of(message.content)
        if isinstance(part, ToolResultPart) and part.tool_name == "send_message" and part.output.type == "json"
    ]
    calls = _calls_before(recorded, {result.tool_call_id for result in results}, reading)
    number = 0
    for result in results:
        call = calls.get(result.tool_call_id)
        if call is None:
            continue
        outcome = msgspec.json.decode(result.output.value, type=_Outcome)
        speech = msgspec.json.decode(call.input, type=_Speech)
        texts = speech.messages if outcome.ok else speech.messages[: max(outcome.failed_at, 0)]
        ids = outcome.ids if outcome.ok else outcome.sent
        for index, text in enumerate(texts):
            shown = plain_text(text) if speech.mode == "element" else text
            known = ids[index] if len(ids) == len(texts) or (index == 0 and ids) else ""
            entry = f"{recorded.entry.id}#{number}" if number else recorded.entry.id
            at = _in_range(message.timestamp)
            yield Told(cleaned(entry), cleaned(known), 0, at, "assistant", cleaned(shown), "")
            number += 1


def _calls_before(recorded: Recorded, wanted: set[str], reading: Reading) -> dict[str, ToolCallPart]:
    found: dict[str, ToolCallPart] = {}
    for earlier in islice(reading.read_back(recorded.start), MOST_BACK):
        if isinstance(earlier.entry.data, AssistantMessage):
            for part in parts_of(earlier.entry.data.content):
                if isinstance(part, ToolCallPart) and part.tool_call_id in wanted:
                    found.setdefault(part.tool_call_id, part)
        if wanted <= found.keys():
            break
    return found


def _used(message: AssistantMessage, at: int) -> Used:
    """Numbers that are absent, or none, count as nothing. A provider's own counts are not looked at."""
    usage = _members(msgspec.json.decode(message.usage))
    details = _members(usage.get("inputTokenDetails"))
    ours = _members(_members(msgspec.json.decode(message.provider_options or b"{}")).get("ishiki"))
    calls = [part.tool_call_id for part in parts_of(message.content) if isinstance(part, ToolCallPart)]
    model = ours.get("model")
    return Used(
        _in_range(at) // 1000,
        cleaned(model.replace(":", "@", 1)) if isinstance(model, str) else "",
        _count(usage.get("inputTokens")),
        _count(usage.get("outputTokens")),
        _count(details.get("cacheWriteTokens")),
        _count(details.get("cacheReadTokens")),
        _count(ours.get("elapsedMs")),
        msgspec.json.encode([cleaned(call) for call in calls]).decode(),
    )


def _members(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _count(value: object) -> int:
    return min(max(value, 0), 1 << 53) if isinstance(value, int) else 0


def _in_range(ms: int) -> int:
    return min(max(ms, 0), LATEST_MS)
