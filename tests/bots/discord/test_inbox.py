"""Facts that wait for the disk."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from bots.discord.inbox import Inbox
from core.entries import CustomMessage, MessageCreated
from core.health import Health, Troubles
from core.log.disk import Disk
from tests.builders import SESSION, said
from tests.conftest import House, Until


class FullDisk(Disk):
    """A disk that is full for a while."""

    full = True

    def sync(self, descriptor: int) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        super().sync(descriptor)


@pytest.fixture
def disk() -> FullDisk:
    return FullDisk()


async def opened(tmp_path: Path, disk: FullDisk) -> House:
    disk.full = False
    house = House(tmp_path / "data", disk)
    await house.open()
    disk.full = True
    return house


def contents(house: House) -> list[str]:
    found: list[str] = []
    for recorded in house.sessions.of(SESSION).read():
        match recorded.entry.data:
            case CustomMessage(data=MessageCreated() as message):
                found.append(message.content)
            case _:
                pass
    return found


async def test_what_waits_is_written_in_order_once_there_is_room(tmp_path: Path, disk: FullDisk, until: Until) -> None:
    house, health = await opened(tmp_path, disk), Health("discord", problem=None)
    inbox = Inbox(house.sessions, Troubles(health), health.unread, make_up=print)
    for number in range(1, 1201):
        inbox.put(SESSION, [said(number, f"number {number}")])
    await until(lambda: health.problem is not None)
    assert "wait" in str(health.problem)
    disk.full = False
    await inbox.settle()
    assert contents(house) == [f"number {number}" for number in range(1, 1201)]
    assert health.ready
    assert not inbox.holds(SESSION)
    await house.close()


async def test_what_finds_no_room_is_counted_shown_and_asked_for_later(
    tmp_path: Path, disk: FullDisk, until: Until
) -> None:
    made_up: list[int | None] = []
    house, health = await opened(tmp_path, disk), Health("discord", problem=None)
    inbox = Inbox(house.sessions, Troubles(health), health.unread, make_up=made_up.append, most=3)
    for number in range(1, 6):
        inbox.put(SESSION, [said(number, f"number {number}")])
    assert health.unread == Counter({"inbox full": 2})
    assert "2 Discord events" in str(health.problem)
    disk.full = False
    await inbox.settle()
    assert contents(house) == ["number 1", "number 2", "number 3"]
    assert made_up == [4]
    assert health.ready
    await house.close()


async def test_a_stop_that_may_not_wait_gives_up_what_the_disk_refuses(
    tmp_path: Path, disk: FullDisk, until: Until
) -> None:
    house, health = await opened(tmp_path, disk), Health("discord", problem=None)
    inbox = Inbox(house.sessions, Troubles(health), health.unread, make_up=print)
    inbox.put(SESSION, [said(1)])
    await until(lambda: health.problem is not None)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await inbox.settle()
    disk.full = False
    await house.close()


async def test_a_fact_that_cannot_be_written_does_not_hold_up_the_others(house: House) -> None:
    health = Health("discord", problem=None)
    inbox = Inbox(house.sessions, Troubles(health), health.unread, make_up=print)
    inbox.put(SESSION, [said(1, "before"), said(2, "", user=object()), said(3, "after")])
    await inbox.settle()
    assert contents(house) == ["before", "after"]
    assert health.unread == Counter({"unwritable": 1})
