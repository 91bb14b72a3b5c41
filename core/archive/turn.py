"""A finished turn as ``action_history`` has it: its purpose, its tools' results, its words (sessions.md 2.3)."""

from typing import Final, NamedTuple

import msgspec

from core.codec import parts_of
from core.content import plain_text
from core.entries import (
    AnyEntry,
    AssistantMessage,
    MessageCreated,
    TextPart,
    ToolCallPart,
    ToolMessage,
    ToolResultPart,
    TurnStart,
    UserMessage,
    fact_of,
)
from core.errors import InvalidEntry
from core.ids import TurnId
from core.sessions.reading import Reading, Recorded

MOST_OF_ARGUMENTS: Final = 1024
MOST_OF_A_RESULT: Final = 4096
MOST_OF_A_TEXT: Final = 4096
MOST_READ: Final = 4 * 1024 * 1024
"""How far back a turn is looked for, in bytes; of a longer one the end is kept."""
MOST_BEFORE: Final = 64
"""How many lines before its start somebody's word is looked for that made it."""


class Turn(NamedTuple):
    """A row of ``action_history``. ``end_at`` in ms; ``tool_results`` as JSON."""

    turn_id: str
    end_at: int
    objective: str
    tool_results: str
    reply: str


class Step(msgspec.Struct, omit_defaults=True):
    """One call of a tool: ``arguments`` and ``result`` are JSON or text, cut."""

    id: str
    tool: str
    arguments: str = ""
    result: str = ""
    failed: bool = False


def turn_that_ended(end: Recorded, reading: Reading) -> Turn:
    """What the log says of the turn that this line ends. Blocks."""
    turn = TurnId(end.entry.data.turn_id)
    lines, objective = _lines_of(turn, end, reading)
    steps: dict[str, Step] = {}
    reply = ""
    for entry in lines:
        try:
            reply = _take(entry, steps) or reply
        except (InvalidEntry, msgspec.MsgspecError, UnicodeError):
            continue
    return Turn(
        cleaned(turn),
        min(max(end.entry.timestamp, 0), 1 << 53),
        _cut(objective, MOST_OF_A_TEXT),
        msgspec.json.encode(list(steps.values())).decode(),
        _cut(reply, MOST_OF_A_TEXT),
    )


def _lines_of(turn: TurnId, end: Recorded, reading: Reading) -> tuple[list[AnyEntry], str]:
    """The turn's lines in order, and the newest word of a person before it."""
    lines: list[AnyEntry] = []
    before = 0
    for recorded in reading.read_back(end.start):
        if end.start - recorded.start > MOST_READ or before > MOST_BEFORE:
            break
        if before and (said := _word_of(recorded.entry)) is not None:
            return lines[::-1], said
        if recorded.entry.turn_id == turn:
            lines.append(recorded.entry)
        if before or (isinstance(recorded.entry.data, TurnStart) and recorded.entry.turn_id == turn):
            before += 1
    return lines[::-1], ""


def _word_of(entry: AnyEntry) -> str | None:
    fact = fact_of(entry)
    if isinstance(fact, MessageCreated):
        return plain_text(fact.content)
    if isinstance(entry.data, UserMessage):
        try:
            return "\n".join(part.text for part in parts_of(entry.data.content) if isinstance(part, TextPart))
        except InvalidEntry:
            return None
    return None


def _take(entry: AnyEntry, steps: dict[str, Step]) -> str:
    """Add the calls and results of a line; what an assistant said there in words."""
    said = ""
    if isinstance(entry.data, AssistantMessage):
        for part in parts_of(entry.data.content):
            if isinstance(part, ToolCallPart):
                arguments = _cut(bytes(part.input).decode("utf-8", "replace"), MOST_OF_ARGUMENTS)
                steps[part.tool_call_id] = Step(cleaned(part.tool_call_id), cleaned(part.tool_name), arguments)
            elif isinstance(part, TextPart):
                said += part.text
    elif isinstance(entry.data, ToolMessage):
        for part in parts_of(entry.data.content):
            if isinstance(part, ToolResultPart):
                step = steps.setdefault(part.tool_call_id, Step(cleaned(part.tool_call_id), cleaned(part.tool_name)))
                text = bytes(part.output.value).decode("utf-8", "replace") or (part.output.reason or "")
                step.result, step.failed = _cut(text, MOST_OF_A_RESULT), part.output.failed
    return said


def cleaned(text: str) -> str:
    """What the database takes: no lone surrogates, and no NUL, at which it ends."""
    if text.isascii():
        return text.replace("\0", "")
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _cut(text: str, most: int) -> str:
    """At most so many bytes, the cut marked."""
    encoded = cleaned(text).encode()
    return encoded.decode() if len(encoded) <= most else encoded[: most - 3].decode("utf-8", "ignore") + "…"
