"""Where commands find what is asked: read-only, without the lock, whoever owns the data folder."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import quote

from bots.printing import fail, say
from bots.settings import load
from core.archive.decisions import AllowRule
from core.clock import now_ms
from core.confirmations.folder import read_record
from core.confirmations.life import expired
from core.confirmations.record import Record
from core.content import for_terminal
from core.errors import InvalidId, StoreUnavailable
from core.ids import SessionId, is_session_id, is_uuid, session_id

SHORTEST: Final = 8
"""Characters of a hash that stand for it, where no other one begins with them."""
_SHAPE: Final = "00000000-0000-0000-0000-000000000000"
_NAMES: Final = "SELECT session_id, coalesce(nullif(name, ''), title) FROM session"
_UNREADABLE: Final = "{path} cannot be read; `ishiki run` sets it aside at its start, and takes it as denied"


def data_folder() -> Path:
    """The one that the settings name. Ends with code 2 where it is none."""
    folder = load().ishiki_data_dir
    if not (folder / "runtimes").is_dir():
        fail(f"{folder} is no data folder; set ISHIKI_DATA_DIR to the one that `ishiki run` writes to", 2)
    return folder


def sessions(folder: Path, wanted: str | None) -> list[SessionId]:
    """The session that was named, or all. Ends with code 2 where it is not there."""
    runtimes = folder / "runtimes"
    if wanted is None:
        try:
            return sorted(SessionId(path.name) for path in runtimes.iterdir() if is_session_id(path.name))
        except OSError as error:
            fail(f"the data folder {folder} cannot be read ({error.strerror}); check its owner and rights", 2)
    try:
        session = session_id(wanted)
    except InvalidId as error:
        fail(str(error), 2)
    if not (runtimes / session).is_dir():
        fail(f"there is no session {session} in {folder}; `ishiki log stats` lists those that are there", 2)
    return [session]


def read(folder: Path, among: Iterable[SessionId]) -> tuple[list[Record], bool]:
    """What these sessions have pending, in the order in which it was asked; whether there is more than can be read.

    One whose time is over counts as expired, also before its file says so. What cannot be read is named.
    """
    found: list[Record] = []
    unreadable = False
    for path in _files(folder, among):
        try:
            record = _read(path)
        except ValueError:
            unreadable = True
            say(_UNREADABLE.format(path=for_terminal(str(path))))
        else:
            found += [] if record is None else [record]
    return sorted(found, key=lambda record: (record.created_at, record.task_hash)), unreadable


def find(folder: Path, beginning: str) -> Record:
    """The one record whose hash begins so, also one that is filed. Ends with code 1 where there is none.

    Code 2 where that is no beginning of a hash, or of several.
    """
    beginning = beginning.lower()
    if not SHORTEST <= len(beginning) <= len(_SHAPE) or not is_uuid(beginning + _SHAPE[len(beginning) :]):
        fail(f"that is no task hash; `ishiki pending` shows them, and {SHORTEST} characters of one are enough", 2)
    paths = [path for path in _files(folder, sessions(folder, None)) if path.stem.startswith(beginning)]
    if len(paths) > 1:
        fail(f"{len(paths)} hashes begin with {beginning}; give more of the one that you mean", 2)
    try:
        record = _read(paths[0]) if paths else None
    except ValueError:
        fail(_UNREADABLE.format(path=for_terminal(str(paths[0]))), 1)
    if record is not None:
        return record
    filed = rows(folder, "SELECT record FROM decision WHERE task_hash GLOB ? LIMIT 2", (f"{beginning}*",))
    if not filed:
        fail("there is no confirmation of that hash; `ishiki pending` lists the open ones", 1)
    if len(filed) > 1:
        fail(f"several hashes begin with {beginning}; give more of the one that you mean", 2)
    return Record.model_validate_json(str(filed[0][0]))


def rules(folder: Path) -> list[AllowRule]:
    """What is allowed for ever, oldest first: a new one goes to the end, so that numbers change only by revoking."""
    order = "granted_at, session_id, tool, args_hash, granted_by"
    select = f"SELECT session_id, tool, args_hash, granted_by, granted_at FROM allow_rule ORDER BY {order}"  # noqa: S608 - a constant
    return [AllowRule(*row) for row in rows(folder, select, ())]  # pyright: ignore[reportArgumentType] - as the table has it


def _files(folder: Path, among: Iterable[SessionId]) -> Iterator[Path]:
    for session in among:
        for path in sorted((folder / "runtimes" / session / "pending").glob("*.json")):
            if is_uuid(path.stem):
                yield path


def _read(path: Path) -> Record | None:
    """A record as it is now; None where it was filed in this moment. Raises `ValueError` where it cannot be read."""
    try:
        record = read_record(path, SessionId(path.parent.parent.name))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError("the disk does not give it") from error
    return expired(record, now_ms())


def names(folder: Path) -> dict[SessionId, str]:
    """What sessions are called by hand, else by their platform. Raises `StoreUnavailable`."""
    return {SessionId(str(session)): str(name) for session, name in query(folder, _NAMES, ())}


def rows(folder: Path, select: str, values: tuple[str, ...]) -> list[tuple[object, ...]]:
    """As `query`; ends with code 1 where the database cannot be read."""
    try:
        return query(folder, select, values)
    except StoreUnavailable as error:
        fail(str(error), 1)


def query(folder: Path, select: str, values: tuple[str, ...]) -> list[tuple[object, ...]]:
    """Rows of history.db; none where there is no database yet, or one from before that table or column.

    Raises `StoreUnavailable`.
    """
    path = folder / ".store" / "history.db"
    if not path.is_file():
        return []
    # Without a write-ahead log nobody has it open; a look at it then leaves no files beside it.
    closed = not path.with_name(f"{path.name}-wal").exists()
    address = f"file:{quote(str(path.absolute()))}?mode=ro{'&immutable=1' if closed else ''}"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=5.0)) as database:
            return database.execute(select, values).fetchall()
    except sqlite3.Error as error:
        if "no such table" in str(error) or "no such column" in str(error):
            return []
        raise StoreUnavailable(
            f"{path} cannot be read ({error}); check its owner and rights, and start `ishiki run`, which mends it"
        ) from error
