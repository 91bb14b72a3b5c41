"""How one thing of a conversation reads on a terminal: lines of a width, with a style of rich. Pure.

Everything from a chat passes `for_terminal` and is placed as text, never as markup.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final, NamedTuple

import msgspec
from rich.console import Console
from rich.text import Text

from bots.terminal.conversation import Item
from bots.terminal.log_reader import Stored
from bots.timeline import moment
from core.clock import now_ms
from core.codec import parts_of
from core.confirmations.record import Record
from core.confirmations.words import LABELS
from core.content import for_terminal, plain_text
from core.entries import (
    AnyEntry,
    AssistantMessage,
    Attachment,
    AttachmentItem,
    Author,
    MessageCreated,
    TextPart,
    ToolCallPart,
    ToolMessage,
    ToolResultPart,
    TurnDone,
    TurnStart,
    UserMessage,
)
from core.errors import InvalidEntry

LONGEST: Final = 4000
"""Characters of one message that are shown."""
INDENT: Final = 6
_NAMES: Final = ("bold cyan", "bold magenta", "bold green", "bold yellow", "bold blue")
_PICTURES: Final = {"image": "🖼", "audio": "♪", "video": "🎞"}
_UNITS: Final = ((1024 * 1024 * 1024, "GiB"), (1024 * 1024, "MiB"), (1024, "KiB"))
CONSOLE: Final = Console(width=80, force_terminal=False)
"""Measures and cuts text; nothing is printed with it."""
_SPEAK: Final = "send_message"


class Block(NamedTuple):
    """One paragraph after a head on its first line: a time, who."""

    who: str
    who_style: str
    text: str
    style: str = ""


def draw(item: Item, width: int, stored: Mapping[str, Stored]) -> list[Text]:
    """An item in lines of at most ``width`` columns; none where there is nothing to see."""
    lines: list[Text] = []
    for number, block in enumerate(_blocks(item, stored)):
        head = Text(f"{clock(item.at)} " if number == 0 else " " * INDENT, "dim")
        if block.who:
            head.append(for_terminal(block.who), block.who_style)
            head.append(": " if block.text else "", "dim")
        text = for_terminal(block.text, multiline=True)
        head.append(text if len(text) <= LONGEST else f"{text[:LONGEST]}… (cut here)", block.style)
        lines += _wrapped(head, max(width, INDENT + 10))
    return lines


def day(at: int) -> str:
    """The local day of a moment; empty where no calendar holds it."""
    try:
        return f"{datetime.fromtimestamp(at / 1000).astimezone():%A, %d %B %Y}" if at else ""
    except (ValueError, OverflowError, OSError):
        return ""


def clock(at: int) -> str:
    """Local time of day, in five columns."""
    try:
        return f"{datetime.fromtimestamp(at / 1000).astimezone():%H:%M}" if at else "     "
    except (ValueError, OverflowError, OSError):
        return "??:??"


def outcome(record: Record) -> str:
    """What became of something that was asked, and through whom."""
    if record.is_open:
        return "open"
    if record.status == "expired":
        return "expired, which counts as no"
    if record.withdrawn:
        return "withdrawn, as its message was taken back"
    given = "; ".join(
        answer.answer if isinstance(answer.answer, str) else ", ".join(answer.answer) for answer in record.answers
    )
    chosen = LABELS[record.choice] if record.choice is not None else given
    by = f" by {record.by.name or record.by.id}" if record.by is not None else ""
    return f"{record.status}{f' ({chosen})' if chosen else ''}{by}"


def asked(record: Record) -> str:
    """What is asked, in a sentence or one for each question."""
    if record.kind == "confirm":
        return f"May I use {record.tool}?" + (f" {record.text}" if record.text else "")
    return "\n".join(question.question for question in record.questions)


def _wrapped(text: Text, width: int) -> Iterator[Text]:
    """Lines after the first are indented, so that nobody can forge an entry."""
    first, *more = text.split("\n", allow_blank=True)
    pieces = first.wrap(CONSOLE, width, overflow="fold")
    yield pieces[0]
    rest = [*pieces[1:], *more]
    for line in rest:
        for piece in line.wrap(CONSOLE, width - INDENT, overflow="fold"):
            yield Text(" " * INDENT).append_text(piece)


def _blocks(item: Item, stored: Mapping[str, Stored]) -> Iterator[Block]:
    if item.record is not None:
        style = "bold yellow" if item.record.is_open else "yellow"
        yield Block("", "", f"? {asked(item.record)}", style)
        yield Block("", "", f"  → {outcome(item.record)}", "dim")
    elif item.deleted is not None:
        yield _retracted(item)
    elif item.message is not None or item.files is not None:
        if item.message is not None:
            yield _said(item.message)
        if item.files is not None:
            yield from _files(item.files, stored)
    elif item.entry is not None:
        yield from _ours(item.entry, item, stored)
    else:
        yield Block("", "", "(a line that cannot be read; `ishiki log check` names it)", "red")


def _said(message: MessageCreated) -> Block:
    marks = [message.via] if message.via else []
    if message.edited is not None:
        marks.append("edited")
    if message.forward is not None:
        origin = message.forward.user or message.forward.channel
        marks.append(f"forwarded from {origin.name or origin.id}" if origin else "forwarded")
    if message.quote is not None:
        marks.append(f"to {_name(message.quote.user)}" if message.quote.user else "reply")
    who = _name(message.user) + (f" ({', '.join(marks)})" if marks else "")
    return Block(
        who, _NAMES[sum(message.user.id.encode("utf-8", "replace")) % len(_NAMES)], plain_text(message.content)
    )


def _retracted(item: Item) -> Block:
    """Who, and when; never what was said."""
    assert item.deleted is not None
    of = f"{_name(item.message.user)} " if item.message is not None else "somebody "
    by = item.deleted.operator_id
    other = f", by {by}" if by and (item.message is None or by != item.message.user.id) else ""
    found = ", found out by comparing" if item.deleted.inferred else ""
    return Block("", "", f"✗ {of}took a message back at {clock(item.deleted.timestamp)}{other}{found}", "red")


def _files(files: Attachment, stored: Mapping[str, Stored]) -> Iterator[Block]:
    for file in files.items:
        found = stored.get(file.url)
        where = "" if found is None else str(found.path) if found.path is not None else found.note
        yield Block("", "", " · ".join(part for part in (_described(file), where) if part), "cyan")


def _described(file: AttachmentItem) -> str:
    sign = _PICTURES.get(file.media_type.partition("/")[0], "📎")
    pixels = f"{file.width}×{file.height}" if file.width and file.height else ""
    parts = (f"{sign} {file.filename or 'a file'}", file.media_type, pixels, _size(file.byte_length))
    return " · ".join(part for part in parts if part)


def _size(count: int | None) -> str:
    if count is None:
        return ""
    return next((f"{count / size:.1f} {unit}" for size, unit in _UNITS if count >= size), f"{count} bytes")


def _ours(entry: AnyEntry, item: Item, stored: Mapping[str, Stored]) -> Iterator[Block]:
    match entry.data:
        case UserMessage() as message:
            yield Block("you", "bold", _words(message))
        case AssistantMessage() as message:
            yield from _spoken(message, item)
        case ToolMessage() as message if _only_sent(message):
            return
        case TurnStart():
            yield Block("", "", "▶ the agent begins", "dim")
        case TurnDone():
            yield Block("", "", "■ the agent is done", "dim")
        case data if isinstance(files := getattr(data, "data", None), Attachment):
            yield from _files(files, stored)
        case _:
            said = moment(entry)
            yield Block(said.who, f"bold {said.style}".strip(), said.what, said.style)


def _words(message: UserMessage) -> str:
    try:
        parts = parts_of(message.content)
    except InvalidEntry:
        return "(content of a shape that this version does not know)"
    return "\n".join(part.text if isinstance(part, TextPart) else "(a part of another kind)" for part in parts)


def _spoken(message: AssistantMessage, item: Item) -> Iterator[Block]:
    """What the bot said in the chat, as itself; what else it did, as `moment` has it."""
    try:
        parts = parts_of(message.content)
    except InvalidEntry:
        parts = []
    speech = [text for part in parts if isinstance(part, ToolCallPart) for text in _texts(part)]
    for text in speech:
        yield Block("bot", "bold green", text)
    if not speech or any(not isinstance(part, ToolCallPart) or part.tool_name != _SPEAK for part in parts):
        assert item.entry is not None
        said = moment(item.entry)
        what = "\n".join(line for line in said.what.split("\n") if not (speech and line.startswith(f"→ {_SPEAK} ")))
        yield Block("agent", "green", what, "green")


class _Speech(msgspec.Struct):
    messages: list[str]
    mode: str = "markdown"


def _texts(call: ToolCallPart) -> list[str]:
    """What a ``send_message`` call says."""
    if call.tool_name != _SPEAK:
        return []
    try:
        speech = msgspec.json.decode(call.input, type=_Speech)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []
    return [plain_text(text) if speech.mode == "element" else text for text in speech.messages]


class _Sent(msgspec.Struct):
    ok: bool = False


def _only_sent(message: ToolMessage) -> bool:
    """Whether it only says that what the bot said has been sent."""
    try:
        results = [part for part in parts_of(message.content) if isinstance(part, ToolResultPart)]
        return bool(results) and all(
            part.tool_name == _SPEAK
            and not part.output.failed
            and msgspec.json.decode(part.output.value, type=_Sent).ok
            for part in results
        )
    except (InvalidEntry, msgspec.DecodeError, UnicodeDecodeError):
        return False


def _name(author: Author) -> str:
    return author.name or author.id


def left(record: Record) -> str:
    """How long something may still be answered."""
    seconds = max(record.expires_at - now_ms(), 0) // 1000
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
