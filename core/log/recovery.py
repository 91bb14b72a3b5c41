"""What a journal holds goes back to the session files, at the start and after a failure.

A session whose file cannot be opened any more keeps nobody else from starting: its records go to
``.store/journal.kept`` and nothing is appended to it until they found their place, which every start tries first. A
journal that was damaged after it had been durable is copied aside; what whole frames hold is put back all the same.
"""

import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from core.log.disk import OF_THE_FILE, Disk
from core.log.records import Record, Sidecars, pack, unpack

SYNCED_AT_ONCE: Final = 32

logger = structlog.get_logger()


class Recovery:
    """Used by one thread at a time. All calls block and raise `OSError`."""

    def __init__(self, folder: Path, disk: Disk) -> None:
        self._store = folder / ".store"
        self._runtimes = folder / "runtimes"
        self._disk = disk
        self.held: dict[str, str] = {}
        """Sessions that nothing may be appended to, and why."""

    def put_back(self, journal: bytes) -> None:
        """Make the session files hold what the journal does, durably; afterwards the journal may be emptied."""
        found = unpack(journal)
        if found.damaged:
            self._set_aside(journal, found.damaged)
        elif found.torn:
            logger.info("journal_torn_tail", bytes=found.torn, meaning="it was never acknowledged")
        kept = self._read_kept()
        by_session: dict[str, list[Record]] = {}
        for record in [*kept, *found.records]:
            by_session.setdefault(record.session, []).append(record)
        left: list[Record] = []
        placed: set[Path] = set()
        differed = 0
        for session, records in by_session.items():
            try:
                differed += self._place(session, records)
            except OSError as error:
                if error.errno not in OF_THE_FILE:
                    raise
                left += [record for number, record in enumerate(records) if record not in records[:number]]
                self._hold(session, error.strerror or type(error).__name__)
            else:
                names = {"events.jsonl", *(name for record in records for name in record.sidecars)}
                placed |= {self._runtimes / session / name for name in names}
        sync_paths(placed, self._disk)
        self._keep(left, kept)
        if differed:
            logger.warning("logs_recovered", sessions=differed)

    def drop(self, session: str) -> None:
        """Keep nothing of a session that is going to be removed; what found no place would bring it back."""
        if self.held.pop(session, None) is not None:
            kept = self._read_kept()
            self._keep([record for record in kept if record.session != session], kept)

    def _place(self, session: str, records: Sequence[Record]) -> bool:
        """Write what a session file lacks or holds torn. Returns whether it differed.

        The one write to a log that is no append. A stretch that reads back equal is written all the same: after a
        failed sync the page cache shows what the device never got.
        """
        folder = self._runtimes / session
        self._disk.make_folder(folder)
        descriptor = self._disk.open(folder / "events.jsonl")
        try:
            lost = 0
            differed = False
            for record in records:
                lost += self._close_gap(descriptor, record.offset)
                differed |= self._disk.read_at(descriptor, record.offset, len(record.content)) != record.content
                self._disk.write_at(descriptor, record.offset, record.content)
        finally:
            self._disk.close(descriptor)
        if lost:
            cure = "look for them in a journal.damaged file of .store or in a backup"
            logger.error("log_lacks_bytes", session=session, bytes=lost, cure=cure)
        for record in records:
            put_sidecars(folder, record.sidecars, self._disk)
        return differed

    def _close_gap(self, descriptor: int, offset: int) -> int:
        """Let the file reach up to an offset, in one bad line that checks find. Returns how many bytes it lacked.

        Later entries keep their places, and none is glued to what is missing.
        """
        size = self._disk.size(descriptor)
        if size < offset:
            self._disk.write_at(descriptor, offset - 1, b"\n")
        return max(0, offset - size)

    def _read_kept(self) -> list[Record]:
        """From the file each time: what a process remembers of it may be what never got there."""
        path = self._kept
        return unpack(path.read_bytes()).records if path.exists() else []

    @property
    def _kept(self) -> Path:
        return self._store / "journal.kept"

    def _keep(self, left: Sequence[Record], before: Sequence[Record]) -> None:
        if list(left) == list(before):
            return
        if left:
            self._disk.put_whole(self._kept, pack(left, b"kept one"))
        else:
            self._disk.unlink(self._kept)
        self._disk.sync_folder(self._store)

    def _hold(self, session: str, reason: str) -> None:
        self.held[session] = reason
        cure = "mend what stands there and start again; until then nothing is appended to this session"
        path = str(self._runtimes / session / "events.jsonl")
        logger.error("log_cannot_be_put_back", path=path, reason=reason, kept_in=str(self._kept), cure=cure)

    def _set_aside(self, journal: bytes, damaged: int) -> None:
        """One copy of it, however often its recovery is cut off."""
        copy = self._store / f"journal.damaged-{zlib.crc32(journal):08x}"
        self._disk.put_whole(copy, journal)
        self._disk.sync_folder(self._store)
        # Of the damaged part only the page cache may hold what the session files have.
        self._disk.sync_all()
        cure = "check the disk; `ishiki log check` names the logs that lack something"
        logger.error("journal_damaged", bytes=damaged, copy=str(copy), cure=cure)


def put_sidecars(folder: Path, sidecars: Sidecars, disk: Disk) -> set[Path]:
    """Put small files into a session's folder. Returns which. Where something else stands the log does without."""
    put: set[Path] = set()
    for name, content in sidecars.items():
        try:
            disk.write_new(folder / name, content)
        except OSError as error:
            if error.errno not in OF_THE_FILE:
                raise
            # That file will not be fetched.
            logger.warning("sidecar_not_placed", session=folder.name, file=name, reason=error.strerror)
        else:
            put.add(folder / name)
    return put


def sync_paths(paths: set[Path], disk: Disk) -> None:
    """Make files and the names they stand under durable. A file that is gone has nothing to lose.

    Many are synced at the same time: disks take that well, and the committer waits for all of them.
    """

    def sync_file(path: Path) -> None:
        try:
            descriptor = disk.open(path, make=False)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return
        try:
            disk.sync(descriptor)
        finally:
            disk.close(descriptor)

    def sync_folder(path: Path) -> None:
        with suppress(FileNotFoundError, NotADirectoryError):
            disk.sync_folder(path)

    _each(sync_file, paths)
    _each(sync_folder, {folder for path in paths for folder in (path.parent, path.parent.parent)})


def _each(work: Callable[[Path], None], paths: set[Path]) -> None:
    if len(paths) <= SYNCED_AT_ONCE:
        for path in paths:
            work(path)
    else:
        with ThreadPoolExecutor(SYNCED_AT_ONCE, thread_name_prefix="sync") as threads:
            for _ in threads.map(work, paths):
                pass
