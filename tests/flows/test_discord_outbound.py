"""What we say on Discord, by the real discord.py, on the loopback Discord."""

from collections.abc import AsyncIterator

import pytest

from bots.sandbox.discord import DiscordSandbox, File, Permission
from bots.sandbox.discord.model import Channel, Message
from bots.sandbox.discord.people import Person
from bots.sandbox.discord.places import Server
from core.chat.port import Mode, Upload
from core.entries import Attachment
from core.errors import ChatRefused, ChatUnavailable
from core.ids import ChannelId, MessageId, SessionId
from core.sidecars import FileRef
from tests.conftest import House, Until
from tests.flows.discord_house import Door, door_on

POST = "POST /channels/"


@pytest.fixture
async def sandbox() -> AsyncIterator[DiscordSandbox]:
    async with DiscordSandbox() as discord:
        yield discord


@pytest.fixture
def club(sandbox: DiscordSandbox) -> Server:
    return sandbox.guild("Film club")


@pytest.fixture
def channel(club: Server) -> Channel:
    return club.text_channel("general")


@pytest.fixture
def mona(sandbox: DiscordSandbox, club: Server) -> Person:
    return sandbox.user("Mona")


@pytest.fixture
async def door(sandbox: DiscordSandbox, channel: Channel, mona: Person, house: House) -> AsyncIterator[Door]:
    async with door_on(sandbox, house) as opened:
        yield opened


async def say(
    door: Door,
    channel: Channel,
    text: str,
    *uploads: Upload,
    mode: Mode = "markdown",
    quote: str | None = None,
    nonce: str = "speech-1:1",
) -> list[MessageId]:
    (part,) = door.chat(channel).compose(text, mode)
    quoted = None if quote is None else MessageId(quote)
    return await door.chat(channel).send(part, uploads, quote=quoted, thread=None, nonce=nonce)


def newest(channel: Channel) -> Message:
    return list(channel.messages.values())[-1]


async def test_a_part_is_sent_as_a_reply_that_pings_its_author_and_the_users_it_names_and_nobody_else(
    door: Door, sandbox: DiscordSandbox, club: Server, channel: Channel, mona: Person
) -> None:
    jiro, mods = sandbox.user("Jiro"), club.role("mods")
    question = await mona.say(channel, "who?")
    text = f'<at id="{jiro.id}"/> <at role="{mods.id}"/> <at type="all"/> &lt;b&gt;'
    ids = await say(door, channel, text, mode="element", quote=question.id)
    sent = newest(channel)
    assert ids == [sent.id]
    assert sent.reference is not None
    assert sent.reference.message_id == question.id
    assert {user.id for user in sent.mentions} == {jiro.id, mona.id}
    assert (sent.mention_roles, sent.mention_everyone) == ([], False)


async def test_the_same_nonce_again_is_the_same_message(door: Door, sandbox: DiscordSandbox, channel: Channel) -> None:
    sandbox.lose_answer(POST, status=503)
    with pytest.raises(ChatUnavailable):
        await say(door, channel, "once")
    ids = await say(door, channel, "once")
    assert [message.content for message in sandbox.history(channel)] == ["once"]
    assert ids == [newest(channel).id]
    await say(door, channel, "once", nonce="speech-1:2")
    assert len(sandbox.history(channel)) == 2


async def test_a_quoted_message_that_is_gone_or_cannot_be_quoted_is_left_out(
    door: Door, sandbox: DiscordSandbox, channel: Channel, mona: Person
) -> None:
    question = await mona.say(channel, "who?")
    await mona.delete(question)
    await say(door, channel, "me", quote=question.id)
    await say(door, channel, "me too", quote="no number", nonce="2")
    assert [message.reference for message in sandbox.history(channel)] == [None, None]


