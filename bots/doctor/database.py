"""history.db, and what was set aside in it or beside it."""

import sqlite3
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

from bots.doctor.verdict import NotLookedAt, Verdict, counted, fail, listed, ok, warn
from core.archive.schema import MIGRATIONS
from core.confirmations.folder import BROKEN

CHECKED_FOR: Final = 6.0
"""Seconds for SQLite's own check of a large database."""
_STEPS: Final = 10_000
"""SQLite's steps between two looks at the clock."""


def look_at_database(folder: Path, checked_for: float = CHECKED_FOR) -> Verdict:
    """Whether it opens, is whole and of our version."""
    path = _path(folder)
    if not path.exists():
        return ok("history.db is not there yet; `ishiki run` makes it")
    try:
        with _opened(path) as database:
            version = int(database.execute("PRAGMA user_version").fetchone()[0])
            whole = _is_whole(database, checked_for)
    except (sqlite3.Error, OSError) as error:
        return _unusable(error)
    if whole is False:
        return fail("history.db is damaged", "stop `ishiki run` and start it again: it moves the file aside")
    if version > len(MIGRATIONS):
        return fail(f"history.db is of a newer version ({version}) than this program", "run that newer version again")
    return ok("history.db is whole" if whole else "history.db opens; it is too large to check in a moment")


def look_at_pending(folder: Path) -> Verdict:
    """Whether questions were lost because their file could not be read."""
    broken = sorted(path.parents[2].name for path in (folder / "runtimes").glob(f"*/pending/{BROKEN}/*"))
    if broken:
        return warn(
            f"{counted(len(broken), 'confirmation')} could not be read and counted as denied: {listed(broken)}",
            f"look into runtimes/<session>/pending/{BROKEN}, then remove them",
        )
    return ok("every confirmation on disk was readable")


def look_at_parked(folder: Path) -> Verdict:
    """Whether something was set aside: deliveries that the runtime refused, events that we could not read."""
    path = _path(folder)
    if not path.exists():
        return ok("nothing is set aside")
    try:
        with _opened(path) as database:
            refused = _count(database, "SELECT count(*) FROM outbox WHERE state = 'parked'")
            unread = _count(database, "SELECT count(*) FROM parked")
    except (sqlite3.Error, OSError) as error:
        raise NotLookedAt("database") from error
    if refused:
        return warn(
            f"the runtime refused {refused} of what was delivered for good, which is set aside",
            "see why it answers 400, 409, 410, 413 or 422 to those, then `ishiki deliver retry`",
        )
    if unread:
        return warn(
            f"{counted(unread, 'event')} of the last 7 days could not be read or written, and set aside",
            "please report what `reason` in the table `parked` of history.db says",
        )
    return ok("nothing is set aside")


def paired(folder: Path) -> frozenset[str]:
    """The sessions that were let in by a code; none where that cannot be read."""
    try:
        with _opened(_path(folder)) as database:
            return frozenset(str(session) for (session,) in database.execute("SELECT session_id FROM paired"))
    except (sqlite3.Error, OSError):
        return frozenset()


def _is_whole(database: sqlite3.Connection, checked_for: float) -> bool | None:
    """None where that takes longer than we look."""
    ends = time.monotonic() + checked_for
    database.set_progress_handler(lambda: int(time.monotonic() > ends), _STEPS)
    try:
        return database.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        return None


def _unusable(error: sqlite3.Error | OSError) -> Verdict:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return fail("history.db is damaged", "stop `ishiki run` and start it again: it moves the file aside")
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return warn("another program keeps history.db to itself", "close that program")
    return fail(f"history.db cannot be opened ({error})", "check its owner, its rights and the disk")


def _count(database: sqlite3.Connection, select: str) -> int:
    try:
        return int(database.execute(select).fetchone()[0])
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return 0  # a database from before that table
        raise


@contextmanager
def _opened(path: Path) -> Generator[sqlite3.Connection]:
    # Without a write-ahead log nobody has it open; a look at it then leaves no files beside it.
    closed = not path.with_name(f"{path.name}-wal").exists()
    address = f"file:{quote(str(path.absolute()))}?mode=ro{'&immutable=1' if closed else ''}"
    with closing(sqlite3.connect(address, uri=True, timeout=2.0)) as database:
        yield database


def _path(folder: Path) -> Path:
    return folder / ".store" / "history.db"
