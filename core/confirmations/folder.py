"""`pending/` on disk: one small file per record, in place whole or not at all (sessions.md 1.6)."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from core.clock import now_ms
from core.confirmations.record import Record, Trouble
from core.errors import InvalidId
from core.files import sync_folders, write_whole
from core.ids import SessionId, TaskHash, is_uuid, session_id

BROKEN: Final = "broken"

logger = structlog.get_logger()


class Folder:
    """The pending files of all sessions. ``place`` gives a session's folder. Everything blocks."""

    def __init__(self, place: Callable[[SessionId], Path]) -> None:
        self._place = place

    def write(self, record: Record) -> None:
        """Put a record in place; it would survive a power cut when this returns. Raises `OSError`."""
        place = self._place(record.session_id)
        pending = place / "pending"
        if not pending.is_dir():
            pending.mkdir(mode=0o700, exist_ok=True)
        text = json.dumps(record.document(), ensure_ascii=False, indent=2, allow_nan=False)
        write_whole(pending / f"{record.task_hash}.json", text.encode() + b"\n")
        sync_folders(pending, place.parent)

    def remove(self, record: Record) -> None:
        """Take a record away that is kept elsewhere by now. Raises `OSError`."""
        path = self._place(record.session_id) / "pending" / f"{record.task_hash}.json"
        path.unlink(missing_ok=True)

    def read_all(self, sessions: Iterable[SessionId]) -> Iterator[Record]:
        """Every record of these sessions. One that cannot be read counts as denied, and is kept in ``broken/``."""
        for session in sessions:
            try:
                for found in self.read(session):
                    yield found if isinstance(found, Record) else self._given_up(session, found)
            except OSError as error:
                logger.error("pending_unreadable", session=session, reason=error.strerror)  # noqa: TRY400 - the reason says it

    def read(self, session: SessionId) -> Iterator[Record | TaskHash]:
        """Every record of a session; of a file that cannot be read the hash, after it was put into ``broken/``."""
        pending = self._place(session) / "pending"
        if not pending.is_dir():
            return
        for path in sorted(pending.glob("*.json")):
            if path.name.startswith(".") or not is_uuid(path.stem):
                continue  # a write that was cut off, or not ours
            try:
                record = read_record(path, session)
            except ValueError as error:
                _set_aside(path, error)
                yield TaskHash(path.stem)
            except OSError as error:
                cure = "check the disk and start again; nothing is decided meanwhile"
                logger.error("pending_unreadable", path=str(path), reason=error.strerror, cure=cure)  # noqa: TRY400 - as above
            else:
                yield record

    def _given_up(self, session: SessionId, task: TaskHash) -> Record:
        """What is told of a file that cannot be read, put into its place, now or at the next start."""
        denied = _denied(session, task)
        if not (self._place(session) / "pending" / BROKEN / f"{task}.json").exists():
            return denied  # it could not be set aside: it stays, and is found again
        try:
            self.write(denied)
        except OSError as error:
            logger.warning("pending_not_written", task=task, reason=error.strerror)
        return denied


def read_record(path: Path, session: SessionId) -> Record:
    """What a pending file of a session holds. Blocks. Raises `OSError`, and `ValueError` where it is no record."""
    record = Record.model_validate_json(path.read_bytes())
    _check(record, session, path.stem)
    return record


def _check(record: Record, session: SessionId, stem: str) -> None:
    """Raises `ValueError` where a file is not what its place says, or where what is written in it cannot be."""
    if record.task_hash != stem or record.session_id != session:
        raise ValueError("the file stands in another's place")
    try:
        for named in (record.origin, record.deliver_to):
            session_id(named)
    except InvalidId as error:
        raise ValueError("it names a session that is none") from error
    if record.is_open == (record.decided_at is not None):
        raise ValueError("it is neither open nor decided")
    if not record.is_open:
        return
    left = record.choices if record.kind == "confirm" else record.questions[record.current :]
    if not left or (record.prompt is not None and not record.prompt.message_ids):
        raise ValueError("there is nothing to answer in it")


def _denied(session: SessionId, task: TaskHash) -> Record:
    """What is told of a file that cannot be read."""
    now = now_ms()
    return Record(
        task_hash=task,
        session_id=session,
        kind="confirm",
        status="denied",
        origin=session,
        deliver_to=session,
        approvers="admins",
        created_at=now,
        expires_at=now,
        decided_at=now,
        closed_at=now,
        error=Trouble(message="its file could not be read", at=now),
    )


def _set_aside(path: Path, error: Exception) -> None:
    """Keep it in ``broken/``, and in its place until what is told of it is put there: a crash loses neither."""
    aside = path.parent / BROKEN
    try:
        aside.mkdir(mode=0o700, exist_ok=True)
        (aside / path.name).unlink(missing_ok=True)
        (aside / path.name).hardlink_to(path)
        sync_folders(aside, aside.parent)
    except OSError:
        # A folder, or a disk that knows no second name for a file, or one that takes nothing at all.
        with suppress(OSError):
            path.replace(aside / path.name)
    cure = "it counts as denied; look at it, and remove it"
    logger.error("pending_unreadable", moved_to=str(aside / path.name), error=type(error).__name__, cure=cure)
