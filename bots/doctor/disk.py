"""The disk of the data folder: room, and how long a durable write takes."""

import os
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from bots.doctor.house import standing
from bots.doctor.verdict import Verdict, fail, ok, warn
from core.files import open_beside

LITTLE_ROOM: Final = 1024**3
NO_ROOM: Final = 64 * 1024**2
"""Bytes: a busy house with pictures fills the first in days, the second in an hour."""
FEW_FILES: Final = 20_000
NO_FILES: Final = 1_000
"""Files that can still be made; each picture takes two."""
SLOW: Final = 0.05
"""Seconds for one durable write; a plain disk takes 2 to 5 ms."""
_TRIES: Final = 5
_BLOCK: Final = bytes(4096)


class Room(NamedTuple):
    """What a disk still takes: bytes, and files (None where it has no such limit)."""

    free: int
    files: int | None


def room_of(folder: Path) -> Room:
    """Of the disk that a folder stands on. Raises `OSError`."""
    found = os.statvfs(folder)
    return Room(found.f_bavail * found.f_frsize, found.f_favail if found.f_files else None)


def look_at_room(folder: Path, measure: Callable[[Path], Room] = room_of) -> Verdict:
    """Whether the disk is nearly full. ``measure`` says what it still takes."""
    try:
        free, files = measure(standing(folder))
    except OSError as error:
        return fail(f"the disk of {folder} cannot be looked at ({error.strerror})", "check the disk")
    shown = _shown(free)
    cure = "free some space, or set ISHIKI_DATA_DIR to another disk"
    if free < NO_ROOM:
        return fail(f"the disk of {folder} is full: {shown} left", cure)
    if files is not None and files < NO_FILES:
        return fail(f"the disk of {folder} takes only {files} more files", "remove small files: it is out of inodes")
    if free < LITTLE_ROOM:
        return warn(f"the disk of {folder} is nearly full: {shown} left", cure)
    if files is not None and files < FEW_FILES:
        return warn(f"the disk of {folder} takes only {files} more files", "remove small files: inodes run out")
    return ok(f"{shown} left on the disk of {folder}")


def look_at_writing(folder: Path, clock: Callable[[], float] = time.perf_counter) -> Verdict:
    """How long the disk takes to make a small write durable. The file has no name, and is gone when closed."""
    place = standing(folder)
    taken: list[float] = []
    try:
        descriptor = _nameless(place)
        try:
            for number in range(_TRIES):
                began = clock()
                os.pwrite(descriptor, _BLOCK, number * len(_BLOCK))
                os.fdatasync(descriptor)
                taken.append(clock() - began)
        finally:
            os.close(descriptor)
    except OSError as error:
        return fail(f"{place} takes no write ({error.strerror})", "check the disk, its owner and how it is mounted")
    usual = statistics.median(taken)
    shown = f"a durable write takes {usual * 1000:.2g} ms"
    if usual > SLOW:
        return warn(f"{shown}, which every message waits for", "use a faster disk, or see what else keeps it busy")
    return ok(shown)


def _nameless(place: Path) -> int:
    with suppress(OSError):  # not every file system knows files without a name
        return os.open(place, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    descriptor, path = open_beside(place / "doctor")
    path.unlink()
    return descriptor


def _shown(count: int) -> str:
    size, unit = float(count), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.3g} {unit}" if size < 1000 else f"{size:.0f} {unit}"
