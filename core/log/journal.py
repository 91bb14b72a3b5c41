"""One durable write for all sessions: group commit and recovery (design page, "Durability").

One committer thread takes whatever waits, writes it to the journal, syncs once, writes the lines to their session
files and wakes the waiters. No delay is added: a batch forms by itself while the last sync runs. Session files are
synced when the journal turns over, which it does when it has grown, and at a clean stop, after which it is empty.
"""

import asyncio
import errno
import os
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import structlog

from core.errors import FolderUnusable
from core.health import Health, Troubles
from core.log.descriptors import Descriptors, OpenFile
from core.log.disk import TAKES_NOTHING, Disk, disk_full, unavailable
from core.log.lines import Line
from core.log.port import Appending
from core.log.records import Record, Sidecars, pack
from core.log.recovery import Recovery, put_sidecars, sync_paths

TURN_OVER_AT: Final = 32 * 1024 * 1024
"""Bytes. A turnover syncs every file that was written to since the last one; a start reads what the journal holds."""
LULL: Final = 0.05
"""Seconds without anything to write; then the journal is turned over at `LULL_SHARE` of its size, 1 MiB."""
LULL_SHARE: Final = 1 / 32
MOST_IN_A_LULL: Final = 64
"""Files. To sync more takes longer than a lull may last, and what comes meanwhile would wait for it."""
MOST_TOGETHER: Final = 256
"""Batches in one commit. Each may open one more session file, and a process may have 1024 open by default."""

logger = structlog.get_logger()


class Batch(msgspec.Struct, eq=False):
    """Lines that wait to become durable. ``done`` is settled in ``loop``, after ``grown`` was told the new end."""

    session: str
    lines: Sequence[bytes]
    sidecars: Sidecars
    loop: asyncio.AbstractEventLoop
    done: Appending
    grown: Callable[[int], None]
    written: list[Line] = []
    failure: Exception | None = None


class _Leaving(NamedTuple):
    """A session that is going to be removed; ``done`` once neither a descriptor nor the journal holds any of it."""

    session: str
    done: Future[None]


class _Laid(NamedTuple):
    """What one commit adds to a session's file."""

    file: OpenFile
    record: Record