async def test_files_go_with_their_part(door: Door, sandbox: DiscordSandbox, channel: Channel) -> None:
    await say(
        door,
        channel,
        'see <img src="asset://1"/>',
        Upload("cat.png", b"\x89PNG", "image/png"),
        Upload("notes.txt", b"abc", "text/plain"),
        mode="element",
    )
    sent = newest(channel)
    assert sent.content.strip() == "see"
    assert [(item.file.name, item.file.data) for item in sent.attachments] == [
        ("cat.png", b"\x89PNG"),
        ("notes.txt", b"abc"),
    ]


async def test_what_discord_refuses_is_told_with_the_cure(
    door: Door, sandbox: DiscordSandbox, channel: Channel
) -> None:
    await sandbox.deny(channel, Permission.SEND_MESSAGES)
    with pytest.raises(ChatRefused, match="send messages") as refused:
        await say(door, channel, "hello")
    assert refused.value.name == "Forbidden"
    await sandbox.delete_channel(channel)
    with pytest.raises(ChatRefused, match="gone"):
        await say(door, channel, "hello")


async def test_limits_are_waited_for_or_told_with_their_time(
    door: Door, sandbox: DiscordSandbox, channel: Channel
) -> None:
    sandbox.rate_limit(POST, 0.05)
    await say(door, channel, "waited for")
    sandbox.rate_limit(POST, 120.0)
    with pytest.raises(ChatUnavailable) as long:
        await say(door, channel, "too long to wait", nonce="2")
    assert long.value.retry_after == 120.0
    sandbox.rate_limit(POST, 7.0, via=False)
    with pytest.raises(ChatUnavailable) as banned:
        await say(door, channel, "at the edge", nonce="3")
    assert banned.value.name == "RateLimited"


async def test_a_cut_line_and_a_closed_door_may_be_tried_again(
    door: Door, sandbox: DiscordSandbox, channel: Channel
) -> None:
    sandbox.fail(POST, 0)
    with pytest.raises(ChatUnavailable):
        await say(door, channel, "hello")
    await door.inbound.stop()
    with pytest.raises(ChatUnavailable, match="not connected"):
        await say(door, channel, "hello")


# --- links --------------------------------------------------------------------------------------------------------


def ref_of(channel: Channel, message: Message, file: str) -> FileRef:
    place, number = ChannelId(channel.id), MessageId(message.id)
    return FileRef(platform="discord", channel_id=place, message_id=number, attachment_id=file)


async def test_a_link_is_the_one_that_came_along_and_a_dead_one_is_asked_for_anew(
    door: Door, sandbox: DiscordSandbox, channel: Channel, mona: Person, until: Until
) -> None:
    message = await mona.say(channel, "look", files=[File("cat.png", b"\x89PNG", "image/png")])
    forward = await mona.say(channel, forward=message)
    await until(lambda: len([fact for fact in door.facts(channel) if isinstance(fact, Attachment)]) == 2)
    file = message.attachments[0].id
    asked = len(sandbox.calls)
    first = await door.chat(channel).link(ref_of(channel, message, file), fresh=False)
    assert len(sandbox.calls) == asked
    assert first.hosts == {sandbox.cdn_host}
    sandbox.expire_links()
    for holder in (message, forward):
        fresh = await door.chat(channel).link(ref_of(channel, holder, file), fresh=True)
        assert fresh.url != first.url
    await mona.delete(message)
    with pytest.raises(ChatRefused):
        await door.chat(channel).link(ref_of(channel, message, file), fresh=True)


async def test_the_link_of_a_sticker_is_made_from_the_first_host(
    door: Door, sandbox: DiscordSandbox, club: Server, channel: Channel, mona: Person, until: Until
) -> None:
    sticker = club.sticker("wave", b"\x89PNG")
    message = await mona.say(channel, sticker=sticker)
    await until(lambda: len(door.facts(channel)) == 2)
    for fresh in (False, True):
        link = await door.chat(channel).link(ref_of(channel, message, sticker.id), fresh=fresh)
        assert link.url == f"http://{sandbox.cdn_host}/stickers/{sticker.id}.png"


async def test_a_chat_of_another_platform_is_not_ours(door: Door) -> None:
    assert door.inbound.chat(SessionId("tg-5")) is None
