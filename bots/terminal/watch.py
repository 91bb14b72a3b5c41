"""What stands in the data folder now: its sessions, their names, and what is asked. Read-only, without the lock."""

import os
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import ValidationError

from bots import pending_sources
from bots.terminal.menu import Row, is_listed
from core.clock import now_ms
from core.confirmations.folder import read_record
from core.confirmations.life import expired
from core.confirmations.record import Record
from core.errors import StoreUnavailable
from core.ids import SessionId, TaskHash, is_session_id, is_uuid

_FILED: Final = "SELECT record FROM decision WHERE task_hash = ?"
_FILED_IN: Final = (
    "SELECT record FROM decision WHERE json_extract(record, '$.deliver_to') = ? ORDER BY decided_at DESC LIMIT 200"
)


class Overview(NamedTuple):
    """``asked`` is what is open, in the order in which it was asked, ``decided`` what was so at the look before.

    ``trouble`` is a sentence where something could not be read.
    """

    rows: list[Row]
    asked: list[Record]
    decided: list[Record]
    trouble: str = ""


class Watch:
    """Looks again and again; what did not change is not read again. Belongs to one thread at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pending: dict[SessionId, tuple[int, list[Record]]] = {}
        self._names: dict[SessionId, str] = {}
        self._names_of: object = None
        self._asked: dict[TaskHash, Record] = {}

    def look(self) -> Overview:
        """Blocks. Never raises: what cannot be read is said, and what was known of it still holds."""
        trouble = ""
        try:
            sessions = self._sessions()
        except OSError as error:
            trouble = f"the data folder {self._folder} cannot be read ({error.strerror}); is its disk still there?"
            return Overview([], [*self._asked.values()], [], trouble)
        try:
            self._read_names()
        except StoreUnavailable as error:
            trouble = str(error)
        asked = self._read_asked([session for session, _ in sessions])
        gone = [record for task, record in self._asked.items() if task not in asked]
        decided = [found for record in gone if (found := self._outcome(record)) is not None]
        self._asked = asked
        waiting = Counter(record.deliver_to for record in asked.values())
        rows = [
            Row(session, self._names.get(session, ""), last_at, waiting[session])
            for session, last_at in sessions
            if is_listed(session)
        ]
        ordered = sorted(asked.values(), key=lambda record: (record.created_at, record.task_hash))
        return Overview(rows, ordered, decided, trouble)

    def decided_in(self, session: SessionId) -> list[Record]:
        """What was asked in a chat and is decided, the newest first, no further back than one would read. Blocks."""
        try:
            rows = pending_sources.query(self._folder, _FILED_IN, (session,))
        except StoreUnavailable:
            return []
        return [record for (text,) in rows if (record := _record(str(text))) is not None]

    def _sessions(self) -> list[tuple[SessionId, int]]:
        """Every session, and when its log was last written to, in Unix ms."""
        found: list[tuple[SessionId, int]] = []
        runtimes = str(self._folder / "runtimes")
        with os.scandir(runtimes) as folders:
            for name in (folder.name for folder in folders):
                if not is_session_id(name):
                    continue
                try:
                    # Ten thousand of them are looked at each time, and a `Path` takes longer than the answer.
                    last_at = os.stat(f"{runtimes}/{name}/events.jsonl").st_mtime_ns // 1_000_000  # noqa: PTH116
                except OSError:
                    last_at = 0
                found.append((SessionId(name), last_at))
        return found

    def _read_names(self) -> None:
        """Only where the database was written to. Raises `StoreUnavailable`."""
        database = self._folder / ".store" / "history.db"
        stamps = [_stamp(database), _stamp(database.with_name(f"{database.name}-wal"))]
        if stamps != self._names_of:
            self._names = pending_sources.names(self._folder)
            self._names_of = stamps

    def _read_asked(self, sessions: list[SessionId]) -> dict[TaskHash, Record]:
        """A record is put in place by renaming, so that a folder whose time stands holds what it held."""
        now = now_ms()
        known, self._pending = self._pending, {}
        found: dict[TaskHash, Record] = {}
        for session in sessions:
            folder = f"{self._folder}/runtimes/{session}/pending"
            try:
                stamp = os.stat(folder).st_mtime_ns  # noqa: PTH116 - as above
            except OSError:
                continue
            before = known.get(session)
            # A folder that changed a moment ago may change again within the same tick of the file system's clock.
            settled = before is not None and before[0] == stamp and now - stamp // 1_000_000 > 2000
            records = before[1] if settled and before is not None else _read(Path(folder), session)
            self._pending[session] = stamp, records
            found |= {record.task_hash: record for record in records if expired(record, now).is_open}
        return found

    def _outcome(self, record: Record) -> Record | None:
        """How what was open is decided; None where that cannot be told."""
        path = self._folder / "runtimes" / record.session_id / "pending" / f"{record.task_hash}.json"
        try:
            now = expired(read_record(path, record.session_id), now_ms())
        except (OSError, ValueError):
            now = self._filed(record)
        return None if now is None or now.is_open else now

    def _filed(self, record: Record) -> Record | None:
        try:
            rows = pending_sources.query(self._folder, _FILED, (record.task_hash,))
        except StoreUnavailable:
            return None
        return next((_record(str(text)) for (text,) in rows), None)


def _read(folder: Path, session: SessionId) -> list[Record]:
    """Those that can be read; the others are set aside by whoever owns the folder."""
    found: list[Record] = []
    try:
        paths = [path for path in folder.iterdir() if path.suffix == ".json" and is_uuid(path.stem)]
    except OSError:
        return []
    for path in paths:
        try:
            found.append(read_record(path, session))
        except (OSError, ValueError):
            continue
    return found


def _record(text: str) -> Record | None:
    try:
        return Record.model_validate_json(text)
    except ValidationError:
        return None


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
