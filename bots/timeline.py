"""One entry of a log as a person reads it: when, who, what. Everything from a chat comes out fit for a terminal."""

from datetime import datetime
from typing import NamedTuple

from core.codec import parts_of
from core.content import for_terminal, plain_text
from core.entries import (
    AnyEntry,
    AssistantMessage,
    Attachment,
    Author,
    ChatCompact,
    ChatShake,
    CodemodeStore,
    Compact,
    Images,
    MessageCreated,
    MessageDeleted,
    Narrative,
    ReasoningPart,
    State,
    SystemMessage,
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

LONGEST_JSON = 400
"""Characters of a tool's input or output that are shown."""


class Moment(NamedTuple):
    """``who`` is one line, ``what`` may be several; both may be printed as they are. ``style`` is one of rich."""

    at: int
    who: str
    what: str
    style: str

    def lines(self) -> list[str]:
        """Readable lines; those after the first are indented, so that nobody can forge an entry."""
        first, *more = self.what.split("\n")
        return [
            f"{clock(self.at)}  {self.who}{': ' if self.who and first else ''}{first}",
            *(f"    {line}" for line in more),
        ]


def clock(at: int) -> str:
    """Unix milliseconds as local time; what no calendar holds stays a number."""
    try:
        return datetime.fromtimestamp(at / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return str(at)


def moment(entry: AnyEntry) -> Moment:
    """What happened, by one entry."""
    who, what, style = _said(entry)
    return Moment(entry.timestamp, for_terminal(who), for_terminal(what, multiline=True), style)


def _said(entry: AnyEntry) -> tuple[str, str, str]:
    match fact_of(entry):
        case MessageCreated() as fact:
            return _created(fact)
        case MessageDeleted() as fact:
            found = " (found out by comparing)" if fact.inferred else ""
            by = f" by {fact.operator_id}" if fact.operator_id else ""
            return "", f"✗ message {fact.message_id} was retracted{by}{found}", "red"
        case Attachment() as media:
            return "", "\n".join(["📎 " + ", ".join(_file(media, index) for index in range(len(media.items)))]), "cyan"
        case _:
            return _ours(entry)


def _created(fact: MessageCreated) -> tuple[str, str, str]:
    marks = [fact.via] if fact.via else []
    if fact.edited is not None:
        marks.append(f"edit {fact.edited.revision} of {fact.message_id}")
    if fact.forward is not None:
        origin = fact.forward.user or fact.forward.channel
        marks.append(f"forwarded from {origin.name or origin.id}" if origin else "forwarded")
    if fact.quote is not None:
        marks.append(f"answering {_name(fact.quote.user) if fact.quote.user else fact.quote.id}")
    who = _name(fact.user) + (f" ({', '.join(marks)})" if marks else "")
    return who, plain_text(fact.content), "yellow" if fact.edited else ""


def _ours(entry: AnyEntry) -> tuple[str, str, str]:  # noqa: C901, PLR0911, PLR0912 - one arm for each kind of the format
    match entry.data:
        case AssistantMessage() as message:
            return "assistant", _parts(message), "green"
        case ToolMessage() as message:
            return "tool", _parts(message), "blue"
        case UserMessage() as message:
            return "user", _parts(message), ""
        case SystemMessage(content=content):
            return "system", content, ""
        case TurnStart(turn_id=turn):
            return "", f"▶ turn {turn} begins", "bold"
        case TurnDone(turn_id=turn):
            return "", f"■ turn {turn} is done", "bold"
        case TurnFailed(turn_id=turn, error=error):
            return "", f"■ turn {turn} failed" + (f" ({error.name}: {error.message})" if error else ""), "bold red"
        case TurnAborted(turn_id=turn, reason=reason):
            return "", f"■ turn {turn} was ended" + (f" ({reason})" if reason else ""), "bold yellow"
        case Images(shown=shown, released=released):
            return "", f"the model saw {len(shown)} images and let go of {len(released)}", "dim"
        case ChatShake(stats=stats):
            return "", f"{stats.covered_messages} messages were folded; {stats.freed_tokens} tokens are free", "dim"
        case ChatCompact(summary=summary) | Compact(summary=summary):
            return "summary", summary, "dim"
        case Narrative(kind=kind, text=text):
            return kind or "narrative", text or "", "dim"
        case CodemodeStore() as store:
            return "", f"a script stored {len(store.set)} values and deleted {len(store.delete)}", "dim"
        case State(version=version):
            return "", f"state of version {version}", "dim"
        case _:
            return "", f"({entry.type} of a kind that this version does not know)", "dim"


def _parts(message: AssistantMessage | ToolMessage | UserMessage) -> str:
    try:
        parts = parts_of(message.content)
    except InvalidEntry:
        return "(content of a shape that this version does not know)"
    said: list[str] = []
    for part in parts:
        match part:
            case TextPart(text=text):
                said.append(text)
            case ReasoningPart(text=text):
                said.append(f"(thinks) {text}")
            case ToolCallPart() as call:
                said.append(f"→ {call.tool_name} {_json(bytes(call.input))}")
            case ToolResultPart(output=output) as result:
                failed = " failed" if output.failed else ""
                said.append(
                    f"← {result.tool_name}{failed} {_json(bytes(output.value)) if output.value else ''}".rstrip()
                )
            case _:
                said.append("(a part of another kind)")
    return "\n".join(said)


def _file(media: Attachment, index: int) -> str:
    item = media.items[index]
    size = f", {item.byte_length} bytes" if item.byte_length is not None else ""
    return f"{item.filename or 'a file'} ({item.media_type}{size})"


def _json(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace")
    return text if len(text) <= LONGEST_JSON else f"{text[:LONGEST_JSON]}…"


def _name(author: Author) -> str:
    return author.name or author.id