class Journal:
    """The committer of a data folder.

    `start` recovers what a crash left and raises `DiskFull` or `FolderUnusable` when it cannot; `stop` syncs everything
    and leaves the journal empty. Between them `put` takes batches from any thread.
    """

    def __init__(self, folder: Path, *, disk: Disk | None = None, turn_over_at: int = TURN_OVER_AT) -> None:
        self._runtimes = folder / "runtimes"
        self._path = folder / ".store" / "journal"
        self._disk = disk or Disk()
        self._turn_over_at = turn_over_at
        self._waiting: queue.SimpleQueue[Sequence[Batch] | _Leaving | None] = queue.SimpleQueue()
        self._gathered: dict[asyncio.AbstractEventLoop, list[Batch]] = {}
        self._thread: threading.Thread | None = None
        self._files = Descriptors(self._runtimes, self._disk)
        self._recovery = Recovery(folder, self._disk)
        self._journal: int | None = None
        self._generation = b""
        self._end = 0
        self._unsynced: set[Path] = set()
        self._broken = False
        self._cut: dict[str, int] = {}
        self.health = Health("disk", problem=None)
        self._troubles = Troubles(self.health)

    def start(self) -> None:
        """Recover, then take batches. Blocks."""
        try:
            self._disk.make_folder(self._runtimes)
            if not self._path.parent.is_dir():
                self._sync_above()
                self._disk.make_folder(self._path.parent)
            journal = self._disk.open(self._path)
            for folder in (self._path.parent, self._path.parent.parent):
                self._disk.sync_folder(folder)
            self._renew(journal)
        except OSError as error:
            folder = self._path.parent.parent
            if error.errno in TAKES_NOTHING:
                raise disk_full(folder, error) from error
            raise FolderUnusable(
                f"the data folder {folder} cannot be used ({error.strerror}); "
                "check its owner, its rights and the disk, or set ISHIKI_DATA_DIR to another folder"
            ) from error
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def _sync_above(self) -> None:
        """Make the data folder's own name durable, and those of all above it, one of which may be as new."""
        for folder in self._runtimes.parent.absolute().parents:
            with suppress(OSError):  # somebody else's; what we made is ours
                self._disk.sync_folder(folder)

    def stop(self) -> None:
        """Finish what waits, sync the session files and leave an empty journal. Blocks."""
        if self._thread is None:
            return
        self._waiting.put(None)
        self._thread.join()
        self._thread = None
        self._refuse_waiting()

    def put(self, batch: Batch) -> None:
        """Queue a batch of the running loop; it is settled when it is durable, or with `LogUnavailable`.

        What a loop puts in one turn is handed over together: waking the committer for the first of them would cut them
        apart, and the others would wait for two syncs.
        """
        gathered = self._gathered.setdefault(batch.loop, [])
        gathered.append(batch)
        if len(gathered) == 1:
            batch.loop.call_soon(self._hand_over, batch.loop)

    def let_go(self, session: str) -> None:
        """Close a session's file, and hold nothing of it that a recovery would put back. Blocks; raises `OSError`.

        For whoever removes its folder, after the last batch of it was settled.
        """
        leaving = _Leaving(session, Future())
        self._waiting.put(leaving)
        if self._thread is None:
            self._refuse_waiting()
        leaving.done.result()

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        gathered = self._gathered.pop(loop)
        for start in range(0, len(gathered), MOST_TOGETHER // 2):
            self._waiting.put(gathered[start : start + MOST_TOGETHER // 2])
        if self._thread is None:
            self._refuse_waiting()

    def _refuse_waiting(self) -> None:
        """Nobody takes batches any more: whoever comes late is told so instead of waiting for ever."""
        with suppress(queue.Empty):
            while True:
                item = self._waiting.get_nowait()
                stopped = OSError("the journal is stopped")
                if isinstance(item, _Leaving):
                    item.done.set_exception(stopped)
                    continue
                for batch in item or ():
                    batch.failure = stopped
                    _wake([batch])

    # --- the committer thread -------------------------------------------------------------------------------------

    def _run(self) -> None:
        stopping = False
        while not stopping:
            group: list[Batch] = []
            leaving: list[_Leaving] = []
            item = self._next()
            while True:
                if item is None:
                    stopping = True
                elif isinstance(item, _Leaving):
                    leaving.append(item)
                else:
                    group += item
                if len(group) >= MOST_TOGETHER // 2:
                    break
                try:
                    item = self._waiting.get_nowait()
                except queue.Empty:
                    break
            if group:
                self._commit(group)
            for session, done in leaving:
                self._leave(session, done)
        # Where even that fails the journal keeps what it has: the next start puts it back.
        with suppress(OSError):
            if self._broken:
                self._mend()
            else:
                self._turn_over()
        self._close()

    def _leave(self, session: str, done: Future[None]) -> None:
        try:
            if self._broken:
                self._mend()  # which leaves an empty journal
            self._files.forget(session)
            self._recovery.drop(session)
            if self._runtimes / session / "events.jsonl" in self._unsynced:
                self._broken = True  # unless it comes to its end
                self._turn_over()
                self._broken = False
        except Exception as error:  # noqa: BLE001 - handed to who waits; a dead committer would let all wait for ever
            done.set_exception(error)
        else:
            done.set_result(None)

    def _next(self) -> Sequence[Batch] | _Leaving | None:
        """What is handed over next. In a lull the journal is turned over, so that nobody has to wait for that later."""
        much = self._turn_over_at * LULL_SHARE
        if self._end >= much and len(self._unsynced) <= MOST_IN_A_LULL:
            try:
                return self._waiting.get(timeout=LULL)
            except queue.Empty:
                self._tidy(much)
        return self._waiting.get()

    def _commit(self, group: list[Batch]) -> None:
        try:
            if self._broken:
                self._mend()
            ready = self._lay_out(group)
            if ready:
                self._write(ready)
        except Exception as error:  # noqa: BLE001 - handed to all who wait; a dead committer would let them wait for ever
            self._broken = True
            reason = getattr(error, "strerror", None) or type(error).__name__
            sentence = f"the disk does not take writes ({reason}); make room or mend it, and it goes on by itself"
            self._troubles.begin("disk", sentence)
            for batch in group:
                batch.failure = batch.failure or error
        else:
            if ready:
                self._troubles.end("disk")
            elif any(isinstance(batch.failure, OSError) and batch.failure.errno in TAKES_NOTHING for batch in group):
                self._troubles.begin("disk", "the disk takes no new file; make room, and it goes on by itself")
        _wake(group)
        self._tidy(self._turn_over_at)

    def _tidy(self, most: float) -> None:
        """Turn the journal over where it holds so many bytes."""
        if self._broken:
            return
        try:
            self._files.close_some()
            if self._end >= most:
                self._turn_over()
        except OSError as error:
            self._broken = True
            logger.warning("journal_not_turned_over", error=error.strerror)

    def _lay_out(self, group: list[Batch]) -> list[_Laid]:
        """Give each batch its place, one record per session: its batches stand together, in order.

        What cannot be placed fails alone, before anything is written of it.
        """
        by_session: dict[str, list[Batch]] = {}
        for batch in group:
            try:
                for folder in {(self._runtimes / batch.session / name).parent for name in batch.sidecars}:
                    self._disk.make_folder(folder)
            except OSError as error:
                batch.failure = error
            else:
                by_session.setdefault(batch.session, []).append(batch)
        ready: list[_Laid] = []
        for session, batches in by_session.items():
            try:
                ready.append(_laid(session, self._file(session), batches))
            except OSError as error:
                for batch in batches:
                    batch.failure = error
        return ready

    def _file(self, session: str) -> OpenFile:
        if session in self._recovery.held:
            raise OSError(errno.EBUSY, "its earlier lines found no place")
        return self._files.of(session)

    def _write(self, ready: list[_Laid]) -> None:
        packed = pack([laid.record for laid in ready], self._generation)
        journal = self._journal
        if journal is None:
            raise OSError("the journal is closed")
        self._disk.write_at(journal, self._end, packed)
        self._disk.sync(journal)
        for file, record in ready:
            self._disk.write_at(file.descriptor, record.offset, record.content)
            self._unsynced.add(file.path)
            if record.sidecars:
                self._unsynced |= put_sidecars(self._runtimes / record.session, record.sidecars, self._disk)
        # Only now: a failure above leaves these as they were, and mending cuts back to them.
        self._end += len(packed)
        for file, record in ready:
            file.end, file.ended = record.offset + len(record.content), True

    def _turn_over(self) -> None:
        """Make the session files durable by themselves and start the journal anew."""
        sync_paths(self._unsynced, self._disk)
        self._unsynced.clear()
        journal = self._journal
        if journal is None:
            raise OSError("the journal is closed")
        self._disk.truncate(journal, 0)
        self._disk.sync(journal)
        self._end = 0
        self._generation = os.urandom(8)

    def _mend(self) -> None:
        """After a failure: forget every descriptor, cut off what was not acknowledged, redo the rest, begin anew.

        A descriptor whose sync failed once may report success later though its pages are lost, so nothing is
        acknowledged on it again.
        """
        self._cut |= self._files.forget_all()
        self._close_journal()
        journal = self._disk.open(self._path)
        try:
            self._disk.truncate(journal, self._end)
            self._files.cut_back(self._cut)
        except OSError:
            self._disk.close(journal)
            raise
        self._renew(journal)
        self._cut.clear()
        self._broken = False
        logger.info("journal_mended")

    def _renew(self, journal: int) -> None:
        """Put back what the journal holds, then empty it."""
        try:
            size = self._disk.size(journal)
            self._recovery.put_back(self._disk.read_at(journal, 0, size))
            held = {self._runtimes / session for session in self._recovery.held}  # whose lines the recovery keeps
            sync_paths({path for path in self._unsynced if held.isdisjoint(path.parents)}, self._disk)
            self._unsynced.clear()
            self._disk.truncate(journal, 0)
            self._disk.sync(journal)
        except OSError:
            self._disk.close(journal)
            raise
        for session, reason in self._recovery.held.items():
            sentence = f"the log of {session} cannot be written ({reason}); mend its file and start again"
            self._troubles.begin(session, sentence)
        self._journal, self._end, self._generation = journal, 0, os.urandom(8)

    def _close(self) -> None:
        self._files.forget_all()
        self._close_journal()

    def _close_journal(self) -> None:
        journal, self._journal = self._journal, None
        if journal is not None:
            with suppress(OSError):
                self._disk.close(journal)


def _wake(group: list[Batch]) -> None:
    """Settle what waits, one call into each loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Batch]] = {}
    for batch in group:
        by_loop.setdefault(batch.loop, []).append(batch)
    for loop, batches in by_loop.items():
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, batches)


def _settle(batches: list[Batch]) -> None:
    for batch in batches:
        if batch.failure is not None:
            batch.done.fail(unavailable(batch.session, batch.failure))
        else:
            batch.grown(batch.written[-1].end)
            batch.done.succeed(batch.written)


def _laid(session: str, file: OpenFile, batches: list[Batch]) -> _Laid:
    """The record of these batches, which stand at the end of their file; each is told where its lines are."""
    lines: list[bytes] = [] if file.ended else [b""]  # an LF closes off a torn line
    end = file.end + len(lines)
    for batch in batches:
        lines += batch.lines
        for raw in batch.lines:
            start, end = end, end + len(raw) + 1
            batch.written.append(Line(start, end, raw))
    sidecars = {name: content for batch in batches for name, content in batch.sidecars.items()}
    return _Laid(file, Record(session, file.end, b"\n".join((*lines, b"")), sidecars))
