"""A house to test in: a real log in a temporary folder, with its followers."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

import pytest
import structlog

from core.archive.store import Store
from core.log.disk import Disk
from core.log.journal import Journal
from core.sessions.directory import Sessions


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--nothing-skipped", action="store_true", help="count a skipped test as a failed one")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    outcome = yield
    report: pytest.TestReport = outcome.get_result()
    if report.skipped and item.config.getoption("--nothing-skipped"):
        report.outcome = "failed"


@pytest.fixture(autouse=True)
def diagnostics() -> Generator[None]:
    """A command that a test calls in its own process sends the diagnostics elsewhere; the next hears its own."""
    root = logging.getLogger()
    outputs, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = outputs
    root.setLevel(level)


class House:
    """One data folder, open. `reopen` closes it in order and opens it again, as a restart does."""

    def __init__(self, folder: Path, disk: Disk | None = None) -> None:
        self.folder = folder
        self._disk = disk

    async def open(self) -> None:
        self.journal = Journal(self.folder, disk=self._disk)
        self.journal.start()
        self.store = Store.open(self.folder / ".store" / "history.db")
        self.sessions = Sessions(self.folder, self.journal)

    async def close(self) -> None:
        await self.sessions.close()
        await self.store.close()
        self.journal.stop()

    async def reopen(self) -> None:
        await self.close()
        await self.open()


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path / "data")
    await house.open()
    yield house
    await house.close()


Until = Callable[[Callable[[], object]], Awaitable[None]]


@pytest.fixture
def until() -> Until:
    """Wait until something holds; fail after ten seconds."""

    async def wait(holds: Callable[[], object]) -> None:
        async with asyncio.timeout(10):
            while not holds():  # noqa: ASYNC110 - what is waited for is any condition, of files too
                await asyncio.sleep(0.005)

    return wait
