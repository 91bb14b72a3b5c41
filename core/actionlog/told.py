"""What the log and the confirmations come to in ``action.log``. Pure.

What stands in the log holds no platform URL or token; of a tool's arguments the values of members that are named like
secrets are left out as well.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final, cast

import msgspec

from core.actionlog.line import Kind, Line, stamp
from core.codec import parts_of
from core.confirmations.record import Record
from core.content import plain_text
from core.entries import (
    AnyEntry,
    AssistantMessage,
    MessageCreated,
    MessageDeleted,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolMessage,
    ToolResultPart,
    TurnAborted,
    TurnDone,
    TurnFailed,
    TurnStart,
    UserMessage,
    fact_of,
)
from core.errors import InvalidEntry

MOST_ARGUMENTS: Final = 1024
"""Bytes."""
TELLING: Final = (UserMessage, AssistantMessage, ToolMessage, TurnStart, TurnDone, TurnFailed, TurnAborted)
"""What is told of beside messages and retractions. A start has no line; when it was is needed at the end."""
_LABELS: Final = {"send_message": "Send"}
_SECRET: Final = re.compile(
    r'("[^"\\]*(?:token|secret|passw|api_?key|authorization|credential)[^"\\]*":)(?:"(?:[^"\\]|\\.)*"|[^,}\]]+)',
    re.IGNORECASE,
)


class Told:
    """Turns entries of one session into lines, in file order. Remembers when the turns began that have not ended."""

    def __init__(self, window: str) -> None:
        self._window = window
        self._began: dict[str, int] = {}

    def lines(self, entry: AnyEntry) -> list[Line]:
        """The lines of one entry: none for most kinds."""
        at, turn = stamp(entry.timestamp), entry.turn_id or ""
        return [Line(at, self._window, kind, turn, content) for kind, content in self._told(entry)]

    def _told(self, entry: AnyEntry) -> Iterator[tuple[Kind, str]]:
        match entry.data:
            case UserMessage():
                yield _input(entry), _text_of(entry.data)
            case AssistantMessage():
                yield from _step(entry.data)
            case ToolMessage():
                yield from _results(entry.data)
            case TurnStart():
                self._began[entry.data.turn_id] = entry.timestamp
            case TurnDone():
                yield "done", _figures(entry.data, self._lasted(entry))
            case TurnAborted():
                yield "canceled", self._lasted(entry)
            case TurnFailed():
                self._lasted(entry)
                yield "error", f"- {entry.data.error.message if entry.data.error else 'the turn failed'}"
            case _:
                yield from _said(entry)

    def _lasted(self, entry: AnyEntry) -> str:
        began = self._began.pop(entry.turn_id or "", None)
        return "" if began is None else f"dur={duration(entry.timestamp - began)}"


def told_of(record: Record, window: str) -> list[Line]:
    """The lines of a confirmation or question as it stands: that it waits, and what was decided."""
    task = record.turn_id or record.task_hash
    asked = stamp(record.created_at)
    lines: list[Line] = []
    if record.tool:
        lines.append(Line(asked, window, "tool_confirm", task, record.tool))
    lines.append(Line(asked, window, "pending", task, record.task_hash))
    if record.decided_at is not None:
        by = f"{record.by.platform}:{record.by.id}" if record.by else "-"
        decision = f"{record.task_hash} {record.status} {record.choice or '-'} {by}"
        lines.append(Line(stamp(record.decided_at), window, "decision", task, decision))
    return lines


def duration(milliseconds: int) -> str:
    """As ``1m2.5s``."""
    minutes, rest = divmod(max(milliseconds, 0), 60_000)
    seconds = f"{rest / 1000:.3f}".rstrip("0").rstrip(".")
    return f"{minutes}m{seconds}s" if minutes else f"{seconds}s"


def _input(entry: AnyEntry) -> Kind:
    return "user" if entry.turn_id is None else "steer"


def _said(entry: AnyEntry) -> Iterator[tuple[Kind, str]]:
    fact = fact_of(entry)
    if isinstance(fact, MessageDeleted):
        yield "delete", fact.message_id
    elif isinstance(fact, MessageCreated):
        text = plain_text(fact.content)
        if fact.edited is not None:
            yield "edit", f"{fact.message_id} {text}"
        else:
            yield _input(entry), text


def _text_of(message: UserMessage) -> str:
    return "\n".join(part.text for part in _parts(message) if isinstance(part, TextPart))


def _parts(message: UserMessage | AssistantMessage | ToolMessage) -> Sequence[object]:
    """None where the content is neither text nor a list."""
    try:
        return parts_of(message.content)
    except InvalidEntry:
        return ()


def _step(message: AssistantMessage) -> Iterator[tuple[Kind, str]]:
    for part in _parts(message):
        if isinstance(part, TextPart) and part.text:
            yield "assistant", part.text
        elif isinstance(part, ReasoningPart) and part.text:
            yield "thinking", part.text
        elif isinstance(part, ToolCallPart):
            yield "tool_call", f"{_label(part.tool_name)}({_arguments(part)})"


def _results(message: ToolMessage) -> Iterator[tuple[Kind, str]]:
    for part in _parts(message):
        if not isinstance(part, ToolResultPart):
            continue
        tool = _word(part.tool_name)
        if part.output.type == "execution-denied":
            yield "tool_skipped", tool
        else:
            yield "tool_result", f"{tool} {'err' if part.output.failed or _says_no(part) else 'ok'}"


def _says_no(part: ToolResultPart) -> bool:
    """A send that failed says so in what it returns (contract section 3)."""
    if part.tool_name != "send_message" or part.output.type != "json":
        return False
    try:
        value: object = msgspec.json.decode(part.output.value)
    except msgspec.DecodeError:
        return False
    return isinstance(value, dict) and cast("dict[str, object]", value).get("ok") is False


def _label(tool: str) -> str:
    return _LABELS.get(tool) or "".join(word[:1].upper() + word[1:] for word in re.split(r"[_\s]+", tool)) or "Tool"


def _arguments(part: ToolCallPart) -> str:
    try:
        value: object = json.loads(bytes(part.input) or b"{}")
    except (ValueError, RecursionError):
        return "…"
    if part.tool_name == "send_message" and isinstance(value, dict):
        messages = cast("dict[str, object]", value).get("messages")
        inner = [_compact(one) for one in cast("list[object]", messages)] if isinstance(messages, list) else []
        return _cut(", ".join(inner))
    text = _SECRET.sub(r'\1"…"', _compact(value))
    return _cut("" if text == "{}" else text)


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _cut(text: str) -> str:
    octets = text.encode("utf-8", "replace")
    if len(octets) <= MOST_ARGUMENTS:
        return text
    return octets[: MOST_ARGUMENTS - 3].decode("utf-8", "ignore") + "…"


def _word(tool: str) -> str:
    return re.sub(r"\s+", "_", tool) or "-"


def _figures(done: TurnDone, lasted: str) -> str:
    """Each piece only where it is known; the model is the runtime's affair."""
    pieces = [lasted] if lasted else []
    try:
        usage: object = msgspec.json.decode(done.usage) if done.usage else None
    except msgspec.DecodeError:
        usage = None
    if isinstance(usage, dict):
        known = cast("dict[str, object]", usage)
        taken, made = known.get("inputTokens"), known.get("outputTokens")
        details = known.get("inputTokenDetails")
        hit = cast("dict[str, object]", details).get("cacheReadTokens") if isinstance(details, dict) else None
        if isinstance(taken, int):
            pieces.append(f"in={taken}")
            if isinstance(hit, int) and taken > 0:
                pieces.append(f"({100 * hit // taken}%)")
        if isinstance(made, int):
            pieces.append(f"out={made}")
    return " ".join(pieces)
