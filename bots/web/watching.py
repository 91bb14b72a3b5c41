"""Who reads a session as it grows: woken by what is new, without a task, a timer or a queue of their own."""

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from core.confirmations.desk import Desk
from core.confirmations.record import Record
from core.ids import SessionId, TaskHash
from core.sessions.directory import Sessions
from core.sessions.reading import Recorded
from core.sessions.session import Session

MOST_UNTOLD: Final = 1024
"""Confirmations that a reader may lag behind. One that reads so slowly is cut off, and finds the open ones anew."""


class Watch:
    """What one reader has not been told yet. Entries are not kept here: they are in the log."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()
        self._changed: dict[TaskHash, Record] = {}
        self.ended = False

    async def news(self, within: float) -> bool:
        """Return when there is something new, or after so many seconds; whether there is."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._woken.wait()
        woken = self._woken.is_set()
        self._woken.clear()
        return woken

    def wake(self) -> None:
        self._woken.set()

    def end(self) -> None:
        """Nothing more is to be told."""
        self.ended = True
        self._woken.set()

    def tell(self, record: Record) -> None:
        self._changed[record.task_hash] = record
        if len(self._changed) > MOST_UNTOLD:
            self.end()
        self._woken.set()

    def taken(self) -> list[Record]:
        """The records that were told since the last time, each as it was last."""
        taken, self._changed = list(self._changed.values()), {}
        return taken


class Watching:
    """Knows who watches which session. Belongs to one event loop, but for the constructor."""

    def __init__(self, sessions: Sessions, desk: Desk) -> None:
        self._watches: dict[SessionId, set[Watch]] = {}
        self._stages: dict[TaskHash, tuple[object, ...]] = {}
        sessions.listen(self._appended)
        desk.listen(self._changed)

    @contextmanager
    def of(self, session: SessionId) -> Generator[Watch]:
        """Watch a session."""
        watch = Watch()
        self._watches.setdefault(session, set()).add(watch)
        try:
            yield watch
        finally:
            self._watches[session].discard(watch)
            if not self._watches[session]:
                del self._watches[session]

    def end(self, session: SessionId) -> None:
        """End the watches of a session that was removed."""
        for watch in self._watches.get(session, ()):
            watch.end()

    def _appended(self, session: Session, _added: Sequence[Recorded]) -> None:
        for watch in self._watches.get(session.id, ()):
            watch.wake()

    def _changed(self, record: Record) -> None:
        """What concerns people: asked, answered in part, decided, closed. Not each move of a prompt."""
        stage = (record.status, record.answers, record.closed_at is not None)
        if self._stages.get(record.task_hash) == stage:
            return
        if record.closed_at is not None and record.resolved_at is not None:
            self._stages.pop(record.task_hash, None)  # it changes no more
        else:
            self._stages[record.task_hash] = stage
        for session in {record.session_id, record.deliver_to}:
            for watch in self._watches.get(session, ()):
                watch.tell(record)
