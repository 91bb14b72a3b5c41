"""Payloads as the API reference documents them, and the library's own objects made of them."""

from dataclasses import dataclass, field
from typing import Any

import discord

from bots.discord.connection import Connection

Payload = dict[str, Any]

BOT, MONA, JIRO = "900000000000000009", "900000000000000011", "900000000000000012"
GUILD, CHANNEL, THREAD, DM = "900000000000000001", "900000000000000002", "900000000000000003", "900000000000000004"
ROLE = "900000000000000005"
MESSAGE = "1400000000000000000"


def user(number: str, name: str, **rest: Any) -> Payload:
    return {"id": number, "username": name.lower(), "global_name": name, "discriminator": "0", "avatar": None} | rest


def member(**rest: Any) -> Payload:
    payload: Payload = {"roles": [], "joined_at": "2024-01-01T00:00:00+00:00", "deaf": False, "mute": False, "flags": 0}
    return payload | rest


def message(content: str = "hello", **rest: Any) -> Payload:
    """A message of Mona in the server's channel; None takes a member away."""
    payload: Payload = {
        "id": MESSAGE,
        "channel_id": CHANNEL,
        "guild_id": GUILD,
        "author": user(MONA, "Mona"),
        "member": member(),
        "content": content,
        "timestamp": "2026-11-01T19:00:00.123000+00:00",
        "edited_timestamp": None,
        "tts": False,
        "mention_everyone": False,
        "mentions": [],
        "mention_roles": [],
        "attachments": [],
        "embeds": [],
        "pinned": False,
        "type": 0,
        "flags": 0,
    }
    return {name: value for name, value in (payload | rest).items() if value is not ...}


def attachment(number: str, name: str, **rest: Any) -> Payload:
    url = f"https://cdn.discordapp.com/attachments/{CHANNEL}/{number}/file?ex=1&is=2&hm=3&"
    return {"id": number, "filename": name, "size": 68, "url": url, "proxy_url": url} | rest


def channel(number: str, name: str, kind: int = 0, **rest: Any) -> Payload:
    payload: Payload = {
        "id": number,
        "type": kind,
        "guild_id": GUILD,
        "name": name,
        "position": 0,
        "permission_overwrites": [],
        "nsfw": False,
        "parent_id": None,
    }
    return payload | rest


def guild() -> Payload:
    roles = [
        {"id": number, "name": name, "permissions": "0", "position": 0, "color": 0, "hoist": False, "managed": False}
        | {"mentionable": True}
        for number, name in ((GUILD, "@everyone"), (ROLE, "mods"))
    ]
    thread = channel(THREAD, "plans", 11, parent_id=CHANNEL, owner_id=MONA, message_count=1, member_count=1) | {
        "rate_limit_per_user": 0,
        "thread_metadata": {
            "archived": False,
            "archive_timestamp": "2026-11-01T00:00:00+00:00",
            "auto_archive_duration": 1440,
        },
    }
    return {
        "id": GUILD,
        "name": "Film club",
        "owner_id": MONA,
        "roles": roles,
        "channels": [channel(CHANNEL, "general")],
        "threads": [thread],
        "members": [],
        "emojis": [],
        "features": [],
        "unavailable": False,
        "member_count": 2,
        "verification_level": 0,
        "default_message_notifications": 0,
        "explicit_content_filter": 0,
        "mfa_level": 0,
        "nsfw_level": 0,
        "premium_tier": 0,
        "preferred_locale": "en-US",
        "system_channel_flags": 0,
    }


@dataclass
class Heard:
    """An ear that keeps what it is told."""

    messages: list[tuple[discord.Message, int | None]] = field(default_factory=list[tuple[discord.Message, int | None]])
    deleted: list[discord.RawMessageDeleteEvent] = field(default_factory=list[discord.RawMessageDeleteEvent])
    bulks: list[tuple[discord.RawBulkMessageDeleteEvent, list[int]]] = field(
        default_factory=list[tuple[discord.RawBulkMessageDeleteEvent, list[int]]]
    )
    interactions: list[discord.Interaction] = field(default_factory=list[discord.Interaction])
    unread: list[str] = field(default_factory=list[str])

    def on_message(self, message: discord.Message, *, sent_at: int | None) -> None:
        self.messages.append((message, sent_at))

    def on_raw_message_edit(self, message: discord.Message, *, sent_at: int | None) -> None:
        self.messages.append((message, sent_at))

    def on_raw_message_delete(self, event: discord.RawMessageDeleteEvent) -> None:
        self.deleted.append(event)

    def on_raw_bulk_message_delete(self, event: discord.RawBulkMessageDeleteEvent, order: list[int]) -> None:
        self.bulks.append((event, order))

    def on_interaction(self, interaction: discord.Interaction) -> None:
        self.interactions.append(interaction)

    def on_connect(self, *, anew: bool) -> None: ...

    def on_servers(self) -> None: ...

    def on_disconnect(self) -> None: ...

    def on_unread(self, kind: str, error: Exception) -> None:
        self.unread.append(kind)


class Library(Connection):
    """The real client without a socket: events are put in where the gateway would."""

    def __init__(self) -> None:
        self.heard = Heard()
        super().__init__(self.heard)
        self.tell("GUILD_CREATE", guild())

    def tell(self, kind: str, payload: Payload) -> None:
        self._connection.parsers[kind](payload)

    def read(self, payload: Payload, kind: str = "MESSAGE_CREATE") -> tuple[discord.Message, int | None]:
        """The library's object of a payload, and the payload's own time."""
        self.tell(kind, payload)
        assert not self.heard.unread, "the library could not parse the payload"
        return self.heard.messages.pop()
