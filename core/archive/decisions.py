"""What was decided, and what is allowed from now on, in history.db (sessions.md 2.6 and 4.3)."""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from core.archive.store import Store
from core.ids import MessageId, SessionId, TaskHash

MOST_AHEAD: Final = 3_600_000
"""By how many ms a platform's clock may be ahead of ours."""


class AllowRule(NamedTuple):
    """Leave for one tool with exactly these arguments (SHA-256 in hex). ``granted_at`` is in ms."""

    session_id: SessionId
    tool: str
    args_hash: str
    granted_by: str
    granted_at: int


class Decisions:
    """The tables ``decision`` and ``allow_rule``. On disk when a call returns. Raises `StoreUnavailable`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def put_decision(self, task: TaskHash, session: SessionId, status: str, decided_at: int, record: str) -> None:
        """Keep the last state of a record, as JSON; again is no error."""
        row = (task, session, status, decided_at, record)
        await self._store.run(_writing("INSERT OR REPLACE INTO decision VALUES (?, ?, ?, ?, ?)", row))

    async def decision(self, task: TaskHash) -> str | None:
        """The record of that hash, as JSON."""
        select = "SELECT record FROM decision WHERE task_hash = ?"
        row = await self._store.run(lambda database: database.execute(select, (task,)).fetchone())
        return None if row is None else str(row[0])

    async def was_answer(self, session: SessionId, message: MessageId, sent_at: int) -> bool:
        """Whether a message in that chat, sent at that time in ms, was taken as an answer to what is decided by now."""
        select = (
            "SELECT 1 FROM decision WHERE decided_at >= ? AND json_extract(record, '$.deliver_to') = ? "
            "AND EXISTS (SELECT 1 FROM json_each(record, '$.replies') WHERE value = ?)"
        )
        values = (sent_at - MOST_AHEAD, session, message)
        return await self._store.run(lambda database: database.execute(select, values).fetchone()) is not None

    async def grant(self, session: SessionId, tool: str, args_hash: str, by: str, at: int) -> None:
        row = (session, tool, args_hash, by, at)
        await self._store.run(_writing("INSERT OR REPLACE INTO allow_rule VALUES (?, ?, ?, ?, ?)", row))

    async def granted(self, sessions: Sequence[SessionId], tool: str, args_hash: str) -> list[str]:
        """Who granted that tool and these arguments, in these sessions, oldest first."""
        places = ",".join("?" for _ in sessions)
        select = (
            f"SELECT granted_by FROM allow_rule WHERE session_id IN ({places}) "  # noqa: S608 - question marks alone
            "AND tool = ? AND args_hash = ? ORDER BY granted_at"
        )
        values = (*sessions, tool, args_hash)
        rows = await self._store.run(lambda database: database.execute(select, values).fetchall())
        return [str(by) for (by,) in rows]

    async def rules(self) -> list[AllowRule]:
        """All of them, oldest first."""
        select = "SELECT session_id, tool, args_hash, granted_by, granted_at FROM allow_rule ORDER BY granted_at"
        rows = await self._store.run(lambda database: database.execute(select).fetchall())
        return [AllowRule(*row) for row in rows]

    async def revoke(self, rule: AllowRule) -> bool:
        """End a rule; whether there was one."""
        statement = "DELETE FROM allow_rule WHERE session_id = ? AND tool = ? AND args_hash = ? AND granted_by = ?"
        return await self._store.run(_writing(statement, tuple(rule)[:4])) > 0


def _writing(statement: str, row: tuple[object, ...]) -> Callable[[sqlite3.Connection], int]:
    def write(database: sqlite3.Connection) -> int:
        with database:
            return database.execute(statement, row).rowcount

    return write
