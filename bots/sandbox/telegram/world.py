"""The state behind the Bot API: accounts, chats, messages, and which of what happens the bot is told."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from bots.sandbox.telegram.chats import (
    BusinessConnection,
    Chat,
    ChatKind,
    Json,
    Message,
    Topic,
    is_service,
    nested,
    origin,
)
from bots.sandbox.telegram.entities import cut
from bots.sandbox.telegram.faults import Faults
from bots.sandbox.telegram.files import FileShelf
from bots.sandbox.telegram.pulse import Pulse
from bots.sandbox.telegram.updates import UpdateQueue

TELEGRAM_ITSELF: Json = {"id": 777000, "is_bot": False, "first_name": "Telegram"}
ANONYMOUS_ADMIN: Json = {
    "id": 1087968824,
    "is_bot": True,
    "first_name": "Group",
    "username": "GroupAnonymousBot",
}
CHANNEL_BOT: Json = {"id": 136817688, "is_bot": True, "first_name": "Channel", "username": "Channel_Bot"}


@dataclass
class BotAccount:
    """The bot under test.

    Privacy mode is off if `can_read_all_group_messages`; a group keeps what held when the bot came in.
    """

    id: int
    username: str
    first_name: str
    can_read_all_group_messages: bool

    def user(self) -> Json:
        """The User object."""
        return {"id": self.id, "is_bot": True, "first_name": self.first_name, "username": self.username}


@dataclass(frozen=True)
class CallbackAnswer:
    """What the bot gave to `answerCallbackQuery`: a notice, or with `show_alert` a box."""

    text: str = ""
    show_alert: bool = False
    url: str = ""
    cache_time: int = 0


@dataclass(eq=False)
class CallbackPress:
    """A pressed button that waits for its answer."""

    id: str
    answer: CallbackAnswer | None = None
    expired: bool = False


@dataclass
class Webhook:
    """What `setWebhook` was told, and how the deliveries went."""

    url: str = ""
    secret_token: str = ""
    max_connections: int = 40
    last_error_date: int = 0
    last_error_message: str = ""


@dataclass
class ApiCall:
    """One call of the bot, as it came in."""

    method: str
    arguments: Json


@dataclass
class World:
    """Everything there is. Message ids run per chat in supergroups and channels, else over all chats of the account."""

    bot: BotAccount
    token: str
    clock: Callable[[], float]
    numbers_from: int = 1
    clock_shift: float = 0.0
    pulse: Pulse = field(default_factory=Pulse)
    faults: Faults = field(default_factory=Faults)
    files: FileShelf = field(default_factory=FileShelf)
    webhook: Webhook = field(default_factory=Webhook)
    users: dict[int, Json] = field(default_factory=dict[int, Json])
    chats: dict[int, Chat] = field(default_factory=dict[int, Chat])
    connections: dict[str, BusinessConnection] = field(default_factory=dict[str, BusinessConnection])
    presses: dict[str, CallbackPress] = field(default_factory=dict[str, CallbackPress])
    calls: list[ApiCall] = field(default_factory=list[ApiCall])
    commands: list[Json] = field(default_factory=list[Json])
    spoken: list[Message] = field(default_factory=list[Message])

    def __post_init__(self) -> None:
        self.updates = UpdateQueue(self.now, self.pulse)
        self.numbers: Iterator[int] = itertools.count(self.numbers_from)
        self._account_message_ids: Iterator[int] = itertools.count(1)
        self.users[self.bot.id] = self.bot.user()

    def now(self) -> int:
        """The world's time in whole seconds since 1970."""
        return int(self.clock() + self.clock_shift)

    def add_chat(self, chat_id: int, kind: ChatKind, face: Json, *, is_forum: bool = False) -> Chat:
        """A new chat under `chat_id`."""
        # Number 1 of a supergroup or channel is the message that made it, from before the bot came in.
        ids = self._account_message_ids if kind in {"private", "group"} else itertools.count(2)
        chat = Chat(chat_id, kind, face, ids, is_forum=is_forum)
        self.chats[chat_id] = chat
        return chat

    def admit_bot(self, chat: Chat, status: str = "member") -> None:
        """Let the bot into a chat, with the privacy setting that holds now."""
        chat.members[self.bot.id] = member(self.bot.user(), status)
        chat.bot_reads_all = self.bot.can_read_all_group_messages

    def compose(
        self,
        chat: Chat,
        content: Json,
        sender: Json,
        *,
        reply_to: Message | None = None,
        quote: str | None = None,
        topic: Topic | None = None,
    ) -> Message:
        """Put a message into `chat`; nobody is told yet."""
        number = next(chat.message_ids)
        payload: Json = {"message_id": number} | sender | {"chat": chat.payload(), "date": self.now()}
        if chat.business is not None:
            payload["business_connection_id"] = chat.business.id
        if topic is None and reply_to is not None and reply_to.payload.get("is_topic_message"):
            topic = chat.topics.get(reply_to.payload["message_thread_id"])
        if topic is not None:
            payload |= {"message_thread_id": topic.id, "is_topic_message": True}
            reply_to = reply_to or chat.messages.get(topic.id)
        if reply_to is not None:
            payload |= _reply(chat, reply_to, quote)
        message = Message(chat, number, payload | content)
        chat.messages[number] = message
        return message

    def announce(self, message: Message, *, edited: bool = False) -> None:
        """Queue the update for a message, if the bot is told of it at all."""
        if not self.bot_sees(message):
            return
        chat = message.chat
        kind = "channel_post" if chat.kind == "channel" else "business_message" if chat.business else "message"
        self.updates.put(f"edited_{kind}" if edited else kind, dict(message.payload))

    def revise(self, message: Message, changes: Json) -> None:
        """Change a message in place; `None` removes a field."""
        message.former_buttons += message.buttons
        message.payload |= changes
        for name in [name for name, value in message.payload.items() if value is None]:
            del message.payload[name]
        self.pulse.beat()

    def remove(self, message: Message) -> None:
        """Delete a message; what replied to it keeps its copy, as on the real server."""
        message.deleted = True
        message.chat.messages.pop(message.id, None)
        self.pulse.beat()

    def forward_to_discussion(self, post: Message) -> None:
        """Forward a channel post into the linked group, as Telegram does by itself; other messages stay."""
        group = post.chat.linked
        if group is None or post.chat.kind != "channel":
            return
        content = content_of(post) | {"is_automatic_forward": True, "forward_origin": origin(post)}
        sender = {"from": TELEGRAM_ITSELF, "sender_chat": post.chat.payload()}
        self.announce(self.compose(group, content, sender))

    def bot_sees(self, message: Message) -> bool:
        """Which messages a bot is told of: the pages "Bots FAQ" and "Privacy mode"."""
        chat, payload = message.chat, message.payload
        if chat.business is not None:
            return chat.business.is_enabled
        if chat.kind == "private":
            return not chat.blocked
        status = chat.status_of(self.bot.id)
        if status not in {"member", "administrator"}:
            return payload.get("left_chat_member", {}).get("id") == self.bot.id
        if chat.kind == "channel" or chat.bot_reads_all or status == "administrator":
            return True
        return is_service(payload) or self._is_meant_for_bot(payload)

    def _is_meant_for_bot(self, payload: Json) -> bool:
        replied = payload.get("reply_to_message", {})
        if self.bot.id in {replied.get("from", {}).get("id"), payload.get("via_bot", {}).get("id")}:
            return True
        text = payload.get("text") or payload.get("caption") or ""
        name = f"@{self.bot.username}".lower()
        for one in payload.get("entities") or payload.get("caption_entities") or ():
            part = cut(text, one["offset"], one["length"]).lower()
            if one["type"] == "mention" and part == name:
                return True
            if one["type"] == "bot_command" and (part.endswith(name) or "@" not in part):
                return True
            if one["type"] == "text_mention" and one["user"]["id"] == self.bot.id:
                return True
        return False


