"""What Discord knows: people, places and messages.

State only. Ids are snowflakes written as strings, as they travel; every moment is aware and in UTC. The names are those
of the API reference; `payloads.py` draws the JSON.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import IntEnum, IntFlag
from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]

EPOCH_MS = 1_420_070_400_000
"""The first second of 2015, from which snowflakes count (API reference, Snowflakes)."""


class Snowflakes:
    """Issues unique, growing ids that carry their true moment in milliseconds."""

    def __init__(self) -> None:
        self._last = 0

    def new(self) -> str:
        now = int(datetime.now(UTC).timestamp() * 1000) - EPOCH_MS
        self._last = max(self._last + 1, now << 22)
        return str(self._last)


def moment_of(snowflake: str) -> datetime:
    """When an id was issued."""
    return datetime.fromtimestamp(((int(snowflake) >> 22) + EPOCH_MS) / 1000, UTC)


class Intent(IntFlag):
    """Gateway intents, as far as the stand-in has events for them (Gateway, List of Intents)."""

    ANY = 0
    GUILDS = 1 << 0
    GUILD_MEMBERS = 1 << 1
    GUILD_PRESENCES = 1 << 8
    GUILD_MESSAGES = 1 << 9
    GUILD_MESSAGE_REACTIONS = 1 << 10
    DIRECT_MESSAGES = 1 << 12
    DIRECT_MESSAGE_REACTIONS = 1 << 13
    MESSAGE_CONTENT = 1 << 15


PRIVILEGED = Intent.GUILD_MEMBERS | Intent.GUILD_PRESENCES | Intent.MESSAGE_CONTENT
"""Intents that need a switch in the developer portal (Gateway, Privileged Intents)."""


class Permission(IntFlag):
    """The rights that the stand-in looks at (Permissions, Bitwise Permission Flags)."""

    NONE = 0
    ADD_REACTIONS = 1 << 6
    VIEW_CHANNEL = 1 << 10
    SEND_MESSAGES = 1 << 11
    MANAGE_MESSAGES = 1 << 13
    EMBED_LINKS = 1 << 14
    ATTACH_FILES = 1 << 15
    READ_MESSAGE_HISTORY = 1 << 16
    MENTION_EVERYONE = 1 << 17
    CREATE_PUBLIC_THREADS = 1 << 35
    SEND_MESSAGES_IN_THREADS = 1 << 38


EVERY_PERMISSION = ((1 << 50) - 1) & ~(1 << 3)
"""What a member may do unless denied: every right but Administrator, which would override each denial."""


class ChannelType(IntEnum):
    TEXT = 0
    DM = 1
    PUBLIC_THREAD = 11
    PRIVATE_THREAD = 12


class MessageType(IntEnum):
    """Message types that the stand-in makes by itself; others can be asked for by number."""

    DEFAULT = 0
    PINNED = 6
    JOINED = 7
    THREAD_CREATED = 18
    REPLY = 19
    COMPONENT_REPLY = 20
    THREAD_STARTER = 21


class MessageFlag(IntFlag):
    SUPPRESS_EMBEDS = 1 << 2
    HAS_THREAD = 1 << 5
    EPHEMERAL = 1 << 6
    LOADING = 1 << 7
    SUPPRESS_NOTIFICATIONS = 1 << 12
    VOICE_MESSAGE = 1 << 13
    HAS_SNAPSHOT = 1 << 14


@dataclass(frozen=True, slots=True)
class Event:
    """One dispatch, as every session could get it.

    `intents` are those of which one must be held (none: everybody gets it). `redacted` is the payload for a session
    without the Message Content intent, where that differs.
    """

    name: str
    data: JsonObject
    intents: Intent = Intent.ANY
    redacted: JsonObject | None = None


@dataclass(slots=True, eq=False)
class User:
    """An account. `id` of a webhook's author is the webhook's."""

    id: str
    username: str
    global_name: str | None = None
    bot: bool = False
    discriminator: str = "0"
    accepts_dms: bool = True

    @property
    def mention(self) -> str:
        return f"<@{self.id}>"


@dataclass(slots=True, eq=False)
class Role:
    id: str
    name: str
    permissions: int = 0
    mentionable: bool = True
    bot_id: str | None = None

    @property
    def mention(self) -> str:
        return f"<@&{self.id}>"


@dataclass(frozen=True, slots=True)
class File:
    """Bytes that somebody sends. `size` is what the payload declares, where that should differ from the truth."""

    name: str
    data: bytes
    content_type: str | None = None
    description: str | None = None
    size: int | None = None
    duration_secs: float | None = None
    waveform: str | None = None


@dataclass(frozen=True, slots=True)
class Attachment:
    id: str
    file: File
    width: int | None = None
    height: int | None = None


@dataclass(frozen=True, slots=True)
class Sticker:
    """A guild sticker; `data` is served by the CDN as `/stickers/<id>.png`."""

    id: str
    name: str
    data: bytes
    guild_id: str
    format_type: int = 1


def _no_channels() -> "dict[str, Channel]":
    return {}


def _no_messages() -> "dict[str, Message]":
    return {}


@dataclass(slots=True, eq=False)
class Guild:
    id: str
    name: str
    owner_id: str
    members: dict[str, User] = field(default_factory=dict[str, User])
    member_roles: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    roles: dict[str, Role] = field(default_factory=dict[str, Role])
    channels: "dict[str, Channel]" = field(default_factory=_no_channels)
    threads: "dict[str, Channel]" = field(default_factory=_no_channels)
    stickers: dict[str, Sticker] = field(default_factory=dict[str, Sticker])


@dataclass(slots=True, eq=False)
class Channel:
    """A text channel, a direct message or a thread. `messages` are in order of id and hold deleted ones no more.

    `denied` are rights taken from the bot here.
    """

    id: str
    type: ChannelType
    name: str = ""
    guild: Guild | None = None
    parent: "Channel | None" = None
    owner: User | None = None
    recipients: list[User] = field(default_factory=list[User])
    messages: "dict[str, Message]" = field(default_factory=_no_messages)
    denied: Permission = Permission.NONE
    last_message_id: str | None = None
    last_pin: datetime | None = None
    archived: bool = False
    archived_at: datetime | None = None
    thread_members: list[User] = field(default_factory=list[User])

    @property
    def is_thread(self) -> bool:
        return self.type in (ChannelType.PUBLIC_THREAD, ChannelType.PRIVATE_THREAD)

    @property
    def mention(self) -> str:
        return f"<#{self.id}>"

    def permits(self, permission: Permission) -> bool:
        """Whether the bot holds a right here; a thread inherits from its parent."""
        home = self.parent or self
        return not permission & (home.denied | self.denied)


@dataclass(slots=True)
class Poll:
    question: str
    answers: list[str]
    multiselect: bool = False
    hours: float = 24
    emoji: list[str | None] = field(default_factory=list[str | None])


@dataclass(frozen=True, slots=True)
class Reference:
    """What a message points at: type 0 a reply (or pin, or thread), type 1 a forward."""

    channel_id: str
    message_id: str | None = None
    guild_id: str | None = None
    type: int = 0


@dataclass(frozen=True, slots=True)
class AllowedMentions:
    """Whom a message may ping (Message, Allowed Mentions Object). The default pings everybody it names."""

    parse: frozenset[str] = frozenset({"users", "roles", "everyone"})
    users: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    replied_user: bool = True


_UNPOSTED = datetime.fromtimestamp(EPOCH_MS / 1000, UTC)


@dataclass(slots=True, eq=False)
class Message:
    """A message as it is now. `id` and `timestamp` are given when it is posted; an edit changes it in place."""

    channel: Channel
    author: User
    content: str = ""
    id: str = ""
    type: int = MessageType.DEFAULT
    flags: int = 0
    timestamp: datetime = _UNPOSTED
    edited_timestamp: datetime | None = None
    tts: bool = False
    mentions: list[User] = field(default_factory=list[User])
    mention_roles: list[str] = field(default_factory=list[str])
    mention_everyone: bool = False
    attachments: list[Attachment] = field(default_factory=list[Attachment])
    embeds: list[JsonObject] = field(default_factory=list[JsonObject])
    components: list[JsonObject] = field(default_factory=list[JsonObject])
    stickers: list[Sticker] = field(default_factory=list[Sticker])
    poll: Poll | None = None
    pinned: bool = False
    reactions: dict[str, list[User]] = field(default_factory=dict[str, list[User]])
    reference: Reference | None = None
    snapshot: "Message | None" = None
    thread: Channel | None = None
    webhook_id: str | None = None
    application_id: str | None = None
    interaction_metadata: JsonObject | None = None
    nonce: str | int | None = None
    position: int = 0
    deleted: bool = False
