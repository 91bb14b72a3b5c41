"""Follower: writes ``action.log`` from the log, and what is asked and decided from the desk.

Its receipt may lag behind the file when the process is killed. So the first lines that a process writes to a file are
looked for at its end, and those that stand there are left out: they bear the moment of their entry, not of the
writing. After a power cut the last lines may be missing; the log has what they told of.
"""

import asyncio
import os
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TypeVar
from weakref import WeakValueDictionary

import structlog

from core.actionlog.file import add, added_already, without
from core.actionlog.line import Line
from core.actionlog.told import TELLING, Told, told_of
from core.confirmations.record import Record
from core.entries import AnyEntry, MessageCreated, MessageDeleted, fact_of
from core.ids import SessionId, TaskHash
from core.sessions.receipts import Receipt, Receipts
from core.sessions.session import Session
from core.threads import finish_in_thread

GATHERED: Final = 0.3
"""Seconds in which lines gather: a session's file is opened no more often."""
REST: Final = 9
"""Times as long as the work took that comes before it: in a burst no more than a tenth of the time is spent here."""
MOST_REST: Final = 1.0
"""Seconds."""
MOST_KNOWN: Final = 4096
"""Sessions and confirmations of which it is remembered that their file was looked at."""

K = TypeVar("K")
V = TypeVar("V")
Place = Callable[[SessionId], Path]

logger = structlog.get_logger()


class ActionLog:
    """Belongs to one event loop. One writer at a time for each session."""

    name = "action.log"

    def __init__(self, place: Place, receipts: Receipts, *, gathered: float = GATHERED) -> None:
        """``place`` gives a session's folder."""
        self._place = place
        self._receipts = receipts
        self._gathered = gathered
        self._one = asyncio.Lock()
        self._window = os.urandom(4).hex()
        self._told: OrderedDict[SessionId, Told] = OrderedDict()
        self._records: OrderedDict[TaskHash, frozenset[Line]] = OrderedDict()
        self._locks: WeakValueDictionary[SessionId, asyncio.Lock] = WeakValueDictionary()
        self._tasks: set[asyncio.Task[None]] = set()

    def cares_for(self, entry: AnyEntry) -> bool:
        return isinstance(entry.data, TELLING) or isinstance(fact_of(entry), MessageCreated | MessageDeleted)

    async def catch_up(self, session: Session) -> None:
        """Write the lines of all entries that have none yet."""
        await asyncio.sleep(self._gathered)
        start = await session.resume_from(self._receipts.get(self.name, session.id))
        while start < session.size:
            async with self._unhurried():
                chunk, start = await session.chunk_from(start)
                if chunk:
                    await self._write(session.id, [recorded.entry for recorded in chunk])
                    self._receipts.put(self.name, session.id, Receipt(chunk[-1].entry.id, chunk[-1].end))

    def on_record(self, record: Record) -> None:
        """A confirmation is new or was changed."""
        lines = told_of(record, self._window)
        known = self._records.get(record.task_hash, frozenset())
        if new := [line for line in lines if line not in known]:
            is_first = not known
            _keep(self._records, record.task_hash, frozenset(lines))
            writing = asyncio.create_task(self._note(record, new, is_first=is_first), name=f"audit {record.task_hash}")
            self._tasks.add(writing)
            writing.add_done_callback(self._tasks.discard)

    async def leave(self, session: SessionId) -> None:
        """A session is going to be removed: nothing of it is kept in memory."""
        async with self._lock(session):
            self._told.pop(session, None)

    async def stop(self) -> None:
        """Wait for what is being written."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    @asynccontextmanager
    async def _unhurried(self) -> AsyncGenerator[None]:
        """One session at a time, and a rest after each, so that a burst is recorded before it is told of."""
        async with self._one:
            began = time.perf_counter()
            yield
            await asyncio.sleep(min(REST * (time.perf_counter() - began), MOST_REST))

    async def _write(self, session: SessionId, entries: Sequence[AnyEntry]) -> None:
        async with self._lock(session):
            told = self._told.get(session)
            is_first = told is None
            told = told or Told(self._window)
            await finish_in_thread(self._add_entries, session, told, entries, is_first=is_first)
            _keep(self._told, session, told)

    async def _note(self, record: Record, lines: Sequence[Line], *, is_first: bool) -> None:
        try:
            async with self._lock(record.session_id):
                await finish_in_thread(self._add, record.session_id, lines, is_first=is_first)
        except OSError as error:
            logger.warning("action_log_not_written", session=record.session_id, reason=error.strerror)

    def _add_entries(self, session: SessionId, told: Told, entries: Sequence[AnyEntry], *, is_first: bool) -> None:
        self._add(session, [line for entry in entries for line in told.lines(entry)], is_first=is_first)

    def _add(self, session: SessionId, lines: Sequence[Line], *, is_first: bool) -> None:
        folder = self._place(session)
        there = added_already(folder, lines) if is_first else Counter[Line]()
        if left := without(lines, there):
            add(folder, left)

    def _lock(self, session: SessionId) -> asyncio.Lock:
        """One for each session, for as long as somebody holds or awaits it."""
        return self._locks.setdefault(session, asyncio.Lock())


def _keep(kept: OrderedDict[K, V], key: K, value: V) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > MOST_KNOWN:
        kept.popitem(last=False)
