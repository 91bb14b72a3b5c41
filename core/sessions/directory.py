"""Which chat is which session. Opens each once, and owns the data folder's lock."""

import asyncio
import fcntl
import os
import socket
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import structlog

from core.entries import AnyEntry
from core.errors import FolderHeld, FolderUnusable, InvalidId, UnknownSession
from core.files import sync_folder
from core.ids import SessionId, TurnId, session_id
from core.log.disk import TAKES_NOTHING, disk_full
from core.log.file import FileLog
from core.log.journal import Journal
from core.sessions.reading import Reading, Recorded
from core.sessions.session import Owed, Session, nothing_owed

MOST_REMEMBERED: Final = 1024
"""Sessions whose newest messages are kept in memory; the others fold their log's end again when they wake."""

MOST_GONE: Final = 1024
"""Removed sessions whose ids are remembered for those who were about to write to them."""

logger = structlog.get_logger()

Listener = Callable[[Session, Sequence[Recorded]], None]


class FolderLock:
    """``ishiki.lock``: one process at a time owns a data folder. Freed by the system when the process ends."""

    def __init__(self, folder: Path) -> None:
        """Raises `FolderHeld`, naming the holder, `DiskFull` or `FolderUnusable`."""
        path = folder / "ishiki.lock"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            if error.errno in TAKES_NOTHING:
                raise disk_full(folder, error) from error
            raise FolderUnusable(
                f"the data folder {folder} cannot be used ({error.strerror}); "
                "make it a folder that you own, or set ISHIKI_DATA_DIR to another one"
            ) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 200, 0).decode(errors="replace").strip()
            os.close(self._descriptor)
            raise FolderHeld(
                f"the data folder {folder} is held by {holder or 'another process'}; "
                "stop that one first, or set ISHIKI_DATA_DIR to another folder"
            ) from None
        with suppress(OSError):  # on a full disk the lock holds as well without a name in it
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)

    def release(self) -> None:
        with suppress(OSError):
            os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)


class Sessions:
    """All sessions of a data folder. Belongs to one event loop."""

    def __init__(self, folder: Path, journal: Journal) -> None:
        self._runtimes = folder / "runtimes"
        self._place = str(self._runtimes)
        self._journal = journal
        self._open: dict[SessionId, Session] = {}
        self._remembered: OrderedDict[SessionId, Session] = OrderedDict()
        self._gone: OrderedDict[SessionId, None] = OrderedDict()
        self._listeners: list[Listener] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._owed: Owed = nothing_owed

    def listen(self, listener: Listener) -> None:
        """Be told of all lines that have become durable, in each session in file order, on the event loop."""
        self._listeners.append(listener)

    def settle_cut_off_turns(self, owed: Owed) -> None:
        """Have the lines written that a turn still owes which an earlier process left open."""
        self._owed = owed

    def of(self, session: SessionId) -> Session:
        """The session of that id; its folder is made by the first append. Raises `UnknownSession` after a removal."""
        found = self._open.get(session)
        if found is None:
            if session in self._gone:
                raise UnknownSession("that session was removed; begin another one")
            log = FileLog(self._runtimes, session, self._journal)
            found = self._open[session] = Session(
                session, log, on_append=self._tell, spawn=self._spawn, owed=self._settle
            )
        self._remembered[session] = found
        self._remembered.move_to_end(session)
        if len(self._remembered) > MOST_REMEMBERED:
            # Only its memory goes: the small object stays, as others may hold it and a log has one owner.
            _, oldest = self._remembered.popitem(last=False)
            oldest.forget()
        return found

    def existing(self, session: SessionId) -> Session:
        """The session of that id. Raises `UnknownSession` where nothing was ever recorded in it."""
        if session not in self._open and not self.folder(session).is_dir():
            raise UnknownSession("there is no session of that id; `ishiki log stats` lists them")
        return self.of(session)

    def exists(self, session: SessionId) -> bool:
        return self.folder(session).is_dir()

    async def create(self, session: SessionId) -> None:
        """Make the folder of a session before anything is recorded in it; again is no error.

        It would survive a power cut when this returns. Raises `OSError`.
        """
        self._gone.pop(session, None)
        await asyncio.to_thread(_make_folder, self.folder(session))

    def folder(self, session: SessionId) -> Path:
        return self._runtimes / session

    def ids(self) -> Iterator[SessionId]:
        """Every session that has a folder. Blocks."""
        if not self._runtimes.is_dir():
            return
        with os.scandir(self._runtimes) as found:
            for folder in found:
                try:
                    yield session_id(folder.name)
                except InvalidId:
                    continue  # not ours: neither read nor deleted

    def sizes(self) -> Iterator[tuple[SessionId, int]]:
        """Every session and the size of its log in bytes, without opening one. Blocks."""
        for session in self.ids():
            try:
                yield session, self._stat(session).st_size
            except FileNotFoundError:
                continue
            except OSError as error:
                logger.warning("log_unreadable", session=session, reason=error.strerror, cure="mend what stands there")

    def activity(self) -> Iterator[tuple[SessionId, float]]:
        """Every session, and `touched_at` of it. Blocks."""
        for session in self.ids():
            yield session, self.touched_at(session)

    def touched_at(self, session: SessionId) -> float:
        """When its log was last written to, in Unix seconds; 0 where there is none that can be read. Blocks."""
        try:
            return self._stat(session).st_mtime
        except OSError:
            return 0.0

    def _stat(self, session: SessionId) -> os.stat_result:
        """What the system knows of a log. A start asks for all of them, and a `Path` takes longer than the answer."""
        return os.stat(f"{self._place}/{session}/events.jsonl")  # noqa: PTH116 - as above

    def reading(self, session: SessionId) -> Reading:
        """A log to read in any thread, apart from who appends to it. Raises `OSError`."""
        return Reading(session, FileLog(self._runtimes, session, self._journal))

    # --- for `core.sessions.removal` ------------------------------------------------------------------------------

    async def let_go(self, session: SessionId) -> None:
        """Take nothing more for a session and hold nothing of it open, so that its folder may be removed.

        Followed by `bury` or, where nothing came of it, by `take_back`. Raises `OSError`: the disk refused.
        """
        await self.of(session).close()
        await asyncio.to_thread(self._journal.let_go, session)

    def take_back(self, session: SessionId) -> None:
        """A session that was let go of stays: the next who asks for it gets it anew."""
        self._open.pop(session, None)
        self._remembered.pop(session, None)

    def bury(self, session: SessionId) -> None:
        """A session is gone; who was about to write to it is told so, instead of bringing it back."""
        self.take_back(session)
        self._gone[session] = None
        if len(self._gone) > MOST_GONE:
            self._gone.popitem(last=False)

    async def close(self) -> None:
        """Wait until what was handed in is durable or refused."""
        while busy := [session for session in self._open.values() if session.is_busy]:
            await asyncio.gather(*(session.settle() for session in busy))
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _settle(self, turn: TurnId) -> tuple[AnyEntry, ...]:
        return await self._owed(turn)

    def _tell(self, session: Session, added: Sequence[Recorded]) -> None:
        for listener in self._listeners:
            listener(session, added)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _make_folder(folder: Path) -> None:
    runtimes = folder.parent
    if not runtimes.is_dir():
        runtimes.mkdir(mode=0o700, exist_ok=True)
        sync_folder(runtimes.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    sync_folder(runtimes)
