"""Which session goes on from which, and who started it: columns of the table ``session`` (sessions.md 2.1, 3.1)."""

import sqlite3
from collections.abc import Awaitable, Callable, Iterable

from core.archive.store import Store
from core.clock import now_ms
from core.ids import SessionId

Moved = Callable[[SessionId, SessionId], Awaitable[None]]


class Lineage:
    """Answers from memory; on disk when a call that writes returns. Raises `StoreUnavailable` where it cannot be."""

    def __init__(self, store: Store, rows: Iterable[tuple[str, str, str]] = ()) -> None:
        self._store = store
        self._listeners: list[Moved] = []
        self._earlier: dict[SessionId, list[SessionId]] = {}
        self._successors: dict[SessionId, SessionId] = {}
        self._origins: dict[SessionId, SessionId] = {}
        for session, successor, origin in rows:
            if successor:
                self._learn(SessionId(session), SessionId(successor))
            if origin:
                self._origins[SessionId(session)] = SessionId(origin)

    @classmethod
    async def load(cls, store: Store) -> "Lineage":
        select = "SELECT session_id, successor, origin FROM session WHERE successor <> '' OR origin <> ''"
        return cls(store, await store.run(lambda database: database.execute(select).fetchall()))

    def current(self, session: SessionId) -> SessionId:
        """The session that a chat goes on in: itself, unless it has migrated."""
        seen = {session}
        while (later := self._successors.get(session)) is not None and later not in seen:
            seen.add(later)
            session = later
        return session

    def earlier(self, session: SessionId) -> list[SessionId]:
        """The sessions that this one goes on from, also over several moves."""
        found = [session]
        for later in found:  # which grows meanwhile
            found += [old for old in self._earlier.get(later, []) if old not in found]
        return found[1:]

    def origin(self, session: SessionId) -> SessionId:
        """The session that started this one, for a helper's; else itself."""
        return self._origins.get(session, session)

    def listen(self, listener: Moved) -> None:
        """Have somebody told, and waited for, when a chat goes on as another session; again is told again."""
        self._listeners.append(listener)

    async def succeed(self, old: SessionId, new: SessionId) -> None:
        """``old`` goes on as ``new``. Again is no error, and the first one counts; a circle is left out."""
        if old == new or self.current(new) == old:
            return
        if old not in self._successors:
            await self._put(old, "successor", new)
            self._learn(old, new)
        for listener in self._listeners:
            await listener(old, self._successors[old])

    async def descend(self, session: SessionId, origin: SessionId) -> None:
        """``session`` was started by work in ``origin``."""
        await self._put(session, "origin", origin)
        self._origins[session] = origin

    def _learn(self, old: SessionId, new: SessionId) -> None:
        if self._successors.setdefault(old, new) == new and old not in self._earlier.setdefault(new, []):
            self._earlier[new].append(old)

    async def _put(self, session: SessionId, column: str, value: SessionId) -> None:
        statement = (
            f"INSERT INTO session (session_id, {column}, created_at) VALUES (?, ?, ?) "  # noqa: S608 - a name of ours
            f"ON CONFLICT (session_id) DO UPDATE SET {column} = excluded.{column}"
        )

        def write(database: sqlite3.Connection) -> None:
            with database:
                database.execute(statement, (session, value, now_ms()))

        await self._store.run(write)
