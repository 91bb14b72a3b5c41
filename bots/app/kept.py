"""What is on disk, taken and open."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.archive.archive import Archive
from core.archive.decisions import Decisions
from core.archive.lineage import Lineage
from core.archive.live import Live
from core.archive.profiles import Profiles
from core.archive.store import Store
from core.archive.titles import Titles
from core.chat.port import Veil
from core.log.journal import Journal
from core.pairing.book import Book
from core.resources.store import Resources
from core.sessions.directory import FolderLock, Sessions

QUIET: Final = 3.0
"""Seconds in which the connecting has the processor to itself."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A data folder that is ours."""

    folder: Path
    journal: Journal
    store: Store
    sessions: Sessions
    resources: Resources
    lineage: Lineage
    decisions: Decisions
    profiles: Profiles
    book: Book
    titles: Titles
    live: Live
    archive: Archive


@asynccontextmanager
async def kept_in(folder: Path, veil: Veil) -> AsyncGenerator[Kept]:
    """Take the data folder; on the way out leave it whole. Raises `FolderHeld` and `FolderUnusable`."""
    async with AsyncExitStack() as stack:
        lock = await asyncio.to_thread(FolderLock, folder)
        stack.callback(lock.release)
        journal = Journal(folder)
        await asyncio.to_thread(journal.start)
        stack.push_async_callback(asyncio.to_thread, journal.stop)
        store = await asyncio.to_thread(Store.open, folder / ".store" / "history.db")
        stack.push_async_callback(store.close)
        live = Live(store)
        stack.push_async_callback(asyncio.to_thread, live.stop)
        await live.start()
        sessions = Sessions(folder, journal)
        stack.push_async_callback(sessions.close)
        lineage = await Lineage.load(store)
        book = await Book.load(store)
        lineage.listen(book.move)
        profiles = Profiles(store)
        titles = Titles(profiles, veil)
        stack.push_async_callback(titles.close)
        yield Kept(
            folder=folder,
            journal=journal,
            store=store,
            sessions=sessions,
            resources=Resources(folder / "runtimes"),
            lineage=lineage,
            decisions=Decisions(store),
            profiles=profiles,
            book=book,
            titles=titles,
            live=live,
            archive=Archive(store, sessions, after=QUIET),
        )
