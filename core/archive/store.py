"""history.db as the rest of the program uses it: receipts, sends under way, and what could not be read.

One thread owns the connection. Receipts are answered from memory and written together; everything else is on disk
when the call returns. What waits for the thread raises `StoreUnavailable`.
"""

import asyncio
import sqlite3
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Final, TypeVar

import structlog

from core.archive.schema import migrate
from core.clock import now_ms
from core.errors import FolderUnusable, StoreUnavailable
from core.ids import EntryId, SessionId
from core.log.disk import TAKES_NOTHING, disk_full
from core.sessions.receipts import Receipt

KEPT_MS: Final = 7 * 24 * 3600 * 1000
"""How long parked events and finished sends stay (sessions.md 2.6)."""
PRUNED_EVERY_MS: Final = 24 * 3600 * 1000

GATHERED: Final = 0.2
"""Seconds in which receipts gather before they are written together; a crash repeats what was done in them."""

_DATABASE_TAKES_NOTHING: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR})

logger = structlog.get_logger()
T = TypeVar("T")


class Store:
    """Open with `open`, end with `close`. Its methods belong to one event loop."""

    def __init__(self, database: sqlite3.Connection, executor: ThreadPoolExecutor) -> None:
        self._database = database
        self._executor = executor
        # By follower, then session. As text until they change: most belong to sessions that stay idle.
        self._receipts: defaultdict[str, dict[SessionId, Receipt | str]] = defaultdict(dict)
        self._unwritten: dict[tuple[str, SessionId], Receipt] = {}
        self._flush: asyncio.Future[None] | None = None
        self._pruned_at = now_ms()

    @classmethod
    def open(cls, path: Path, *, patience: float = 5.0) -> "Store":
        """Open or make the database; a damaged one is moved aside with a warning (sessions.md 2.8). Blocks.

        ``patience`` is how many seconds a write waits for another program. Raises `DiskFull` and `FolderUnusable`.
        """
        executor = ThreadPoolExecutor(1, thread_name_prefix="history.db")
        store = cls(executor.submit(_connect, path, patience).result(), executor)
        executor.submit(store._read_receipts).result()
        return store

    async def close(self) -> None:
        """Write what is left."""
        if self._flush is not None:
            self._flush.cancel()
        await self._write_what_waits()
        await self._run(self._database.close)
        self._executor.shutdown()

    # --- receipts (`core.sessions.receipts.Receipts`) -------------------------------------------------------------

    def get(self, follower: str, session: SessionId) -> Receipt | None:
        found = self._receipts[follower].get(session)
        return Receipt.read(found) if isinstance(found, str) else found

    def of(self, session: SessionId) -> dict[str, Receipt]:
        """The receipts of all followers in a session, by their names."""
        return {name: receipt for name in list(self._receipts) if (receipt := self.get(name, session)) is not None}

    def put(self, follower: str, session: SessionId, receipt: Receipt) -> None:
        self._receipts[follower][session] = self._unwritten[follower, session] = receipt
        if self._flush is None:
            self._flush = asyncio.ensure_future(self._flush_soon())

    def note(self, follower: str, session: SessionId, receipt: Receipt) -> None:
        """Take a receipt that was written together with what it is for."""
        self._receipts[follower][session] = receipt

    async def put_durably(self, follower: str, session: SessionId, receipt: Receipt) -> None:
        self._receipts[follower][session] = self._unwritten[follower, session] = receipt
        await self._write_receipts()

    def drop_receipts(self, session: SessionId) -> None:
        """Forget, in memory, how far anybody has come in a session whose rows are gone."""
        for receipts in self._receipts.values():
            receipts.pop(session, None)
        for key in [key for key in self._unwritten if key[1] == session]:
            del self._unwritten[key]

    async def _flush_soon(self) -> None:
        await asyncio.sleep(GATHERED)
        self._flush = None
        await self._write_what_waits()

    async def _write_what_waits(self) -> None:
        """Receipts may lag: acts are then repeated. They are written with the next one that comes."""
        try:
            await self._write_receipts()
            if now_ms() - self._pruned_at > PRUNED_EVERY_MS:
                self._pruned_at = now_ms()
                await self._run(lambda: _prune(self._database))
        except StoreUnavailable as error:
            logger.warning("receipts_not_written", reason=str(error))

    async def _write_receipts(self) -> None:
        writing, self._unwritten = self._unwritten, {}
        if not writing:
            return
        rows = [(name, session, str(receipt)) for (name, session), receipt in writing.items()]
        try:
            await self._run(lambda: self._many("INSERT OR REPLACE INTO cursor VALUES (?, ?, ?)", rows))
        except BaseException:  # cancelled too: what was not written is written with the next
            self._unwritten = writing | self._unwritten
            raise

    # --- sends under way ------------------------------------------------------------------------------------------

    async def outbox(self, key: str) -> tuple[str, str] | None:
        """State and record of a send; None where the key was never used."""
        rows = await self._run(lambda: self._rows("SELECT state, record FROM outbox WHERE key = ?", (key,)))
        return (str(rows[0][0]), str(rows[0][1])) if rows else None

    async def put_outbox(self, key: str, session: SessionId, state: str, record: str) -> None:
        row = (key, session, state, record, now_ms())
        await self._run(lambda: self._many("INSERT OR REPLACE INTO outbox VALUES (?, ?, ?, ?, ?)", [row]))

    async def set_aside(self, session: SessionId | None) -> list[tuple[SessionId, EntryId]]:
        """Session and entry of the deliveries that a runtime would not take, of one session or of all, oldest first."""
        select = (
            "SELECT session_id, key FROM outbox WHERE state = 'parked' AND key GLOB 'deliver:*' "
            "AND (?1 IS NULL OR session_id = ?1) ORDER BY updated_at"
        )
        rows = await self._run(lambda: self._rows(select, (session,)))
        return [(SessionId(str(own)), EntryId(str(key).removeprefix(f"deliver:{own}:"))) for own, key in rows]

    async def set_aside_again(self, session: SessionId, entry: EntryId, reason: str) -> None:
        await self.put_outbox(f"deliver:{session}:{entry}", session, "parked", reason)

    async def settle(self, session: SessionId, entry: EntryId) -> None:
        """A delivery is parked no longer."""
        await self._run(lambda: self._many("DELETE FROM outbox WHERE key = ?", [(f"deliver:{session}:{entry}",)]))

    # --- what could not be read -----------------------------------------------------------------------------------

    async def park(self, platform: str, reason: str, raw: str) -> None:
        """Keep an event that could not be read. ``raw`` holds no token and no query string."""
        row = (platform, reason, raw, now_ms())
        insert = "INSERT INTO parked (platform, reason, raw, at) VALUES (?, ?, ?, ?)"
        await self._run(lambda: self._many(insert, [row]))

    async def parked(self) -> list[tuple[str, str, str]]:
        """Platform, reason and text of what is parked, oldest first."""
        rows = await self._run(lambda: self._rows("SELECT platform, reason, raw FROM parked ORDER BY id", ()))
        return [(str(platform), str(reason), str(raw)) for platform, reason, raw in rows]

    # --- the thread -----------------------------------------------------------------------------------------------

    async def run(
        self, work: Callable[[sqlite3.Connection], T], *, expected: type[sqlite3.Error] | tuple[()] = ()
    ) -> T:
        """Have the thread do something with the database. Raises `StoreUnavailable`, and what was expected."""
        return await self._run(lambda: work(self._database), expected)

    def run_from_thread(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """As `run`, for a thread that has no event loop. Blocks; raises `sqlite3.Error`, `RuntimeError` once closed."""
        return self._executor.submit(work, self._database).result()

    async def _run(self, work: Callable[[], T], expected: type[sqlite3.Error] | tuple[()] = ()) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, work)
        except expected:
            raise
        except sqlite3.Error as error:
            raise StoreUnavailable(
                f"history.db cannot be used ({error}); free the disk, and see that no other program holds it"
            ) from error

    def _many(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        with self._database:
            self._database.executemany(statement, rows)

    def _rows(self, statement: str, values: tuple[object, ...]) -> list[tuple[object, ...]]:
        return self._database.execute(statement, values).fetchall()

    def _read_receipts(self) -> None:
        # Of an idle session the id is the same in all rows, and so is the receipt: each is kept once.
        ids: dict[str, SessionId] = {}
        texts: dict[str, str] = {}
        for name, session, value in self._database.execute("SELECT name, session_id, value FROM cursor"):
            self._receipts[sys.intern(name)][ids.setdefault(session, SessionId(session))] = texts.setdefault(
                value, value
            )


def _connect(path: Path, patience: float) -> sqlite3.Connection:
    try:
        try:
            return _prepare(path, patience)
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode not in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
                raise
            aside = path.with_name(f"{path.name}.damaged-{now_ms()}")
            path.replace(aside)
            logger.warning("database_damaged", moved_to=aside.name)
            return _prepare(path, patience)
    except (OSError, sqlite3.Error) as error:
        if (
            error.errno in TAKES_NOTHING
            if isinstance(error, OSError)
            else error.sqlite_errorcode & 0xFF in _DATABASE_TAKES_NOTHING
        ):
            raise disk_full(path, error) from error
        raise FolderUnusable(
            f"{path} cannot be used ({error}); check its rights and the disk, and that no other program has it open"
        ) from error


def _prune(database: sqlite3.Connection) -> None:
    """Let go of what has been kept long enough. Deliveries that were set aside stay until an operator takes them up."""
    with database:
        database.execute("DELETE FROM outbox WHERE state <> 'parked' AND updated_at < ?", (now_ms() - KEPT_MS,))
        database.execute("DELETE FROM parked WHERE at < ?", (now_ms() - KEPT_MS,))


def _prepare(path: Path, patience: float) -> sqlite3.Connection:
    path.touch(mode=0o600)
    database = sqlite3.connect(path, timeout=patience)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        migrate(database)
        _prune(database)
        with closing(database.execute("SELECT count(*) FROM cursor")) as rows:
            rows.fetchone()
    except sqlite3.DatabaseError:
        database.close()
        raise
    return database
