"""Ordinary messages are made as the library makes them, attribute for attribute; all others are left to it."""

import copy
import json
from collections.abc import Iterator
from typing import Any, cast

import discord
import pytest

from bots.discord.objects import MADE_FOR, ordinary
from tests.bots.discord import payloads
from tests.bots.discord.payloads import CHANNEL, DM, GUILD, JIRO, MESSAGE, MONA, ROLE, THREAD, Library, Payload

ORIGINAL = payloads.message("what?", id="1399999999999999999", guild_id=..., member=..., components=[])
REPLY = {"type": 19, "message_reference": {"message_id": ORIGINAL["id"], "channel_id": CHANNEL, "guild_id": GUILD}}
JIRO_HERE = payloads.user(JIRO, "Jiro", bot=True) | {"member": payloads.member(nick="J", roles=[ROLE])}

ORDINARY: dict[str, Payload] = {
    "text": {},
    "with all that is usual": {"components": [], "nonce": "5", "channel_type": 0, "position": 3, "flags": 4},
    "edited": {"edited_timestamp": "2026-11-01T19:05:00+00:00"},
    "in a thread": {"channel_id": THREAD},
    "by nobody of the server": {"member": ...},
    "by one with a nickname": {"member": payloads.member(nick="Mo", permissions="8", avatar="b", pending=True)},
    "by one who may not speak": {"member": payloads.member(communication_disabled_until="2027-01-01T00:00:00+00:00")},
    "to people": {"mentions": [JIRO_HERE, payloads.user(MONA, "Mona")], "mention_everyone": True},
    "with files": {
        "attachments": [payloads.attachment("7", "a.png", width=2, height=1), payloads.attachment("8", "b")]
    },
    "a reply": REPLY | {"referenced_message": ORIGINAL},
    "a reply to what is gone": REPLY | {"referenced_message": None},
    "a reply to what was not sent along": REPLY,
}
EXTRAORDINARY: dict[str, Payload] = {
    "direct": {"guild_id": ..., "member": ..., "channel_id": DM},
    "on a server that is not known": {"guild_id": "1"},
    "in a channel that is not known": {"channel_id": "1"},
    "a notice": {"type": 7},
    "of a webhook": {"webhook_id": "5"},
    "with something new": {"a_member_of_next_year": 1},
    "with an embed": {"embeds": [{"type": "rich", "title": "x"}]},
    "to a role": {"mention_roles": [ROLE]},
    "by nobody": {"author": None},
    "by one without a name": {"author": {"id": MONA}},
    "by one without a number": {"author": payloads.user("-5", "Mona")},
    "by Discord": {"author": payloads.user(MONA, "Mona", system=True)},
    "by a member without roles": {"member": {}},
    "to one without a number": {"mentions": [payloads.user("x", "X")]},
    "to nobody": {"mentions": [None]},
    "with a bare file": {"attachments": [{"id": "5", "url": "u"}]},
    "without files": {"attachments": None},
    "a reply from elsewhere": {"type": 19, "message_reference": {"message_id": "1", "channel_id": "2"}}
    | {"referenced_message": ORIGINAL | {"channel_id": "2"}},
    "a reply to what is not ordinary": REPLY | {"referenced_message": ORIGINAL | {"sticker_items": []}},
}


def test_they_are_made_for_the_version_that_is_installed() -> None:
    assert discord.__version__ == MADE_FOR, "see what has changed in the library's objects, then say so"


@pytest.fixture
def library() -> Library:
    return Library()


def made(library: Library, payload: Payload) -> discord.Message | None:
    return ordinary(payload, library.get_guild, library._connection)  # pyright: ignore[reportPrivateUsage] - the library's own


def told(value: object) -> object:
    """What an object tells of itself in its public attributes, and what those do."""
    match value:
        case discord.Member() | discord.User():
            names = ("id", "name", "global_name", "display_name", "bot", "system", "avatar", "discriminator", "nick")
            names += ("roles", "joined_at", "premium_since", "timed_out_until", "pending", "flags", "guild_avatar")
            return isinstance(value, discord.Member), {name: told(getattr(value, name, ...)) for name in names}
        case discord.Message() | discord.Attachment() | discord.MessageReference() | discord.DeletedReferencedMessage():
            return {name: told(getattr(value, name, ...)) for name in set(_public(type(value)))}
        case list():
            return [told(item) for item in cast("list[object]", value)]
        case discord.Asset():
            return str(value)
        case _:
            return value


def _public(kind: type) -> Iterator[str]:
    yield from ("edited_at", "created_at", "resolved") if kind is not discord.Attachment else ()
    for one in kind.__mro__:
        slots: Any = getattr(one, "__slots__", ())
        yield from (name for name in slots if not name.startswith("_") and name != "cached_message")


@pytest.mark.parametrize("members", ORDINARY.values(), ids=ORDINARY.keys())
def test_an_ordinary_message_is_what_the_library_makes_of_it(library: Library, members: Payload) -> None:
    payload = payloads.message("hello <#900000000000000002>", **members)
    before = json.dumps(payload)
    message = made(library, payload)
    assert message is not None
    assert json.dumps(payload) == before
    channel: Any = library.get_channel(int(payload["channel_id"]))
    library_s = discord.Message(state=library._connection, channel=channel, data=copy.deepcopy(payload))  # pyright: ignore[reportPrivateUsage, reportArgumentType] - JSON
    assert told(message) == told(library_s)


@pytest.mark.parametrize("members", EXTRAORDINARY.values(), ids=EXTRAORDINARY.keys())
def test_all_others_are_left_to_the_library_as_they_are(library: Library, members: Payload) -> None:
    payload = payloads.message(**members)
    before = json.dumps(payload)
    assert made(library, payload) is None
    assert json.dumps(payload) == before


def test_the_channel_knows_its_newest_message_either_way(library: Library) -> None:
    for number, members in ((int(MESSAGE), {}), (int(MESSAGE) + 1, {"webhook_id": "5"})):
        library.read(payloads.message(id=str(number), **members))
        channel = library.get_channel(int(CHANNEL))
        assert isinstance(channel, discord.TextChannel)
        assert channel.last_message_id == number


def test_one_that_the_ear_trips_over_is_told_once(library: Library) -> None:
    heard: list[int] = []

    def on_message(message: discord.Message, *, sent_at: int | None) -> None:
        heard.append(message.id)
        raise ValueError(sent_at)

    library.heard.on_message = on_message
    library.tell("MESSAGE_CREATE", payloads.message())
    assert heard == [int(MESSAGE)]
    assert library.heard.unread == ["MESSAGE_CREATE"]
