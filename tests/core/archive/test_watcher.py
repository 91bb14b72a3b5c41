"""Each new session folder is told of once, with its name."""

import asyncio

from core.archive.profiles import Profiles
from core.archive.watcher import Watcher
from core.ids import SessionId, new_session
from tests.builders import said
from tests.conftest import House, Until


async def test_each_new_folder_is_told_once_with_its_name_whoever_made_it(house: House, until: Until) -> None:
    told: list[tuple[SessionId, str]] = []
    profiles, runtimes = Profiles(house.store), house.folder / "runtimes"
    await house.sessions.of(SessionId("dc-1")).append([said()])
    watcher = Watcher(runtimes, profiles, tell=lambda session, name: told.append((session, name)))
    running = asyncio.create_task(watcher.run())
    await asyncio.sleep(0.5)
    await house.sessions.of(SessionId("dc-2")).append([said()])
    await profiles.set(SessionId("dc-2"), name="the hall")
    (runtimes / "tg-3").mkdir()
    (runtimes / "history").mkdir()
    (runtimes / "dc-1" / "resources").mkdir()
    await until(lambda: len(told) == 2)
    assert sorted(told) == [("dc-2", "the hall"), ("tg-3", "")]
    (runtimes / new_session("temp")).mkdir()
    await until(lambda: len(told) == 3)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
