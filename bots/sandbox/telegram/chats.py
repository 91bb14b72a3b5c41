"""What the world consists of: chats, topics, business connections and the messages in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]
ChatKind = Literal["private", "group", "supergroup", "channel"]

MEDIA = ("photo", "document", "audio", "voice", "video", "video_note", "animation", "sticker")
SERVICE = frozenset(
    {
        "new_chat_members",
        "left_chat_member",
        "new_chat_title",
        "new_chat_photo",
        "delete_chat_photo",
        "group_chat_created",
        "supergroup_chat_created",
        "migrate_to_chat_id",
        "migrate_from_chat_id",
        "pinned_message",
        "forum_topic_created",
        "forum_topic_edited",
        "forum_topic_closed",
        "forum_topic_reopened",
        "general_forum_topic_hidden",
        "general_forum_topic_unhidden",
        "video_chat_started",
        "video_chat_ended",
        "message_auto_delete_timer_changed",
    }
)


@dataclass(eq=False)
class Message:
    """One message; `payload` is the Bot API's Message object as it stands now."""

    chat: Chat
    id: int
    payload: Json
    deleted: bool = False
    by_bot: bool = False
    sent_markup: Json | None = None
    """The `reply_markup` that the bot gave, also the kinds that no payload shows (force_reply, keyboards)."""
    former_buttons: list[Json] = field(default_factory=list[Json])
    reactions: dict[int, list[str]] = field(default_factory=dict[int, list[str]])

    @property
    def text(self) -> str:
        """Text or caption."""
        return self.payload.get("text") or self.payload.get("caption") or ""

    @property
    def buttons(self) -> list[Json]:
        """The inline buttons, row after row."""
        rows = self.payload.get("reply_markup", {}).get("inline_keyboard", [])
        return [button for row in rows for button in row]


@dataclass(eq=False)
class Topic:
    """A topic of a forum; `id` is the number of the service message that made it."""

    id: int
    name: str
    icon_color: int = 0x6FB9F0
    closed: bool = False


@dataclass(eq=False)
class Chat:
    """A chat as the bot sees it. `bot_reads_all` holds the privacy setting as it was when the bot came in.

    `linked` is a channel's discussion group, and that group's channel; `forbidden` are rights that members lack.
    """

    id: int
    kind: ChatKind
    face: Json
    message_ids: Iterator[int]
    is_forum: bool = False
    messages: dict[int, Message] = field(default_factory=dict[int, Message])
    members: dict[int, Json] = field(default_factory=dict[int, Json])
    topics: dict[int, Topic] = field(default_factory=dict[int, Topic])
    linked: Chat | None = None
    migrated_to: int | None = None
    business: BusinessConnection | None = None
    bot_reads_all: bool = False
    forbidden: set[str] = field(default_factory=set[str])
    started: bool = False
    blocked: bool = False

    def payload(self) -> Json:
        """The Chat object."""
        shown: Json = {"id": self.id, "type": self.kind} | self.face
        return shown | {"is_forum": True} if self.is_forum else shown

    def status_of(self, user_id: int) -> str:
        """The ChatMember status, `left` for a stranger."""
        return self.members.get(user_id, {"status": "left"})["status"]


@dataclass(eq=False)
class BusinessConnection:
    """A person's account that the bot may act for; its chats bear the customers' numbers."""

    id: str
    owner: Json
    user_chat_id: int
    date: int
    message_ids: Iterator[int]
    rights: Json
    is_enabled: bool = True
    chats: dict[int, Chat] = field(default_factory=dict[int, Chat])

    def payload(self) -> Json:
        """The BusinessConnection object."""
        return {
            "id": self.id,
            "user": self.owner,
            "user_chat_id": self.user_chat_id,
            "date": self.date,
            "is_enabled": self.is_enabled,
            "rights": self.rights,
        }


def nested(payload: Json) -> Json:
    """A message as it stands inside another one: without a reply or a pinned message of its own."""
    return {name: value for name, value in payload.items() if name not in {"reply_to_message", "pinned_message"}}


def is_service(payload: Json) -> bool:
    """Whether the message tells of something that happened instead of something said."""
    return not SERVICE.isdisjoint(payload)


def origin(message: Message) -> Json:
    """The MessageOrigin of a message that is forwarded."""
    payload = message.payload
    if "forward_origin" in payload:
        return payload["forward_origin"]
    shown: Json = {"date": payload["date"]}
    if message.chat.kind == "channel":
        shown |= {"type": "channel", "chat": message.chat.payload(), "message_id": message.id}
    elif "sender_chat" in payload:
        shown |= {"type": "chat", "sender_chat": payload["sender_chat"]}
    else:
        return shown | {"type": "user", "sender_user": payload["from"]}
    if signature := payload.get("author_signature"):
        shown["author_signature"] = signature
    return shown