_ENVELOPE = frozenset(
    {
        "message_id",
        "from",
        "sender_chat",
        "chat",
        "date",
        "edit_date",
        "message_thread_id",
        "is_topic_message",
        "reply_to_message",
        "external_reply",
        "quote",
        "author_signature",
        "business_connection_id",
        "sender_business_bot",
        "is_automatic_forward",
        "reply_markup",
    }
)


def content_of(message: Message) -> Json:
    """What a forward of the message carries along."""
    return {name: value for name, value in message.payload.items() if name not in _ENVELOPE}


def member(user: Json, status: str) -> Json:
    """A ChatMember object with every field that its status requires."""
    shown: Json = {"status": status, "user": user}
    match status:
        case "creator":
            return shown | {"is_anonymous": False}
        case "administrator":
            return shown | {"can_be_edited": False, "is_anonymous": False} | dict.fromkeys(_ADMIN_RIGHTS, True)
        case "kicked":
            return shown | {"until_date": 0}
        case _:
            return shown


_ADMIN_RIGHTS = (
    "can_manage_chat",
    "can_delete_messages",
    "can_manage_video_chats",
    "can_restrict_members",
    "can_promote_members",
    "can_change_info",
    "can_invite_users",
    "can_post_stories",
    "can_edit_stories",
    "can_delete_stories",
    "can_pin_messages",
)


def _reply(chat: Chat, replied: Message, quote: str | None) -> Json:
    shown: Json = {}
    if replied.chat is chat:
        shown["reply_to_message"] = nested(replied.payload)
    else:
        shown["external_reply"] = {
            "origin": origin(replied),
            "chat": replied.chat.payload(),
            "message_id": replied.id,
        }
    if quote is not None:
        position = len(replied.text.partition(quote)[0].encode("utf-16-le")) // 2
        shown["quote"] = {"text": quote, "position": position, "is_manual": True}
    if chat.kind == "supergroup" and not chat.is_forum and replied.chat is chat:
        shown["message_thread_id"] = replied.payload.get("message_thread_id", replied.id)
    return shown
