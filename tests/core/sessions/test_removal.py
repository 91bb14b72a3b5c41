"""Removing a session: nothing of it is left or comes back, and a kill in between is finished at the next start."""

import asyncio
import os
import shutil
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from core.archive.forget import forget
from core.archive.profiles import Profile, Profiles
from core.errors import InvalidRequest, StoreUnavailable, UnknownSession
from core.gateway import Gateway
from core.ids import SessionId, discord_session, new_session
from core.sessions.directory import Sessions
from core.sessions.lifecycle import Reaper, newest_change
from core.sessions.removal import Removal
from core.sessions.session import Session
from tests.builders import said
from tests.conftest import House

TEMP: SessionId = new_session("temp")


class Busy:
    """A follower that never comes to its end by itself."""

    name = "busy"

    def __init__(self) -> None:
        self.at_work: list[Session] = []
        self.ended = 0

    def cares_for(self, entry: object) -> bool:
        return True

    async def catch_up(self, session: Session) -> None:
        self.at_work.append(session)
        try:
            await asyncio.Event().wait()
        finally:
            self.ended += 1


def removal_in(
    house: House, gateway: Gateway, *, rows: Callable[[SessionId], Awaitable[None]] | None = None
) -> Removal:
    async def forget_rows(session: SessionId) -> None:
        await forget(house.store, session)

    return Removal(house.folder, house.sessions, gateway, [], rows or forget_rows)


@pytest.fixture
def gateway(house: House) -> Gateway:
    return Gateway(house.sessions, [], house.store)


def folder_of(house: House, session: SessionId) -> Path:
    return house.folder / "runtimes" / session


async def test_nothing_of_a_removed_session_is_left(house: House, gateway: Gateway) -> None:
    session, profiles = house.sessions.of(TEMP), Profiles(house.store)
    await session.append([said()])
    await profiles.set(TEMP, name="helper")
    await removal_in(house, gateway).remove(TEMP)
    assert not folder_of(house, TEMP).exists()
    assert await profiles.get(TEMP) == Profile(TEMP)
    assert not any((house.folder / ".store" / "removing").iterdir())
    with pytest.raises(UnknownSession):
        await session.append([said(2)])
    with pytest.raises(UnknownSession):
        house.sessions.of(TEMP)
    with pytest.raises(UnknownSession):
        await removal_in(house, gateway).remove(TEMP)
    assert not folder_of(house, TEMP).exists()


async def test_a_power_cut_after_it_brings_nothing_back(house: House, gateway: Gateway, tmp_path: Path) -> None:
    await house.sessions.of(TEMP).append([said()])
    await house.sessions.of(discord_session(5)).append([said(2)])
    await removal_in(house, gateway).remove(TEMP)
    shutil.copytree(house.folder, tmp_path / "after")
    after = House(tmp_path / "after")
    await after.open()
    assert list(after.sessions.ids()) == [discord_session(5)]
    await after.close()


@pytest.mark.parametrize("rows_are_gone", [True, False])
async def test_a_kill_in_the_middle_is_finished_at_the_next_start(
    house: House, gateway: Gateway, tmp_path: Path, *, rows_are_gone: bool
) -> None:
    await house.sessions.of(TEMP).append([said()])
    await Profiles(house.store).set(TEMP, name="helper")

    async def killed_here(session: SessionId) -> None:
        if rows_are_gone:
            await forget(house.store, session)
        shutil.copytree(house.folder, tmp_path / "after")

    await removal_in(house, gateway, rows=killed_here).remove(TEMP)
    after = House(tmp_path / "after")
    await after.open()
    await removal_in(after, Gateway(after.sessions, [], after.store)).finish()
    assert list(after.sessions.ids()) == []
    assert await Profiles(after.store).all() == {}
    await after.close()


