"""Small files, in place whole or not at all. Everything here blocks and raises `OSError`."""

import fcntl
import os
from itertools import count
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """By temporary file, flush and rename, 0600. Durable once its folder is synced."""
    descriptor, temporary = open_beside(path)
    try:
        write_all(descriptor, content)
        os.fsync(descriptor)
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def open_beside(path: Path) -> tuple[int, Path]:
    """An empty file in a path's folder, 0600, of a hidden name, to be renamed or removed before it is closed.

    Who writes there at the same time has another one. What a crash left is used again, so that it does not pile up.
    """
    for number in count():
        beside = path.with_name(f".new.{number}")
        descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(beside, descriptor):
                os.ftruncate(descriptor, 0)
                return descriptor, beside
        except BlockingIOError:
            pass  # somebody writes to it
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    raise AssertionError("there are always more numbers")


def write_all(descriptor: int, content: bytes) -> None:
    """A short write is continued, which then tells why it was short."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def make_folder(path: Path) -> None:
    """Make a folder and its parents where they are missing, 0700."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folders(path: Path, top: Path) -> None:
    """Make the names in a folder durable, and its own name, and those of all above it up to ``top``.

    Whoever made them may not have synced them, as when it was ended in between. For one that has not changed this
    costs next to nothing.
    """
    sync_folder(path)
    while path not in {top, path.parent}:
        path = path.parent
        sync_folder(path)


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether a file was not put in its place, or removed, between its opening and its locking."""
    try:
        there, opened = path.stat(), os.fstat(descriptor)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (opened.st_dev, opened.st_ino)
