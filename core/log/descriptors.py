"""The session files that the committer has open: few, the least lately used is closed first."""

import errno
import resource
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from core.log.disk import OF_THE_FILE, Disk

MOST_OPEN: Final = 2048
"""Where the process may have as many files. Opening and closing one costs more than writing to it."""

logger = structlog.get_logger()


@dataclass(slots=True)
class OpenFile:
    """A session's file: where it ends, as far as is acknowledged, and whether its last line does (LF guard)."""

    path: Path
    descriptor: int
    end: int
    ended: bool


class Descriptors:
    """Used by the committer thread alone. All calls block and raise `OSError`."""

    def __init__(self, runtimes: Path, disk: Disk, *, most: int | None = None) -> None:
        self._runtimes = runtimes
        self._disk = disk
        self._most = _most_open() if most is None else most
        self._open: OrderedDict[str, OpenFile] = OrderedDict()

    def of(self, session: str) -> OpenFile:
        """The session's file, made where it is missing. It stays open until `close_some` or `forget_all`."""
        file = self._open.get(session)
        if file is not None:
            self._open.move_to_end(session)
            return file
        path = self._path(session)
        self._disk.make_folder(path.parent)
        descriptor = self._disk.open(path)
        try:
            end = self._disk.size(descriptor)
            ended = end == 0 or self._disk.read_at(descriptor, end - 1, 1) == b"\n"
        except OSError:
            self._disk.close(descriptor)
            raise
        if not ended:
            logger.warning("log_torn_tail", session=session, cure="the torn line is closed off; nothing else is lost")
        file = self._open[session] = OpenFile(path, descriptor, end, ended)
        return file

    def forget(self, session: str) -> None:
        """Close one session's file, as it is going to be removed."""
        if (file := self._open.pop(session, None)) is not None:
            self._disk.close(file.descriptor)

    def close_some(self) -> None:
        """Close the least lately used of too many. An error may tell of a write that never got to the device."""
        while len(self._open) > self._most:
            _, file = self._open.popitem(last=False)
            self._disk.close(file.descriptor)

    def forget_all(self) -> dict[str, int]:
        """Close everything. Returns where the files ended as far as was acknowledged. Raises nothing."""
        ends = {session: file.end for session, file in self._open.items()}
        while self._open:
            _, file = self._open.popitem()
            with suppress(OSError):
                self._disk.close(file.descriptor)
        return ends

    def cut_back(self, ends: dict[str, int]) -> None:
        """Cut off what stands behind the acknowledged end of these files. One that is gone was removed meanwhile.

        One that cannot be opened any more keeps what it has; the recovery keeps its lines.
        """
        for session, end in ends.items():
            try:
                descriptor = self._disk.open(self._path(session), make=False)
            except OSError as error:
                if error.errno in OF_THE_FILE | {errno.ENOENT}:
                    continue
                raise
            try:
                if self._disk.size(descriptor) > end:
                    self._disk.truncate(descriptor, end)
                    self._disk.sync(descriptor)
            finally:
                self._disk.close(descriptor)

    def _path(self, session: str) -> Path:
        return self._runtimes / session / "events.jsonl"


def _most_open() -> int:
    """How many files may stay open: half of what the process may have, which is raised as far as the system lets us."""
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed < 2 * MOST_OPEN:
        wanted = 2 * MOST_OPEN if most == resource.RLIM_INFINITY else min(2 * MOST_OPEN, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
        allowed = wanted
    return min(MOST_OPEN, allowed // 2)