async def test_a_session_whose_rows_cannot_be_removed_stays_and_works(house: House) -> None:
    busy = Busy()
    gateway = Gateway(house.sessions, [busy], house.store)
    await gateway.start()
    await house.sessions.of(TEMP).append([said()])

    async def refuse(session: SessionId) -> None:
        raise StoreUnavailable(session)

    with pytest.raises(StoreUnavailable):
        await removal_in(house, gateway, rows=refuse).remove(TEMP)
    assert len(await house.sessions.of(TEMP).append([said(2)])) == 1
    await asyncio.sleep(0)
    assert busy.ended == 1
    assert len(busy.at_work) == 2
    await removal_in(house, gateway).finish()
    assert folder_of(house, TEMP).exists()
    await gateway.stop()


async def test_who_follows_comes_to_an_end(house: House) -> None:
    busy = Busy()
    gateway = Gateway(house.sessions, [busy], house.store)
    await gateway.start()
    session = house.sessions.of(TEMP)
    await session.append([said()])
    seen: list[str] = []

    async def watch() -> None:
        async for recorded in session.follow():
            seen.append(recorded.entry.id)  # noqa: PERF401 - one by one, as they come

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0.05)
    await removal_in(house, gateway).remove(TEMP)
    await asyncio.wait_for(watching, 5)
    assert (len(seen), busy.ended) == (1, 1)
    await gateway.stop()


async def test_two_who_remove_at_once_remove_once(house: House, gateway: Gateway) -> None:
    await house.sessions.of(TEMP).append([said()])
    removal = removal_in(house, gateway)
    await asyncio.gather(removal.remove(TEMP), removal.remove(TEMP))
    assert not folder_of(house, TEMP).exists()


async def test_a_chat_of_a_platform_stays(house: House, gateway: Gateway) -> None:
    await house.sessions.of(discord_session(5)).append([said()])
    with pytest.raises(InvalidRequest):
        await removal_in(house, gateway).remove(discord_session(5))


# --- the reaper -------------------------------------------------------------------------------------------------------


def grow_old(folder: Path, seconds: float = 3600) -> None:
    then = time.time() - seconds
    for path in [*folder.rglob("*"), folder]:
        os.utime(path, (then, then))


async def reaper_in(house: House, gateway: Gateway, live: set[SessionId], asked: set[SessionId]) -> Reaper:
    async def active() -> set[SessionId]:
        return live

    return Reaper(house.sessions, removal_in(house, gateway), active, lambda session: session in asked)


async def make(sessions: Sessions, house: House, session: SessionId) -> SessionId:
    await sessions.of(session).append([said()])
    grow_old(folder_of(house, session))
    return session


async def test_only_idle_temp_sessions_go(house: House, gateway: Gateway) -> None:
    idle, *kept = [
        await make(house.sessions, house, session)
        for session in [
            TEMP, new_session("temp"), new_session("temp"), new_session("temp"), new_session("cli"),
            new_session("chat"), discord_session(5), SessionId("tg-5"),
        ]
    ]  # fmt: skip
    (folder_of(house, kept[0]) / "resources" / "assets").mkdir(parents=True)
    grow_old(folder_of(house, kept[0]))
    (folder_of(house, kept[0]) / "resources" / "assets" / "new").touch()
    for folder in (folder_of(house, kept[0]), folder_of(house, kept[0]) / "resources"):
        os.utime(folder, (0, 0))
    reaper = await reaper_in(house, gateway, {kept[1]}, {kept[2]})
    assert await reaper.round() == [idle]
    assert set(house.sessions.ids()) == set(kept)


async def test_what_is_written_while_it_is_judged_saves_a_session(house: House, gateway: Gateway) -> None:
    await make(house.sessions, house, TEMP)
    live: set[SessionId] = set()
    reaper = await reaper_in(house, gateway, live, set())

    def is_still_idle() -> bool:
        return time.time() - newest_change(folder_of(house, TEMP)) > 1800

    writing = house.sessions.of(TEMP).append([said(2)])
    assert not await removal_in(house, gateway).remove_if(TEMP, is_still_idle)
    assert len(await writing) == 1
    assert await reaper.round() == []
    assert len(await house.sessions.of(TEMP).append([said(3)])) == 1
