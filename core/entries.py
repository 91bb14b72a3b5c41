"""The log's alphabet: one frozen model per entry and message kind (log-format sections 2 to 7).

The models describe what the format names; `core.codec` reads and writes their lines. JSON whose shape is somebody
else's affair (a tool's input, a provider's usage) is held as `Raw` bytes.
"""

from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast

import msgspec
from msgspec import Raw, Struct

from core.ids import ChannelId, EntryId, MessageId, ThreadId, TurnId, UserId, new_entry_id, new_uuid

D = TypeVar("D")

ABSENT = Raw()
"""The value of a `Raw` member that is not there. Falsy."""

Via = Literal["webhook", "bot", "anonymous-admin", "channel"]


def _always(word: str) -> Any:  # noqa: ANN401 - typed as what the field declares, as dataclass fields are
    """A member that is one fixed word, and is written though it equals its default."""
    return msgspec.field(default_factory=lambda: word)


class Model(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """What all models share: frozen, camelCase on disk, an absent member is absent and never null.

    Frozen from the leaves up, they hold no cycles, so the garbage collector need not look at them.
    """


class Entry(Model, Generic[D], frozen=True, kw_only=True):
    """One line. ``timestamp`` is in Unix milliseconds, ``turn_id`` None outside any turn."""

    id: EntryId
    type: str
    data: D
    timestamp: int
    parent_id: str | None = None
    turn_id: TurnId | None = None


# --- platform facts (section 7) -----------------------------------------------------------------------------------


class Author(Model, frozen=True, kw_only=True):
    """A person, bot, webhook or channel; ``name`` as of then."""

    id: UserId
    name: str | None = None


class Place(Model, frozen=True, kw_only=True):
    """A channel, chat or server."""

    id: str
    name: str | None = None


class Quote(Model, frozen=True, kw_only=True):
    """The message that was replied to."""

    id: MessageId
    content: str | None = None
    user: Author | None = None
    channel: Place | None = None
    guild: Place | None = None


class Edited(Model, frozen=True, kw_only=True):
    """This line is revision ``revision`` (from 1) of its message; ``timestamp`` is the platform's edit time in ms."""

    timestamp: int
    revision: int


class Forward(Model, frozen=True, kw_only=True):
    """Where a forwarded message came from: at most one of ``user`` and ``channel``; only what the platform says."""

    user: Author | None = None
    channel: Place | None = None
    timestamp: int | None = None


class MessageCreated(Model, frozen=True, kw_only=True):
    """Somebody wrote, or edited (``ishiki.message.created``, 7.1). Members in the order of contract section 9."""

    platform: str
    self_id: UserId
    channel_id: ChannelId
    message_id: MessageId
    timestamp: int
    content: str
    is_direct: bool
    user: Author
    guild_id: str | None = None
    quote: Quote | None = None
    thread_id: ThreadId | None = None
    edited: Edited | None = None
    forward: Forward | None = None
    album: str | None = None
    via: Via | None = None


class MessageDeleted(Model, frozen=True, kw_only=True):
    """A message was retracted (``ishiki.message.deleted``, 7.2)."""

    platform: str
    self_id: UserId
    channel_id: ChannelId
    message_id: MessageId
    timestamp: int
    user_id: UserId | None = None
    operator_id: UserId | None = None
    inferred: bool | None = None


class AttachmentItem(Model, frozen=True, kw_only=True):
    """One file of a message: ``url`` is ``asset://`` or ``artifact://``; sizes in bytes and pixels."""

    url: str
    media_type: str
    filename: str | None = None
    byte_length: int | None = None
    width: int | None = None
    height: int | None = None


class Attachment(Model, frozen=True, kw_only=True):
    """The media list of one message (``ishiki.attachment``, 7.3).

    With source ``platform`` the four members of the message's key are there, otherwise ``tool_name`` and
    ``tool_call_id``.
    """

    source: str
    platform: str | None = None
    self_id: UserId | None = None
    channel_id: ChannelId | None = None
    message_id: MessageId | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    items: list[AttachmentItem]


# --- messages (section 3) -----------------------------------------------------------------------------------------


class CustomMessage(Model, Generic[D], frozen=True, kw_only=True):
    """A message whose ``role`` is ``custom``; ``type`` says which, ``data`` is the payload (3.6)."""

    id: str
    timestamp: int
    role: Literal["custom"] = _always("custom")
    type: str
    data: D


class UserMessage(Model, frozen=True, kw_only=True):
    """What a person said in a terminal or API session (3.1): text, or a list of parts."""

    id: str
    timestamp: int
    role: Literal["user"] = _always("user")
    content: Raw
    provider_options: Raw = ABSENT


class SystemMessage(Model, frozen=True, kw_only=True):
    """A host's note (3.2). Nothing of ours writes it."""

    id: str
    timestamp: int
    role: Literal["system"] = _always("system")
    content: str


class AssistantMessage(Model, frozen=True, kw_only=True):
    """The output of one model step (3.3): text, or a list of parts that `parts_of` reads."""

    id: str
    timestamp: int
    role: Literal["assistant"] = _always("assistant")
    content: Raw
    usage: Raw = ABSENT
    finish_reason: str | None = None
    provider_options: Raw = ABSENT


class ToolMessage(Model, frozen=True, kw_only=True):
    """All tool results of one step (3.4)."""

    id: str
    timestamp: int
    role: Literal["tool"] = _always("tool")
    content: Raw


class TextPart(Model, frozen=True, kw_only=True, tag="text", tag_field="type"):
    text: str
    provider_options: Raw = ABSENT


class ReasoningPart(Model, frozen=True, kw_only=True, tag="reasoning", tag_field="type"):
    text: str
    provider_options: Raw = ABSENT


class ToolCallPart(Model, frozen=True, kw_only=True, tag="tool-call", tag_field="type"):
    tool_call_id: str
    tool_name: str
    input: Raw
    provider_executed: bool | None = None
    provider_options: Raw = ABSENT


class ToolOutput(Model, frozen=True, kw_only=True):
    """``type`` is ``text``, ``json``, ``error-text``, ``error-json``, ``execution-denied`` or ``content``."""

    type: str
    value: Raw = ABSENT
    reason: str | None = None

    @property
    def failed(self) -> bool:
        return self.type in {"error-text", "error-json", "execution-denied"}


class ToolResultPart(Model, frozen=True, kw_only=True, tag="tool-result", tag_field="type"):
    tool_call_id: str
    tool_name: str
    output: ToolOutput
    provider_options: Raw = ABSENT


class FilePart(Model, frozen=True, kw_only=True, tag="file", tag_field="type"):
    data: Raw
    media_type: str
    filename: str | None = None
    provider_options: Raw = ABSENT


class ReasoningFilePart(Model, frozen=True, kw_only=True, tag="reasoning-file", tag_field="type"):
    data: Raw
    media_type: str
    filename: str | None = None
    provider_options: Raw = ABSENT


class ImagePart(Model, frozen=True, kw_only=True, tag="image", tag_field="type"):
    image: Raw = ABSENT
    media_type: str | None = None
    provider_options: Raw = ABSENT


Part: TypeAlias = TextPart | ReasoningPart | ToolCallPart | ToolResultPart | FilePart | ReasoningFilePart | ImagePart


# --- events (section 4) and state (section 5) ---------------------------------------------------------------------


class FailureCause(Model, frozen=True, kw_only=True):
    """Why a turn failed; no URL, token or path of ours in it."""

    name: str
    message: str
    cause: str | None = None
    stack: str | None = None


class TurnStart(Model, frozen=True, kw_only=True, tag="turn.start", tag_field="type"):
    turn_id: TurnId


class TurnDone(Model, frozen=True, kw_only=True, tag="turn.done", tag_field="type"):
    turn_id: TurnId
    usage: Raw = ABSENT


class TurnFailed(Model, frozen=True, kw_only=True, tag="turn.failed", tag_field="type"):
    turn_id: TurnId
    error: FailureCause | None = None


class TurnAborted(Model, frozen=True, kw_only=True, tag="turn.aborted", tag_field="type"):
    turn_id: TurnId
    reason: str | None = None


TurnEvent: TypeAlias = TurnStart | TurnDone | TurnFailed | TurnAborted


class State(Model, frozen=True, kw_only=True):
    """A full snapshot of a host's own state; what else it holds is the host's affair."""

    version: int


# --- custom entries (section 6) -----------------------------------------------------------------------------------


class Range(Model, frozen=True, kw_only=True):
    """Entry ids of the first and last covered line, inclusive."""

    start: EntryId
    end: EntryId


class LineSpan(Model, frozen=True, kw_only=True):
    """Lines of an artifact's text, 1-based, inclusive."""

    start: int
    end: int


class ShakeRegion(Model, frozen=True, kw_only=True):
    """One folded tool result."""

    tool_call_id: str
    entry_id: EntryId
    tool: str
    intent: str
    status: str
    lines: LineSpan


class ShakeStats(Model, frozen=True, kw_only=True):
    covered_messages: int
    covered_tokens: int
    freed_tokens: int
    digest_tokens: int


class ChatShake(Model, frozen=True, kw_only=True):
    """Tool output folded into a digest (6.1)."""

    range: Range
    digest: str
    artifact: str
    regions: list[ShakeRegion]
    stats: ShakeStats


class CompactStats(Model, frozen=True, kw_only=True):
    covered_tokens: int
    summary_tokens: int
    freed_tokens: int


class ModelError(Model, frozen=True, kw_only=True):
    name: str
    message: str


class CompactAttempt(Model, frozen=True, kw_only=True):
    """One model call of a compaction, from 1."""

    attempt: int
    provider: str
    model_id: str
    usage: Raw = ABSENT
    error: ModelError | None = None


class ChatCompact(Model, frozen=True, kw_only=True):
    """A semantic summary in seven sections (6.2); ``last_entry_id`` is the anchor."""

    summary: str
    last_entry_id: EntryId
    artifact: str
    covered_shake_ids: list[EntryId]
    stats: CompactStats
    attempts: list[CompactAttempt]


class Compact(Model, frozen=True, kw_only=True):
    """A plain summary (6.3)."""

    summary: str
    last_entry_id: EntryId


class Images(Model, frozen=True, kw_only=True):
    """Which images a request used (6.4); keys are ``<data.id of the attachment message>:<index>``."""

    shown: list[str]
    released: list[str]


class Narrative(Model, frozen=True, kw_only=True):
    """A piece of script projected from assistant output (6.5). Readers take any object."""

    source_id: str | None = None
    kind: str | None = None
    text: str | None = None
    index: int | None = None


class CodemodeStore(Model, frozen=True, kw_only=True):
    """What a script stored (6.6): first ``set``, then ``delete``."""

    set: dict[str, Raw]
    delete: list[str]


class Unknown(Model, frozen=True, kw_only=True):
    """A kind that this version does not know: kept byte for byte, counted, not projected (section 8)."""

    raw: Raw


Created: TypeAlias = CustomMessage[MessageCreated]
Deleted: TypeAlias = CustomMessage[MessageDeleted]
Attached: TypeAlias = CustomMessage[Attachment]
Message: TypeAlias = Created | Deleted | Attached | UserMessage | SystemMessage | AssistantMessage | ToolMessage
Data: TypeAlias = (
    Message | TurnEvent | State | ChatShake | ChatCompact | Compact | Images | Narrative | CodemodeStore | Unknown
)
AnyEntry: TypeAlias = Entry[Any]
"""An entry of any kind; match on the class of ``data``, and for custom messages of ``data.data``."""

CREATED = "ishiki.message.created"
DELETED = "ishiki.message.deleted"
ATTACHMENT = "ishiki.attachment"


def fact_of(entry: AnyEntry) -> MessageCreated | MessageDeleted | Attachment | None:
    """The payload of a custom message; None for every other line."""
    if not isinstance(entry.data, CustomMessage):
        return None
    return cast("MessageCreated | MessageDeleted | Attachment", entry.data.data)  # pyright: ignore[reportUnknownMemberType] - isinstance cannot name the payload's type


# --- making -------------------------------------------------------------------------------------------------------

Fact = TypeVar("Fact", bound=MessageCreated | MessageDeleted | Attachment)
_NAMES: dict[type[Model], str] = {MessageCreated: CREATED, MessageDeleted: DELETED, Attachment: ATTACHMENT}


def custom_message(fact: Fact, *, now: int, turn_id: TurnId | None = None) -> Entry[CustomMessage[Fact]]:
    """The line of a platform fact. ``now`` is in Unix milliseconds."""
    message = CustomMessage(id=new_uuid(), timestamp=now, type=_NAMES[type(fact)], data=fact)
    return Entry(id=new_entry_id(), type="message", data=message, timestamp=now, turn_id=turn_id)


def turn_event(event: TurnEvent, *, now: int) -> Entry[TurnEvent]:
    """The line of a turn's beginning or end."""
    return Entry(id=new_entry_id(), type="event", data=event, timestamp=now, turn_id=event.turn_id)


M = TypeVar("M", UserMessage, AssistantMessage, ToolMessage)


def message_entry(message: M, *, now: int, turn_id: TurnId | None = None) -> Entry[M]:
    """The line of a user, assistant or tool message."""
    return Entry(id=new_entry_id(), type="message", data=message, timestamp=now, turn_id=turn_id)
