"""Up to which message a platform has told us everything: the table ``horizon``.

A session's log says what was heard last in its own chat. This says it for the chats that have no log yet, and for a gap
that was left half filled when the process died.
"""

import sqlite3
from typing import NamedTuple

from core.archive.store import Store
from core.ids import Platform


class Heard(NamedTuple):
    """``since``: everything up to the message of that number was heard, in every chat.

    ``complete``: so was everything after it, as far as we were connected. Otherwise a log may hold newer messages and
    lack older ones.
    """

    since: int
    complete: bool


class Horizon:
    """What was heard of one platform. Raises `StoreUnavailable`."""

    def __init__(self, store: Store, platform: Platform) -> None:
        self._store = store
        self._platform = platform

    async def read(self) -> Heard | None:
        """None: nothing was ever heard."""
        select = "SELECT since, complete FROM horizon WHERE platform = ?"
        rows = await self._store.run(lambda database: database.execute(select, (self._platform,)).fetchall())
        return Heard(int(rows[0][0]), bool(rows[0][1])) if rows else None

    async def put(self, heard: Heard) -> None:
        """Keep it; it is on disk when this returns."""
        row = (self._platform, heard.since, heard.complete)

        def write(database: sqlite3.Connection) -> None:
            with database:
                database.execute("INSERT OR REPLACE INTO horizon VALUES (?, ?, ?)", row)

        await self._store.run(write)
