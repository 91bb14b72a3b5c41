"""A data folder, open, with as much of the program around it as a row needs."""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bots.bench.peer import Peer
from core.archive.decisions import Decisions
from core.archive.lineage import Lineage
from core.archive.store import Store
from core.chat.port import Chats
from core.confirmations.desk import Desk
from core.confirmations.folder import Folder
from core.confirmations.leave import Leave
from core.confirmations.press import Answers
from core.confirmations.showing import Showing
from core.log.disk import Disk
from core.log.journal import Journal
from core.resources.store import Resources
from core.sessions.directory import Sessions
from core.sessions.reading import Recorded
from core.sessions.session import Session


@dataclass(frozen=True, slots=True)
class House:
    """The log, the database, and whoever takes answers."""

    sessions: Sessions
    store: Store
    lineage: Lineage
    answers: Answers


@asynccontextmanager
async def house_in(folder: Path, disk: Disk | None = None) -> AsyncGenerator[House]:
    """Open the folder; close it in order in the end."""
    journal = Journal(folder, disk=disk)
    await asyncio.to_thread(journal.start)
    store = Store.open(folder / ".store" / "history.db")
    try:
        sessions = Sessions(folder, journal)
        lineage, decisions = await Lineage.load(store), Decisions(store)
        desk = Desk(Folder(sessions.folder), decisions, Leave(decisions, admins=frozenset(), earlier=lineage.earlier))
        nobody: Chats = lambda _session: None  # noqa: E731 - a seam, filled with nothing
        showing = Showing(desk, nobody, Resources(folder / "runtimes").upload, lineage.succeed)
        yield House(sessions, store, lineage, Answers(desk, showing))
        await sessions.close()
    finally:
        await store.close()
        await asyncio.to_thread(journal.stop)


class Counter:
    """Counts until so many are there. `add` is called on the event loop."""

    def __init__(self) -> None:
        self._left = 0
        self._there = asyncio.Event()

    def begin(self, count: int) -> None:
        self._left = count
        self._there.clear()

    def add(self, count: int = 1) -> None:
        self._left -= count
        if self._left == 0:
            self._there.set()

    def on_append(self, _session: Session, added: Sequence[Recorded]) -> None:
        self.add(len(added))

    async def until_there(self, within: float = 120.0) -> None:
        """Raises `TimeoutError`."""
        async with asyncio.timeout(within):
            await self._there.wait()


async def rate(peer: Peer, token: str, counter: Counter, count: int) -> float:
    """Messages a second, from the moment in which the peer lets them go to whom the token names until all are there."""
    began = time.perf_counter()
    peer.tell(token)
    await counter.until_there()
    return count / (time.perf_counter() - began)
