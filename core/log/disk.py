"""The few calls to the operating system that writing a log is made of.

They stand behind a small class so that a trial can fail, cut short or count each of them (a full disk, a torn write,
a sync that reports an error) without touching the code that must survive it.
"""

import errno
import os
from pathlib import Path
from typing import Final

from core.errors import DiskFull, LogHeld, LogUnavailable
from core.files import make_folder, sync_folder, write_whole
from core.log.lines import is_whole

TAKES_NOTHING: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""The errors of a disk that is full or fails, not of a folder that is not ours."""
OF_THE_FILE: Final = frozenset(
    {
        *(errno.EACCES, errno.EPERM, errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG),
        *(errno.ENXIO, errno.ENODEV, errno.ESPIPE, errno.EINVAL, errno.EBUSY, errno.ETXTBSY),
    }
)
"""Errors that come from what stands in a file's place, not from the disk."""
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
LEAST_ROOM: Final = 4 * 1024 * 1024
"""Bytes that must be free for the journal to go on comfortably."""


def trouble_with(folder: Path) -> str | None:
    """Why the next write to a folder would fail, with the cure; None where nothing speaks against it. Blocks."""
    try:
        there = os.statvfs(folder)
    except OSError as error:
        return f"the data folder cannot be looked at ({error.strerror}); check the disk"
    if there.f_flag & os.ST_RDONLY or not os.access(folder, os.W_OK | os.X_OK):
        return "the data folder cannot be written; check its owner, its rights and how the disk is mounted"
    if there.f_bavail * there.f_frsize < LEAST_ROOM:
        return "the disk of the data folder is full; free some space"
    return None


def unavailable(session: str, error: Exception) -> LogUnavailable:
    """What the caller of an append is told."""
    reason = getattr(error, "strerror", None) or str(error)
    if isinstance(error, OSError) and error.errno in OF_THE_FILE:
        told = LogHeld(f"the log of {session} cannot be used ({reason}); mend what stands there and start again")
    else:
        told = LogUnavailable(f"the log of {session} could not be written: {reason}")
    told.__cause__ = error
    return told


def disk_full(place: Path, error: Exception) -> DiskFull:
    """What a start is told whose disk takes nothing."""
    reason = getattr(error, "strerror", None) or str(error)
    return DiskFull(f"the disk of {place} takes nothing ({reason}); free some space and start again")


class Disk:
    """Writes that finish or raise `OSError`. All calls block."""

    def open(self, path: Path, *, make: bool = True) -> int:
        """Open for reading and writing; made if missing, 0600, where ``make`` says so."""
        return os.open(path, os.O_RDWR | (os.O_CREAT if make else 0) | os.O_CLOEXEC, 0o600)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def size(self, descriptor: int) -> int:
        return os.fstat(descriptor).st_size

    def read_at(self, descriptor: int, offset: int, count: int) -> bytes:
        return os.pread(descriptor, count, offset)

    def write_at(self, descriptor: int, offset: int, content: bytes) -> None:
        """Write all of ``content``; a short write is continued, which then tells why it was short."""
        rest = memoryview(content)
        while rest:
            written = os.pwrite(descriptor, rest, offset)
            rest, offset = rest[written:], offset + written

    def sync(self, descriptor: int) -> None:
        os.fdatasync(descriptor)

    def truncate(self, descriptor: int, size: int) -> None:
        os.ftruncate(descriptor, size)

    def make_folder(self, path: Path) -> None:
        """Make a folder and its parents, 0700. Their names are not durable yet."""
        make_folder(path)

    def sync_folder(self, path: Path) -> None:
        """Make the names in a folder durable."""
        sync_folder(path)

    def sync_all(self) -> None:
        """Write out what the system holds back, of all files."""
        os.sync()

    def put_whole(self, path: Path, content: bytes) -> None:
        """Write a small file, or replace it. Durable once its folder is synced."""
        write_whole(path, content)

    def unlink(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def write_new(self, path: Path, content: bytes) -> None:
        """Put a small file in place; one that is there and whole is left alone.

        Not synced, and torn by a crash: the caller holds the content elsewhere until it was synced. Each call lets go
        of the interpreter, which a busy event loop is slow to give back, so there are as few as can be.
        """
        try:
            descriptor = os.open(path, _NEW, 0o600)
        except FileNotFoundError:
            self.make_folder(path.parent)
            descriptor = os.open(path, _NEW, 0o600)
        except FileExistsError:
            if not is_whole(path.read_bytes()):
                self.put_whole(path, content)
            return
        try:
            self.write_at(descriptor, 0, content)
        finally:
            os.close(descriptor)
