"""One session's log on disk: appends go through the journal, reads go to the file."""

import asyncio
import errno
import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from core.log import lines as cut
from core.log.disk import OF_THE_FILE
from core.log.journal import Batch, Journal
from core.log.lines import Block, Line
from core.log.port import NO_SIDECARS, Appending
from core.log.records import Sidecars


class FileLog:
    """``runtimes/<session>/events.jsonl``. A file that is not there is an empty log; the first append makes it."""

    def __init__(self, runtimes: Path, session: str, journal: Journal) -> None:
        self._path = runtimes / session / "events.jsonl"
        self._session = session
        self._journal = journal
        try:
            self._size = self._path.stat().st_size
        except OSError as error:
            if error.errno not in OF_THE_FILE | {errno.ENOENT}:
                raise
            self._size = 0  # what stands there instead is told by whatever is done with it

    @property
    def size(self) -> int:
        return self._size

    def append(self, lines: Sequence[bytes], sidecars: Sidecars = NO_SIDECARS) -> Appending:
        appending = Appending()
        if lines:
            loop = asyncio.get_running_loop()
            self._journal.put(Batch(self._session, lines, sidecars, loop, appending, self._grow))
        else:
            appending.succeed([])
        return appending

    def read(self, start: int = 0) -> Iterator[Block]:
        with self._reading() as read_at:
            yield from cut.forward(read_at, start, self._size)

    def read_back(self, end: int | None = None) -> Iterator[Line]:
        with self._reading() as read_at:
            yield from cut.backward(read_at, self._size if end is None else end)

    def search_back(self, needle: bytes) -> Iterator[Line]:
        with self._reading() as read_at:
            yield from cut.containing(read_at, self._size, needle)

    def number_at(self, position: int) -> int:
        with self._reading() as read_at:
            return cut.number_at(read_at, position)

    def _grow(self, end: int) -> None:
        self._size = max(self._size, end)

    @contextmanager
    def _reading(self) -> Generator[cut.ReadAt]:
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            yield lambda _offset, _count: b""
            return
        try:
            yield lambda offset, count: os.pread(descriptor, count, offset)
        finally:
            os.close(descriptor)
