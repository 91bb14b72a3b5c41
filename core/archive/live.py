"""Which turns are alive: the table ``live`` (sessions.md 3.2).

A turn that is queued or runs holds a key for 60 s at a time. No process ids are compared: a process that was killed
renews nothing, and its keys run out.
"""

import sqlite3
import threading
from collections.abc import Set
from typing import Final

import structlog

from core.archive.store import Store
from core.clock import now_ms
from core.errors import StoreUnavailable
from core.ids import SessionId, TurnId

LIFETIME_MS: Final = 60_000
RENEWED_EVERY: Final = 55.0
TRIED_EVERY: Final = 1.0

_PUT: Final = "INSERT OR REPLACE INTO live (key, expires_at) VALUES (?, ?)"
_OURS: Final = "action:*"

logger = structlog.get_logger()


class Live:
    """The keys of this process. Renewed by a thread of its own, so that a slow event loop does not look dead."""

    def __init__(
        self,
        store: Store,
        *,
        lifetime_ms: int = LIFETIME_MS,
        renewed_every: float = RENEWED_EVERY,
        tried_every: float = TRIED_EVERY,
    ) -> None:
        """The last two in seconds: between renewals, and after one that failed."""
        self._store = store
        self._lifetime_ms = lifetime_ms
        self._renewed_every = renewed_every
        self._tried_every = tried_every
        self._held: set[str] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="liveness", daemon=True)

    async def start(self) -> None:
        """Remove what an earlier process left, whose turns are over. Raises `StoreUnavailable`."""
        await self._store.run(lambda database: _write(database, "DELETE FROM live WHERE key GLOB ?", [(_OURS,)]))
        self._thread.start()

    def stop(self) -> None:
        """Renew no more. Blocks for as long as a renewal takes."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    async def begin(self, session: SessionId, turn: TurnId) -> None:
        """A turn is queued. Where the database refuses, the key is put as soon as it does not."""
        key = key_of(session, turn)
        self._held.add(key)
        try:
            await self._store.run(lambda database: self._put(database, [key]))
        except StoreUnavailable as error:
            logger.warning("liveness_not_written", session=session, reason=str(error))

    async def end(self, session: SessionId, turn: TurnId) -> None:
        """A turn is over. Where the database refuses, its key runs out."""
        key = key_of(session, turn)
        self._held.discard(key)
        try:
            await self._store.run(lambda database: _write(database, "DELETE FROM live WHERE key = ?", [(key,)]))
        except StoreUnavailable as error:
            logger.warning("liveness_not_written", session=session, reason=str(error))

    async def active(self) -> set[SessionId]:
        """The sessions in which a turn runs or is queued. Raises `StoreUnavailable`."""
        return {session for session, _ in await self._store.run(live_turns)}

    def _renew(self) -> None:
        """Also sweeps what has run out."""
        pause = self._renewed_every
        while not self._stopping.wait(pause):
            try:
                self._store.run_from_thread(self._renew_all)
            except (sqlite3.Error, RuntimeError) as error:  # or the database was closed meanwhile
                logger.warning("liveness_not_renewed", reason=str(error), again_in=self._tried_every)
                pause = self._tried_every
            else:
                pause = self._renewed_every

    def _renew_all(self, database: sqlite3.Connection) -> None:
        self._put(database, self._held)
        _write(database, "DELETE FROM live WHERE expires_at <= ?", [(now_ms(),)])

    def _put(self, database: sqlite3.Connection, keys: Set[str] | list[str]) -> None:
        """What has ended since this was asked for stays away: whoever ends a turn removes its key after this."""
        expires_at = now_ms() + self._lifetime_ms
        if held := self._held.intersection(keys):
            _write(database, _PUT, [(key, expires_at) for key in held])


def key_of(session: SessionId, turn: TurnId) -> str:
    return f"action:{session}:{turn}"


def live_turns(database: sqlite3.Connection) -> set[tuple[SessionId, TurnId]]:
    """The turns whose key has not run out; also for a reader of the database that does not own it."""
    rows = database.execute("SELECT key FROM live WHERE key GLOB ? AND expires_at > ?", (_OURS, now_ms()))
    parts = [str(key).split(":") for (key,) in rows]
    return {(SessionId(part[1]), TurnId(part[2])) for part in parts if len(part) == 3}


def _write(database: sqlite3.Connection, statement: str, rows: list[tuple[object, ...]]) -> None:
    with database:
        database.executemany(statement, rows)
