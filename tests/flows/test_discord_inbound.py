"""The real discord.py against the loopback Discord, into a real log."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bots.discord.inbound import Limits
from bots.sandbox.discord import DiscordSandbox, File, Intent, Poll
from bots.sandbox.discord.model import PRIVILEGED, Channel
from bots.sandbox.discord.people import Person
from bots.sandbox.discord.places import Server
from core.content import plain_text
from core.entries import Attachment, MessageCreated, MessageDeleted
from core.errors import TokenRefused
from core.ids import discord_session
from core.log.disk import Disk
from tests.conftest import House, Until
from tests.flows.discord_house import Door, door_on

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000100000000908060000003b2aac320000000e49444154789c63601805a321000002490001"
    "5f6d4a4b0000000049454e44ae426082"
)


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


# --- what is recorded ---------------------------------------------------------------------------------------------


async def test_a_message_an_edit_and_a_retraction_stand_in_the_log(
    door: Door, channel: Channel, mona: Person, until: Until
) -> None:
    message = await mona.say(channel, "Thursday **then**?")
    await mona.edit(message, "Friday then?")
    await mona.delete(message)
    await until(lambda: len(door.facts(channel)) == 3)
    first, edited, gone = door.facts(channel)
    assert isinstance(first, MessageCreated)
    assert isinstance(edited, MessageCreated)
    assert isinstance(gone, MessageDeleted)
    assert (first.content, first.edited, first.is_direct) == ("Thursday <b>then</b>?", None, False)
    assert (first.user.id, first.user.name, first.via) == (mona.id, "Mona", None)
    assert edited.content == "Friday then?"
    assert edited.edited is not None
    assert (edited.edited.revision, edited.timestamp) == (1, first.timestamp)
    assert (gone.message_id, gone.user_id, gone.operator_id) == (message.id, mona.id, None)
    assert door.health.problem is None


async def test_replies_threads_and_direct_messages_go_where_they_belong(
    door: Door, sandbox: DiscordSandbox, channel: Channel, mona: Person, until: Until
) -> None:
    question = await mona.say(channel, "which film?")
    await mona.say(channel, "Solaris", reply_to=question)
    thread = await mona.start_thread(channel, "plans", message=question)
    await mona.say(thread, "in the thread")
    direct = sandbox.dm(mona)
    await mona.say(direct, "between us")
    await until(lambda: door.texts(direct) and door.texts(thread)[-1:] == ["in the thread"])
    quote = door.created(channel)[1].quote
    assert quote is not None
    assert quote.user is not None
    assert (quote.id, quote.content, quote.user.id) == (question.id, "which film?", mona.id)
    assert "which film?" in door.texts(thread)[0]
    assert [fact.is_direct for fact in (*door.created(thread)[-1:], *door.created(direct))] == [False, True]
    assert door.created(direct)[0].guild_id is None


async def test_files_stickers_polls_and_forwards_can_be_read(
    door: Door, club: Server, channel: Channel, mona: Person, house: House, until: Until
) -> None:
    await mona.say(channel, "look", files=[File("cat.png", PNG, "image/png"), File("../../etc/x", b"abc")])
    await mona.say(channel, sticker=club.sticker("wave", PNG))
    await mona.say(channel, poll=Poll("Which?", ["Solaris", "Stalker"]))
    forwarded = await mona.say(channel, "the plan")
    await mona.say(channel, forward=forwarded)
    await until(lambda: len(door.facts(channel)) == 7)
    picture, listed, sticker, sticker_file, poll, _, forward = door.facts(channel)
    assert isinstance(picture, MessageCreated)
    assert isinstance(listed, Attachment)
    assert isinstance(sticker, MessageCreated)
    assert isinstance(sticker_file, Attachment)
    assert isinstance(poll, MessageCreated)
    assert isinstance(forward, MessageCreated)
    assert [(item.media_type, item.filename, item.byte_length) for item in listed.items] == [
        ("image/*", "cat.png", len(PNG)),
        ("application/octet-stream", "x", 3),
    ]
    assert listed.message_id == picture.message_id
    for item in (*listed.items, *sticker_file.items):
        asset = item.url.removeprefix("asset://")
        sidecar = house.sessions.folder(discord_session(channel.id)) / "resources" / "assets" / f"{asset}.json"
        assert "http" not in sidecar.read_text()
    assert "wave" in sticker.content
    assert plain_text(poll.content) == "Poll: Which?\n- Solaris\n- Stalker"
    assert forward.content == "<message forward>the plan</message>"
    assert forward.forward is not None
    assert forward.user.id == mona.id


async def test_bots_and_webhooks_are_marked_and_our_own_speech_is_left_out(
    door: Door, sandbox: DiscordSandbox, channel: Channel, mona: Person, until: Until
) -> None:
    await sandbox.user("Robot", bot=True).say(channel, "beep")
    await sandbox.webhook(channel, "CI").say("", username="@everyone", embeds=[{"type": "rich", "title": "Build 42"}])
    (part,) = door.chat(channel).compose("that was me", "markdown")
    await door.chat(channel).send(part, [], quote=None, thread=None, nonce="1")
    await mona.say(channel, "done")
    await until(lambda: door.texts(channel)[-1:] == ["done"])
    assert [(fact.via, plain_text(fact.content)) for fact in door.created(channel)] == [
        ("bot", "beep"),
        ("webhook", "Build 42"),
        (None, "done"),
    ]


async def test_previews_and_pins_are_no_edits(
    door: Door, sandbox: DiscordSandbox, channel: Channel, mona: Person, until: Until
) -> None:
    message = await mona.say(channel, "see https://example.org/")
    await sandbox.embed_preview(message)
    await mona.edit(message, "see https://example.org/ now")
    await sandbox.embed_preview(message)
    await mona.pin(message)
    await until(lambda: door.texts(channel)[-1:] == ["Mona pinned a message to this channel."])
    assert door.texts(channel) == [
        "see https://example.org/",
        "see https://example.org/ now",
        "Mona pinned a message to this channel.",
    ]


async def test_edits_that_come_twice_or_out_of_order_leave_one_revision_each(
    door: Door, sandbox: DiscordSandbox, channel: Channel, mona: Person, until: Until
) -> None:
    message = await mona.say(channel, "one")
    original = sandbox.payload(message)
    versions = [
        original | {"content": text, "edited_timestamp": f"2026-11-01T19:00:0{second}.000000+00:00"}
        for second, text in ((1, "two"), (2, "three"), (3, "four"))
    ]
    for payload in (versions[0], versions[0], versions[2], versions[1], versions[2]):
        await sandbox.dispatch("MESSAGE_UPDATE", payload)
    await sandbox.dispatch("MESSAGE_CREATE", original)
    await mona.say(channel, "end")
    await until(lambda: door.texts(channel)[-1:] == ["end"])
    assert door.texts(channel) == ["one", "two", "four", "end"]
    assert [fact.edited and fact.edited.revision for fact in door.created(channel)] == [None, 1, 2, None]


async def test_deletions_of_many_and_of_unknown_messages_are_written_once_each(
    door: Door, sandbox: DiscordSandbox, club: Server, channel: Channel, mona: Person, until: Until
) -> None:
    messages = [await mona.say(channel, f"spam {number}") for number in range(3)]
    place = {"channel_id": channel.id, "guild_id": club.id}
    await sandbox.dispatch("MESSAGE_DELETE", {"id": "77"} | place)
    await sandbox.dispatch("MESSAGE_DELETE", {"id": messages[0].id} | place)
    await sandbox.bulk_delete(channel, messages)
    await sandbox.dispatch("MESSAGE_DELETE", {"id": "77"} | place)
    await mona.say(channel, "end")
    await until(lambda: door.texts(channel)[-1:] == ["end"])
    assert [(fact.message_id, fact.user_id) for fact in door.deleted(channel)] == [
        ("77", None),
        (messages[0].id, mona.id),
        (messages[1].id, mona.id),
        (messages[2].id, mona.id),
    ]


async def test_many_messages_are_each_recorded_once_in_their_order(
    door: Door, channel: Channel, mona: Person, until: Until
) -> None:
    said = [(await mona.say(channel, f"number {number}")).content for number in range(2000)]
    await until(lambda: len(door.texts(channel)) >= len(said))
    assert door.texts(channel) == said


# --- who is let in ------------------------------------------------------------------------------------------------


async def test_a_chat_that_no_rule_lets_in_leaves_no_trace(
    sandbox: DiscordSandbox, club: Server, channel: Channel, mona: Person, house: House, until: Until
) -> None:
    quiet = club.text_channel("quiet")
    async with door_on(sandbox, house, allow=f"{channel.id},!user:{sandbox.user('Spam').id}") as door:
        message = await mona.say(quiet, "not for you")
        await mona.edit(message, "nor this")
        await mona.delete(message)
        thread = await mona.start_thread(channel, "plans")
        await mona.say(thread, "covered by the channel's rule")
        await until(lambda: door.texts(thread)[-1:] == ["covered by the channel's rule"])
        assert not house.sessions.exists(discord_session(quiet.id))


async def test_what_a_rule_for_a_person_let_in_can_be_taken_back_and_nothing_else(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, house: House, until: Until
) -> None:
    jiro = sandbox.user("Jiro")
    async with door_on(sandbox, house, allow=f"user:{mona.id}") as door:
        unheard = await jiro.say(channel, "not let in")
        await jiro.delete(unheard)
        message = await mona.say(channel, "let in")
        await mona.delete(message)
        unheard = await jiro.say(channel, "not let in either")
        await jiro.edit(unheard, "still not")
        await jiro.delete(unheard)
        await mona.say(channel, "end")
        await until(lambda: door.texts(channel)[-1:] == ["end"])
        assert door.texts(channel) == ["let in", "end"]
        assert [fact.message_id for fact in door.deleted(channel)] == [message.id]


async def test_an_exclusion_wins_over_every_rule(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, house: House, until: Until
) -> None:
    jiro = sandbox.user("Jiro")
    async with door_on(sandbox, house, allow=f"*,!user:{jiro.id}") as door:
        await jiro.say(channel, "not me")
        await mona.say(channel, "me")
        await until(lambda: door.texts(channel))
        assert door.texts(channel) == ["me"]


# --- what may break -----------------------------------------------------------------------------------------------


async def test_a_payload_that_breaks_the_parser_is_counted_and_the_connection_goes_on(
    door: Door,
    sandbox: DiscordSandbox,
    club: Server,
    channel: Channel,
    mona: Person,
    until: Until,
    capsys: pytest.CaptureFixture[str],
) -> None:
    await sandbox.dispatch("MESSAGE_CREATE", {"id": "x", "channel_id": channel.id, "content": "a secret text"})
    await sandbox.dispatch("GUILD_ROLE_CREATE", {"guild_id": club.id, "role": None})
    await sandbox.dispatch("SOMETHING_NEW", {"id": "x"})
    await mona.say(channel, "still here")
    await until(lambda: door.texts(channel) == ["still here"])
    assert door.health.unread == {"MESSAGE_CREATE": 1, "GUILD_ROLE_CREATE": 1}
    assert door.health.problem is None
    assert sandbox.gateway.identified == 1
    shown = capsys.readouterr()
    assert "MESSAGE_CREATE" in shown.out + shown.err
    assert "a secret text" not in shown.out + shown.err


@pytest.mark.parametrize("code", [4000, 4009, 1006])
async def test_what_was_missed_is_replayed_and_recorded_once(
    door: Door, sandbox: DiscordSandbox, channel: Channel, mona: Person, until: Until, code: int
) -> None:
    await mona.say(channel, "before")
    await until(lambda: door.texts(channel) == ["before"])
    if code == 1006:
        await sandbox.drop_connections()
    else:
        await sandbox.close_connections(code)
    await mona.say(channel, "meanwhile")
    await sandbox.dispatch("MESSAGE_CREATE", sandbox.payload(sandbox.history(channel)[0]))
    await sandbox.connected()
    await mona.say(channel, "after")
    await until(lambda: door.texts(channel)[-1:] == ["after"])
    assert door.texts(channel)[0] == "before"
    assert door.texts(channel).count("before") == 1
    if code != 4009:  # after which a session cannot be resumed
        assert door.texts(channel) == ["before", "meanwhile", "after"]
    await until(lambda: door.health.problem is None)


async def test_a_lost_connection_shows_in_health_until_it_is_back(
    door: Door, sandbox: DiscordSandbox, channel: Channel, until: Until
) -> None:
    sandbox.gateway.sessions.clear()
    await until(lambda: door.health.ready)
    await sandbox.ask_to_reconnect()
    await until(lambda: door.health.problem is not None)
    assert "connection to Discord" in str(door.health.problem)


async def test_a_token_that_is_not_known_ends_the_door_with_the_cure(
    sandbox: DiscordSandbox, channel: Channel, house: House
) -> None:
    async with door_on(sandbox, house, token="MTIz.wrong.token", ready=False) as door:
        with pytest.raises(TokenRefused, match="DISCORD_TOKEN"):
            await door.task


async def test_a_token_that_was_good_and_is_refused_is_named_and_tried_again(
    door: Door, sandbox: DiscordSandbox, until: Until
) -> None:
    await sandbox.close_connections(4004)
    await until(lambda: "DISCORD_TOKEN" in str(door.health.problem))
    await until(lambda: door.health.ready)


async def test_a_missing_intent_is_named_and_tried_again(
    channel: Channel, sandbox: DiscordSandbox, house: House, until: Until
) -> None:
    sandbox.world.granted = Intent.ANY
    async with door_on(sandbox, house, ready=False) as door:
        await until(lambda: "Message Content Intent" in str(door.health.problem))
        assert not door.health.ready
        sandbox.world.granted = PRIVILEGED
        await until(lambda: door.health.ready)


async def test_messages_without_content_in_a_row_raise_a_doubt(
    door: Door, sandbox: DiscordSandbox, channel: Channel, mona: Person, until: Until
) -> None:
    payload = sandbox.payload(await mona.say(channel, "seen"))
    for number in range(5):
        await sandbox.dispatch("MESSAGE_CREATE", payload | {"content": "", "id": str(int(payload["id"]) + number + 1)})
    await until(lambda: "Message Content Intent" in str(door.health.problem))
    assert door.health.unread["content hidden"] == 5
    await mona.say(channel, "seen again")
    await until(lambda: door.health.ready)


async def test_a_gateway_that_cannot_be_reached_is_named_and_tried_again(
    sandbox: DiscordSandbox, channel: Channel, house: House, until: Until
) -> None:
    sandbox.fail("GET /users/@me", 503, times=1)
    async with door_on(sandbox, house, ready=False) as door:
        await until(lambda: "503" in str(door.health.problem))
        await until(lambda: door.health.ready)


class FullDisk(Disk):
    """A disk that is full for a while."""

    full = False

    def sync(self, descriptor: int) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        super().sync(descriptor)


async def test_a_disk_that_refuses_for_a_while_loses_nothing(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, tmp_path: Path, until: Until
) -> None:
    disk = FullDisk()
    house = House(tmp_path / "full", disk)
    await house.open()
    async with door_on(sandbox, house) as door:
        await mona.say(channel, "before")
        await until(lambda: door.texts(channel) == ["before"])
        disk.full = True
        said = [await mona.say(channel, f"number {number}") for number in range(50)]
        await mona.edit(said[0], "number zero")
        await mona.delete(said[1])
        await until(lambda: "log" in str(door.health.problem))
        disk.full = False
        await until(lambda: len(door.facts(channel)) == 53)
        texts = [f"number {number}" for number in range(50)]
        assert door.texts(channel) == ["before", *texts, "number zero"]
        assert [fact.message_id for fact in door.deleted(channel)] == [said[1].id]
        await until(lambda: door.health.ready)
    await house.close()


async def test_a_stop_finishes_what_was_taken_in(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, house: House, until: Until
) -> None:
    async with door_on(sandbox, house) as door:
        said = [(await mona.say(channel, f"number {number}")).content for number in range(300)]
        await sandbox.connected()
        await until(lambda: door.texts(channel))
    kept = door.texts(channel)
    assert kept == said[: len(kept)]
    assert door.inbound.chat(discord_session(channel.id)) is not None


async def test_what_ends_the_librarys_client_does_not_end_the_door(
    door: Door, sandbox: DiscordSandbox, channel: Channel, mona: Person, until: Until
) -> None:
    await sandbox.dispatch("READY", {"nothing": "of use"})
    await until(lambda: door.health.unread["gateway"] == 1)
    await until(lambda: sandbox.gateway.identified == 2)
    await sandbox.connected()
    await mona.say(channel, "still here")
    await until(lambda: door.texts(channel) == ["still here"])
    assert door.health.problem is None


async def test_a_login_that_is_never_answered_is_given_up_and_made_anew(
    sandbox: DiscordSandbox, channel: Channel, house: House, until: Until
) -> None:
    sandbox.slow("GET /users/@me", 30.0)
    async with door_on(sandbox, house, limits=Limits(patience=0.5), ready=False) as door:
        await until(lambda: "no connection" in str(door.health.problem))
        await until(lambda: door.health.ready)


async def test_a_stop_during_the_login_ends_the_door(
    sandbox: DiscordSandbox, channel: Channel, house: House, until: Until
) -> None:
    sandbox.slow("GET /users/@me", 30.0)
    async with door_on(sandbox, house, ready=False) as door:
        await until(lambda: door.inbound.chat(discord_session(channel.id)) is not None)
        await door.inbound.stop()
        async with asyncio.timeout(5):
            await door.task
        assert not door.health.unread
