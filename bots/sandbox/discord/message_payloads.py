"""The documented JSON of messages and what they hold (Message, Poll and Attachment objects)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from bots.sandbox.discord.model import (
    Attachment,
    Channel,
    JsonObject,
    Message,
    MessageType,
    Poll,
    Reference,
    User,
)
from bots.sandbox.discord.payloads import channel, iso, partial_emoji, partial_member, sticker_item, user

USER_INPUT: JsonObject = {"content": "", "embeds": [], "attachments": [], "components": []}
"""What a message is reduced to without the Message Content intent; `poll` goes too."""

REFERRING_TYPES = (MessageType.REPLY, MessageType.COMPONENT_REPLY, MessageType.THREAD_STARTER)
"""Message types that carry `referenced_message`."""


def attachment(item: Attachment, url: str) -> JsonObject:
    file = item.file
    payload: JsonObject = {
        "id": item.id,
        "filename": file.name,
        "size": len(file.data) if file.size is None else file.size,
        "url": url,
        "proxy_url": url,
        "original_content_type": file.content_type,
        "content_type": file.content_type,
        "width": item.width,
        "height": item.height,
        "description": file.description,
        "duration_secs": file.duration_secs,
        "waveform": file.waveform,
    }
    return {key: value for key, value in payload.items() if value is not None}


def poll(item: Poll, created: datetime) -> JsonObject:
    answers: list[JsonObject] = []
    for number, text in enumerate(item.answers, start=1):
        media: JsonObject = {"text": text}
        if number <= len(item.emoji) and (emoji := item.emoji[number - 1]) is not None:
            media["emoji"] = partial_emoji(emoji)
        answers.append({"answer_id": number, "poll_media": media})
    return {
        "question": {"text": item.question},
        "answers": answers,
        "expiry": iso(created + timedelta(hours=item.hours)),
        "allow_multiselect": item.multiselect,
        "layout_type": 1,
        "results": {"answer_counts": [], "is_finalized": False},
    }


def reference(item: Reference) -> JsonObject:
    payload: JsonObject = {
        "type": item.type,
        "channel_id": item.channel_id,
        "message_id": item.message_id,
        "guild_id": item.guild_id,
    }
    return {key: value for key, value in payload.items() if value is not None}


def reaction(emoji: str, accounts: list[User], bot: User) -> JsonObject:
    return {
        "emoji": partial_emoji(emoji),
        "count": len(accounts),
        "count_details": {"burst": 0, "normal": len(accounts)},
        "burst_colors": [],
        "me": bot in accounts,
        "me_burst": False,
        "burst_me": False,
        "burst_count": 0,
    }


@dataclass(frozen=True, slots=True)
class MessagePayloads:
    """Draws messages for one bot.

    `sign` gives a fresh link for an attachment; `find` the message with a channel's and a message's id, if it is there.
    """

    bot: User
    sign: Callable[[Channel, Attachment], str]
    find: Callable[[str, str], Message | None]

    def rest(self, item: Message, *, nested: bool = False) -> JsonObject:
        """A message as REST answers it; `nested` leaves out what a referenced message does not carry itself."""
        payload = self._core(item) | {
            "id": item.id,
            "channel_id": item.channel.id,
            "author": user(item.author),
            "tts": item.tts,
            "mention_everyone": item.mention_everyone,
            "pinned": item.pinned,
        }
        optional: JsonObject = {
            "webhook_id": item.webhook_id,
            "application_id": item.application_id,
            "interaction_metadata": item.interaction_metadata,
            "nonce": item.nonce,
        }
        payload |= {key: value for key, value in optional.items() if value is not None}
        if item.channel.is_thread:
            payload["position"] = item.position
        if item.reactions:
            payload["reactions"] = [reaction(emoji, who, self.bot) for emoji, who in item.reactions.items()]
        if item.reference is not None:
            payload["message_reference"] = reference(item.reference)
            if item.type in REFERRING_TYPES and not nested:
                original = self.find(item.reference.channel_id, item.reference.message_id or "")
                payload["referenced_message"] = None if original is None else self.rest(original, nested=True)
        if item.snapshot is not None:
            payload["message_snapshots"] = [{"message": self._core(item.snapshot)}]
        if item.thread is not None:
            payload["thread"] = channel(item.thread, self.bot)
        return payload

    def gateway(self, item: Message) -> JsonObject:
        """A message as MESSAGE_CREATE and MESSAGE_UPDATE bring it: with the guild, and the members it names."""
        payload = self.rest(item) | {"channel_type": int(item.channel.type)}
        place = item.channel.guild
        if place is None:
            return payload
        payload["guild_id"] = place.id
        if item.author.id in place.members and item.webhook_id is None:
            payload["member"] = partial_member(place, item.author)
        payload["mentions"] = [
            user(who) | ({"member": partial_member(place, who)} if who.id in place.members else {})
            for who in item.mentions
        ]
        return payload

    def redacted(self, item: Message, payload: JsonObject) -> JsonObject | None:
        """The same without user input; None where the bot may read it anyway (DMs, own messages, mentions of it)."""
        if item.channel.guild is None or item.author is self.bot or self.bot in item.mentions:
            return None
        reduced = payload | USER_INPUT
        reduced.pop("poll", None)
        if reduced.get("referenced_message") is not None and item.reference is not None:
            original = self.find(item.reference.channel_id, item.reference.message_id or "")
            if original is not None:
                quoted = reduced["referenced_message"]
                reduced["referenced_message"] = self.redacted(original, quoted) or quoted
        if "message_snapshots" in reduced:
            parts = [part["message"] | USER_INPUT for part in reduced["message_snapshots"]]
            reduced["message_snapshots"] = [
                {"message": {key: value for key, value in part.items() if key != "poll"}} for part in parts
            ]
        return reduced

    def _core(self, item: Message) -> JsonObject:
        """The part of a message that a snapshot holds too."""
        payload: JsonObject = {
            "type": int(item.type),
            "content": item.content,
            "mentions": [user(who) for who in item.mentions],
            "mention_roles": list(item.mention_roles),
            "attachments": [attachment(part, self.sign(item.channel, part)) for part in item.attachments],
            "embeds": list(item.embeds),
            "timestamp": iso(item.timestamp),
            "edited_timestamp": None if item.edited_timestamp is None else iso(item.edited_timestamp),
            "flags": int(item.flags),
            "components": list(item.components),
        }
        if item.stickers:
            payload["sticker_items"] = [sticker_item(part) for part in item.stickers]
        if item.poll is not None:
            payload["poll"] = poll(item.poll, item.timestamp)
        return payload
