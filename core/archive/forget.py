"""Leaving nothing of a session in history.db, as when it was reaped or deleted (sessions.md 3.3)."""

import sqlite3
from typing import Final

from core.archive.shelf import remove_session
from core.archive.store import Store
from core.ids import SessionId

_TABLES: Final = ("session", "decision", "allow_rule", "outbox", "cursor", "pairing", "paired", "file_history")


async def forget(store: Store, session: SessionId) -> None:
    """Remove a session's rows from every table, in one transaction; again is no error.

    Its folder goes afterwards: a row without a folder would bring it back. What it cost stays in the totals, under no
    name. Raises `StoreUnavailable`; then all is as before.
    """

    def remove(database: sqlite3.Connection) -> None:
        with database:
            database.execute("UPDATE usage SET session_id = '' WHERE session_id = ?", (session,))
            remove_session(database, session)
            for table in _TABLES:
                database.execute(f"DELETE FROM {table} WHERE session_id = ?", (session,))  # noqa: S608 - names of ours
            database.execute("DELETE FROM live WHERE substr(key, 1, ?) = ?", _prefix(session))

    await store.run(remove)
    store.drop_receipts(session)


def _prefix(session: SessionId) -> tuple[int, str]:
    """What the keys of its turns begin with (sessions.md 3.2)."""
    prefix = f"action:{session}:"
    return len(prefix), prefix
