"""What a person does with a Telegram app."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Unpack

from bots.sandbox.telegram.chats import BusinessConnection, Chat, Json, Message, Topic, nested, origin
from bots.sandbox.telegram.files import File
from bots.sandbox.telegram.payloads import Saying, content, media
from bots.sandbox.telegram.world import (
    ANONYMOUS_ADMIN,
    CHANNEL_BOT,
    CallbackAnswer,
    CallbackPress,
    World,
    content_of,
    member,
)


class Person:
    """An account other than the bot under test; also another bot. Made by `TelegramSandbox.user`."""

    def __init__(self, world: World, user: Json) -> None:
        self._world = world
        self.user = user
        self.id: int = user["id"]
        self._private: Chat | None = None

    @property
    def private_chat(self) -> Chat:
        """The direct chat with the bot; the bot cannot write there before this person has."""
        if self._private is None:
            face = {name: self.user[name] for name in ("first_name", "last_name", "username") if name in self.user}
            self._private = self._world.add_chat(self.id, "private", face)
        return self._private

    async def say(self, chat: Chat, text: str = "", **details: Unpack[Saying]) -> Message:
        """Send a message. In a channel it is a post, and goes on into the linked group."""
        chat.started = True
        if (forwarded := details.get("forward")) is not None:
            body = content_of(forwarded) | {"forward_origin": self._origin(forwarded, details)}
        else:
            body = content(self._world, text, details)
        if (other := details.get("via_bot")) is not None:
            body["via_bot"] = other.user
        message = self._world.compose(
            chat,
            body,
            self._sender(chat, details),
            reply_to=details.get("reply_to"),
            quote=details.get("quote"),
            topic=details.get("topic"),
        )
        self._world.announce(message)
        self._world.forward_to_discussion(message)
        return message

    async def send_album(
        self, chat: Chat, files: Sequence[File], caption: str = "", order: Sequence[int] | None = None
    ) -> list[Message]:
        """Send photos, videos or documents as one album, captioned on the first; `order` is that of the updates."""
        chat.started = True
        album_id = str(13_000_000_000_000_000 + next(self._world.numbers))
        album: list[Message] = []
        for file in files:
            kind = {"image": "photo", "video": "video", "audio": "audio"}.get(
                file.completed().content_type.partition("/")[0], "document"
            )
            body = media(self._world, kind, file) | {"media_group_id": album_id}
            if caption and not album:
                body["caption"] = caption
            album.append(self._world.compose(chat, body, self._sender(chat, {})))
        for index in range(len(album)) if order is None else order:
            self._world.announce(album[index])
            self._world.forward_to_discussion(album[index])
        return album

    async def edit(self, message: Message, text: str, **details: Unpack[Saying]) -> Message:
        """Change the text or caption, and the medium if one is given."""
        fields = content(self._world, text, details)
        if "text" in message.payload:
            fields = {"entities": None} | fields
        else:
            words: Json = {"caption": fields.pop("text", None), "caption_entities": fields.pop("entities", None)}
            fields = words | fields
        return await self._edited(message, fields)

    async def touch(self, message: Message) -> Message:
        """Cause the `edited_message` of an invisible change: the content stays, `edit_date` moves."""
        return await self._edited(message, {})

    async def _edited(self, message: Message, fields: Json) -> Message:
        self._world.revise(message, fields | {"edit_date": self._world.now()})
        self._world.announce(message, edited=True)
        return message

    async def delete(self, *messages: Message) -> None:
        """Delete messages; bots are told only in business chats, of all those of one chat at once."""
        for chat in {message.chat.id: message.chat for message in messages}.values():
            gone = [message for message in messages if message.chat is chat]
            for message in gone:
                self._world.remove(message)
            if chat.business is not None and chat.business.is_enabled:
                told: Json = {
                    "business_connection_id": chat.business.id,
                    "chat": chat.payload(),
                    "message_ids": [message.id for message in gone],
                }
                self._world.updates.put("deleted_business_messages", told)

    async def press(self, message: Message, button: str, within: float = 5.0) -> CallbackAnswer | None:
        """Press an inline button named by its data or its label, one that the message has or had.

        Returns the bot's answer, or `None` if it was silent for `within` seconds.
        """
        press = await self.press_unanswered(message, button)
        with suppress(TimeoutError):
            return await self._world.pulse.until(lambda: press.answer, within)
        return None

    async def press_unanswered(self, message: Message, button: str) -> CallbackPress:
        """The same without waiting: returns the press, whose `answer` comes later."""
        known = [*message.buttons, *message.former_buttons]
        data = next(
            (one.get("callback_data") for one in known if button in {one.get("callback_data"), one["text"]}), None
        )
        if data is None:
            raise ValueError(f"the message has no button {button!r}, only {[one['text'] for one in known]}")
        press = CallbackPress(str(4_380_000_000_000_000_000 + next(self._world.numbers)))
        self._world.presses[press.id] = press
        shown = {"chat": message.chat.payload(), "message_id": message.id, "date": 0}
        query: Json = {
            "id": press.id,
            "from": self.user,
            "message": shown if message.deleted else dict(message.payload),
            "chat_instance": str(-7_000_000_000_000_000_000 - message.chat.id),
            "data": data,
        }
        self._world.updates.put("callback_query", query)
        return press

    async def react(self, message: Message, *emoji: str) -> None:
        """Set this person's reactions. Groups and channels tell administrators only, channels mere counts."""
        chat, payload = message.chat, message.payload
        old = message.reactions.get(self.id, [])
        message.reactions[self.id] = list(emoji)
        if chat.kind != "private" and chat.status_of(self._world.bot.id) != "administrator":
            return
        place: Json = {"chat": chat.payload(), "message_id": payload["message_id"], "date": self._world.now()}
        if chat.kind == "channel":
            totals = Counter(itertools.chain.from_iterable(message.reactions.values()))
            counts = [{"type": _emoji(one), "total_count": total} for one, total in totals.items()]
            self._world.updates.put("message_reaction_count", place | {"reactions": counts})
            return
        change: Json = {"old_reaction": [_emoji(one) for one in old], "new_reaction": [_emoji(one) for one in emoji]}
        self._world.updates.put("message_reaction", place | {"user": self.user} | change)

    async def join(self, chat: Chat) -> None:
        """Come into a group or channel; an administrator bot is told by `chat_member` as well."""
        self._change_membership(chat, self.user, "member")
        if chat.kind != "channel":
            await self.service(chat, {"new_chat_members": [self.user]})

    async def leave(self, chat: Chat) -> None:
        """Leave a group or channel."""
        self._change_membership(chat, self.user, "left")
        if chat.kind != "channel":
            await self.service(chat, {"left_chat_member": self.user})

    async def add_bot(self, chat: Chat, status: str = "member") -> None:
        """Bring the bot in, or raise it to `administrator`."""
        was_in = chat.status_of(self._world.bot.id) in {"member", "administrator"}
        self._change_membership(chat, self._world.bot.user(), status)
        chat.bot_reads_all = chat.bot_reads_all if was_in else self._world.bot.can_read_all_group_messages
        if not was_in and chat.kind != "channel":
            await self.service(chat, {"new_chat_members": [self._world.bot.user()]})

    async def remove_bot(self, chat: Chat) -> None:
        """Throw the bot out."""
        self._change_membership(chat, self._world.bot.user(), "kicked")
        if chat.kind != "channel":
            await self.service(chat, {"left_chat_member": self._world.bot.user()})

    async def block_bot(self) -> None:
        """Block the bot: it gets 403 in the direct chat from now on."""
        self._change_membership(self.private_chat, self._world.bot.user(), "kicked")
        self.private_chat.blocked = True

    async def unblock_bot(self) -> None:
        """Start the bot again."""
        self.private_chat.blocked = False
        self._change_membership(self.private_chat, self._world.bot.user(), "member")

    async def rename(self, chat: Chat, title: str) -> Message:
        """Give the chat another title."""
        chat.face["title"] = title
        return await self.service(chat, {"new_chat_title": title})

    async def pin(self, message: Message) -> Message:
        """Pin a message."""
        return await self.service(message.chat, {"pinned_message": nested(message.payload)})

    async def create_topic(self, forum: Chat, name: str) -> Topic:
        """Open a topic; the service message that makes it comes first and gives it its number."""
        message = self._world.compose(forum, {}, self._sender(forum, {}))
        topic = Topic(message.id, name)
        forum.topics[topic.id] = topic
        created = {"forum_topic_created": {"name": name, "icon_color": topic.icon_color}}
        message.payload |= {"message_thread_id": topic.id, "is_topic_message": True} | created
        self._world.announce(message)
        return topic

    async def delete_topic(self, forum: Chat, topic: Topic) -> None:
        """Delete a topic with all that is in it; bots are told nothing."""
        del forum.topics[topic.id]
        inside = [one for one in forum.messages.values() if one.payload.get("message_thread_id") == topic.id]
        await self.delete(*inside)

    async def connect_business(self, rights: Json | None = None) -> BusinessConnection:
        """Let the bot act for this account; by default it may read and reply."""
        self.private_chat.started = True
        connection = BusinessConnection(
            f"AgAD{next(self._world.numbers):08d}sandboxBusiness",
            self.user,
            self.id,
            self._world.now(),
            itertools.count(1),
            {"can_reply": True, "can_read_messages": True} if rights is None else rights,
        )
        self._world.connections[connection.id] = connection
        self._world.updates.put("business_connection", connection.payload())
        return connection

    async def disconnect_business(self, connection: BusinessConnection) -> None:
        """End it; the bot is told that it is no longer enabled."""
        connection.is_enabled = False
        self._world.updates.put("business_connection", connection.payload())

    def business_chat(self, connection: BusinessConnection) -> Chat:
        """This customer's chat with the owner of the connection; both may speak in it."""
        if self.id not in connection.chats:
            face = dict(self.private_chat.face)
            chat = Chat(self.id, "private", face, connection.message_ids, business=connection, started=True)
            connection.chats[self.id] = chat
        return connection.chats[self.id]

    async def service(self, chat: Chat, fields: Json, topic: Topic | None = None) -> Message:
        """A service message by this person, with `fields` as documented for Message."""
        message = self._world.compose(chat, fields, self._sender(chat, {}), topic=topic)
        self._world.announce(message)
        return message

    def _sender(self, chat: Chat, details: Saying) -> Json:
        if chat.kind == "channel":
            return {"sender_chat": chat.payload()}
        if details.get("anonymous", False):
            return {"from": ANONYMOUS_ADMIN, "sender_chat": chat.payload()}
        if (mask := details.get("as_chat")) is not None:
            return {"from": CHANNEL_BOT, "sender_chat": mask.payload()}
        return {"from": self.user}

    def _origin(self, forwarded: Message, details: Saying) -> Json:
        shown = origin(forwarded)
        if details.get("hide_forwarder", False):
            name = shown["sender_user"]["first_name"]
            return {"type": "hidden_user", "sender_user_name": name, "date": shown["date"]}
        return shown

    def _change_membership(self, chat: Chat, user: Json, status: str) -> None:
        bot_id = self._world.bot.id
        old = chat.members.get(user["id"]) or member(user, "member" if chat.kind == "private" else "left")
        new = chat.members[user["id"]] = member(user, status)
        change: Json = {
            "chat": chat.payload(),
            "from": self.user,
            "date": self._world.now(),
            "old_chat_member": old,
            "new_chat_member": new,
        }
        if user["id"] == bot_id:
            self._world.updates.put("my_chat_member", change)
        elif chat.status_of(bot_id) == "administrator":
            self._world.updates.put("chat_member", change)


def _emoji(emoji: str) -> Json:
    return {"type": "emoji", "emoji": emoji}
