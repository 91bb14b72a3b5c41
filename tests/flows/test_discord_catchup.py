"""What happens on Discord while nobody listens, and how the door finds out."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import pytest

import bots.discord.catchup
from bots.discord.inbound import USUAL_LIMITS, Limits
from bots.sandbox.discord import DiscordSandbox
from bots.sandbox.discord.model import Channel, Message, Permission
from bots.sandbox.discord.people import Person
from bots.sandbox.discord.places import Server
from core.ids import discord_session
from core.log.disk import Disk
from tests.conftest import House, Until
from tests.flows.discord_house import Door, door_on


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


class FullDisk(Disk):
    """A disk that is full for a while."""

    full = False

    def sync(self, descriptor: int) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        super().sync(descriptor)


class Hear(Protocol):
    """Have somebody say something, until it stands in the log."""

    async def __call__(self, door: Door, channel: Channel, *texts: str) -> list[Message]: ...


@pytest.fixture
def hear(mona: Person, until: Until) -> Hear:
    async def hear(door: Door, channel: Channel, *texts: str) -> list[Message]:
        known = len(door.created(channel))
        said = [await mona.say(channel, text) for text in texts]
        await until(lambda: len(door.created(channel)) == known + len(texts))
        return said

    return hear


@asynccontextmanager
async def back(
    sandbox: DiscordSandbox, house: House, *, allow: str = "*", limits: Limits = USUAL_LIMITS
) -> AsyncGenerator[Door]:
    """The door after a restart, once it has caught up."""
    await house.reopen()
    async with door_on(sandbox, house, allow=allow, limits=limits) as door:
        await door.caught_up()
        yield door


def asked(sandbox: DiscordSandbox, what: str) -> list[str]:
    return [call.path for call in sandbox.calls if call.method == "GET" and what in call.path]


# --- messages -----------------------------------------------------------------------------------------------------


async def test_what_was_said_meanwhile_is_recorded_once_in_order_and_with_its_own_time(
    sandbox: DiscordSandbox, club: Server, channel: Channel, mona: Person, house: House, hear: Hear
) -> None:
    quiet = club.text_channel("quiet")
    direct = sandbox.dm(mona)
    async with door_on(sandbox, house) as door:
        first = (await hear(door, channel, "one"))[0]
        thread = await mona.start_thread(channel, "Plans")
        await hear(door, thread, "in a thread")
        await hear(door, direct, "hello")
    for number in range(230):
        await mona.say(channel, f"missed {number}")
    await mona.say(channel, "an answer", reply_to=first)
    await mona.say(quiet, "a first word")
    await mona.say(thread, "archived soon")
    await sandbox.archive(thread)
    young = await mona.start_thread(quiet, "Begun meanwhile")
    await mona.say(young, "and archived")
    await sandbox.archive(young)
    await mona.say(direct, "are you there?")
    async with back(sandbox, house) as door:
        said = door.created(channel)
        told = [fact for fact in said if fact.content.startswith("missed")]
        assert [fact.content for fact in told] == [f"missed {number}" for number in range(230)]
        assert [fact.message_id for fact in said] == [message.id for message in sandbox.history(channel)]
        assert said[-1].quote is not None
        assert (said[-1].quote.content, said[-1].guild_id) == ("one", club.id)
        assert door.texts(quiet)[0] == "a first word"
        assert door.texts(thread)[-1] == "archived soon"
        assert door.texts(young)[-1] == "and archived"
        assert door.texts(direct) == ["hello", "are you there?"]
        assert door.created(direct)[-1].is_direct
    async with back(sandbox, house) as door:
        assert len(door.created(channel)) == len(said)


async def test_the_first_start_takes_in_no_history(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, house: House, hear: Hear
) -> None:
    await mona.say(channel, "long ago")
    async with door_on(sandbox, house) as door:
        await door.caught_up()
        await hear(door, channel, "now")
        assert door.texts(channel) == ["now"]


async def test_what_was_said_after_a_silent_first_run_is_recorded(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, house: House, hear: Hear
) -> None:
    await mona.say(channel, "long ago")
    async with door_on(sandbox, house) as door:
        await door.caught_up()
    await mona.say(channel, "meanwhile")
    async with back(sandbox, house) as door:
        assert door.texts(channel) == ["meanwhile"]


async def test_a_session_that_discord_gives_up_is_made_good_without_a_restart(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, house: House, hear: Hear, until: Until
) -> None:
    async with door_on(sandbox, house) as door:
        await hear(door, channel, "before")
        sandbox.slow("GET /channels", 0.3)
        await sandbox.close_connections(4009)
        await mona.say(channel, "meanwhile")
        await sandbox.connected()
        await mona.say(channel, "live")
        await until(lambda: len(door.texts(channel)) == 3)
        assert door.texts(channel) == ["before", "meanwhile", "live"]


async def test_live_messages_go_ahead_of_a_gap_that_takes_too_long(
    sandbox: DiscordSandbox,
    channel: Channel,
    mona: Person,
    house: House,
    hear: Hear,
    until: Until,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(bots.discord.catchup, "LONGEST_HOLD", 0.5)
    async with door_on(sandbox, house) as door:
        await hear(door, channel, "before")
    await mona.say(channel, "meanwhile")
    sandbox.slow(f"GET /channels/{channel.id}", 1.5)
    await house.reopen()
    async with door_on(sandbox, house) as door:
        await mona.say(channel, "live")
        await until(lambda: "live" in door.texts(channel))
        assert door.texts(channel) == ["before", "live"]
        await until(lambda: "meanwhile" in door.texts(channel))
        assert door.texts(channel) == ["before", "live", "meanwhile"]
        await door.caught_up()
    assert "went_ahead=1" in capsys.readouterr().out


async def test_a_gap_is_filled_though_live_messages_went_ahead_before_anybody_looked_into_it(
    sandbox: DiscordSandbox,
    club: Server,
    channel: Channel,
    mona: Person,
    house: House,
    hear: Hear,
    until: Until,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bots.discord.catchup, "LONGEST_HOLD", 0.5)
    monkeypatch.setattr(bots.discord.catchup, "AT_ONCE", 1)
    other = club.text_channel("other")
    async with door_on(sandbox, house) as door:
        await hear(door, channel, "before")
        await hear(door, other, "before")
    await mona.say(channel, "meanwhile")
    await mona.say(other, "meanwhile, too")  # the livelier one, so the first to be looked into
    sandbox.slow(f"GET /channels/{other.id}", 2.0)
    await house.reopen()
    async with door_on(sandbox, house) as door:
        await asyncio.sleep(0.8)  # longer than anything waits
        await mona.say(channel, "live")
        await until(lambda: "live" in door.texts(channel))
        await door.caught_up()
        assert door.texts(channel) == ["before", "live", "meanwhile"]


async def test_a_round_that_was_cut_off_is_made_up_for(
    sandbox: DiscordSandbox,
    club: Server,
    channel: Channel,
    mona: Person,
    house: House,
    hear: Hear,
    until: Until,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quiet = club.text_channel("quiet")
    async with door_on(sandbox, house) as door:
        await hear(door, channel, "before")
    await mona.say(channel, "meanwhile")
    await mona.say(quiet, "a first word")
    monkeypatch.setattr(bots.discord.catchup, "LONGEST_HOLD", 0.1)
    sandbox.slow("GET /channels", 30, times=10)
    await house.reopen()
    async with door_on(sandbox, house) as door:
        await hear(door, channel, "live")
        await hear(door, quiet, "a second word")
    sandbox.recover()
    async with back(sandbox, house) as door:
        assert door.texts(channel) == ["before", "live", "meanwhile"]
        assert sorted(door.texts(quiet)) == ["a first word", "a second word"]
    async with back(sandbox, house) as door:
        assert len(door.texts(channel)) == 3


async def test_what_no_rule_lets_in_is_not_asked_for(
    sandbox: DiscordSandbox, club: Server, channel: Channel, mona: Person, house: House, hear: Hear
) -> None:
    private = club.text_channel("private")
    async with door_on(sandbox, house) as door:
        await hear(door, channel, "before")
    await mona.say(private, "not for the bot")
    await mona.say(channel, "meanwhile")
    async with back(sandbox, house, allow=f"guild:{club.id},!{private.id}") as door:
        assert door.texts(channel) == ["before", "meanwhile"]
        assert not door.facts(private)
        assert not asked(sandbox, private.id)


async def test_what_was_said_and_taken_back_while_a_gap_was_filled_stands_where_it_was_said(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, house: House, hear: Hear, until: Until
) -> None:
    async with door_on(sandbox, house) as door:
        await hear(door, channel, "before")
    await mona.say(channel, "meanwhile")
    sandbox.slow(f"GET /channels/{channel.id}", 1.0)
    async with door_on(sandbox, house) as door:
        hasty = await mona.say(channel, "hasty")
        await mona.edit(hasty, "hasty, and edited")
        await mona.delete(hasty)
        await mona.say(channel, "after")
        await door.caught_up()
        await until(lambda: door.deleted(channel))
        assert door.texts(channel) == ["before", "meanwhile", "hasty", "after", "hasty, and edited"]
        assert [fact.message_id for fact in door.deleted(channel)] == [hasty.id]


async def test_what_the_bot_may_not_see_is_not_asked_for(
    sandbox: DiscordSandbox, club: Server, channel: Channel, mona: Person, house: House, hear: Hear
) -> None:
    hidden = club.text_channel("hidden")
    async with door_on(sandbox, house) as door:
        await hear(door, channel, "before")
    await sandbox.deny(hidden, Permission.VIEW_CHANNEL)
    await mona.say(hidden, "among ourselves")
    async with back(sandbox, house):
        assert not asked(sandbox, hidden.id)


async def test_a_channel_without_access_is_named_and_the_others_are_not_affected(
    sandbox: DiscordSandbox,
    club: Server,
    channel: Channel,
    mona: Person,
    house: House,
    hear: Hear,
    capsys: pytest.CaptureFixture[str],
) -> None:
    closed = club.text_channel("closed")
    async with door_on(sandbox, house) as door:
        await hear(door, channel, "before")
        await hear(door, closed, "before it was closed")
    await sandbox.deny(closed, Permission.VIEW_CHANNEL)
    await mona.say(channel, "meanwhile")
    async with back(sandbox, house) as door:
        assert door.texts(channel) == ["before", "meanwhile"]
        assert door.deleted(closed) == []
        shown = capsys.readouterr().out
        assert "unreadable=1" in shown
        assert discord_session(closed.id) in shown


async def test_what_found_no_room_while_the_disk_was_full_is_asked_for(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, tmp_path: Path, hear: Hear, until: Until
) -> None:
    disk = FullDisk()
    house = House(tmp_path / "data", disk)
    await house.open()
    async with door_on(sandbox, house, limits=Limits(most_waiting=3)) as door:
        await hear(door, channel, "before")
        disk.full = True
        for number in range(12):
            await mona.say(channel, f"number {number}")
        await until(lambda: door.health.unread["inbox full"] == 9)
        disk.full = False
        await until(lambda: len(door.texts(channel)) == 13)
        assert door.texts(channel)[1:] == [f"number {number}" for number in range(12)]
        assert door.health.problem is None
    await house.close()


async def test_failures_of_discord_are_waited_out(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, house: House, hear: Hear
) -> None:
    async with door_on(sandbox, house) as door:
        await hear(door, channel, "before")
    await mona.say(channel, "meanwhile")
    sandbox.fail("GET /channels", 503, times=2)
    sandbox.fail("GET /channels", 0)
    sandbox.rate_limit("GET /channels", 0.2, times=2)
    async with back(sandbox, house) as door:
        assert door.texts(channel) == ["before", "meanwhile"]


# --- edits and deletions ------------------------------------------------------------------------------------------


async def test_edits_and_deletions_that_nobody_was_told_of_are_found_once(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, house: House, hear: Hear
) -> None:
    async with door_on(sandbox, house) as door:
        one, two, three, four = await hear(door, channel, "one", "two", "three", "four")
        await mona.edit(three, "three, edited")
    await mona.edit(one, "one, edited")
    await mona.edit(one, "one, edited again")
    await mona.delete(two)
    await mona.delete(four)
    for _ in range(2):
        async with back(sandbox, house) as door:
            edits = [fact for fact in door.created(channel) if fact.edited is not None]
            assert [fact.content for fact in edits] == ["three, edited", "one, edited again"]
            gone = door.deleted(channel)
            assert [fact.message_id for fact in gone] == [two.id, four.id]
            assert [(fact.inferred, fact.user_id, fact.operator_id) for fact in gone] == [(True, mona.id, None)] * 2


async def test_only_the_newest_messages_are_compared(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, house: House, hear: Hear
) -> None:
    async with door_on(sandbox, house) as door:
        said = await hear(door, channel, *(f"number {number}" for number in range(130)))
    for message in said[8:12]:
        await mona.delete(message)
    async with back(sandbox, house, limits=Limits(compared=120)) as door:
        assert [fact.message_id for fact in door.deleted(channel)] == [message.id for message in said[10:12]]
    async with back(sandbox, house, limits=Limits(compared=0)) as door:
        assert len(door.deleted(channel)) == 2


async def test_a_listing_that_shows_less_is_no_sign_of_a_deletion(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, house: House, hear: Hear
) -> None:
    async with door_on(sandbox, house) as door:
        said = await hear(door, channel, "one", "two")
    await sandbox.deny(channel, Permission.READ_MESSAGE_HISTORY)
    await mona.delete(said[0])
    async with back(sandbox, house) as door:
        assert door.deleted(channel) == []
    await sandbox.deny(channel, Permission.NONE)
    sandbox.fail(f"GET /channels/{channel.id}/messages/{said[0].id}", 403)
    async with back(sandbox, house) as door:
        assert door.deleted(channel) == []
    async with back(sandbox, house) as door:
        assert [fact.message_id for fact in door.deleted(channel)] == [said[0].id]


async def test_a_deletion_that_is_told_meanwhile_stands_once(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, house: House, hear: Hear, until: Until
) -> None:
    async with door_on(sandbox, house) as door:
        said = await hear(door, channel, "one", "two")
    await mona.delete(said[0])
    sandbox.slow(f"GET /channels/{channel.id}/messages/", 0.5)
    await house.reopen()
    async with door_on(sandbox, house) as door:
        payload = {"id": said[0].id, "channel_id": channel.id}
        await sandbox.dispatch("MESSAGE_DELETE", payload)
        await until(lambda: door.deleted(channel))
        await door.caught_up()
        assert len(door.deleted(channel)) == 1
