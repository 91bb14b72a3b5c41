"""A session's file as it will be once the journal is put back: for readers that do not own the data folder.

After a crash the journal may hold lines that the session file lacks. Whoever reads without the lock lays them over the
file instead of waiting for the next start (contract section 9, "Log"). Nothing is ever written here.
"""

import errno
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from core.log.records import Record, Sidecars, unpack


def read_journal(folder: Path) -> dict[str, list[Record]]:
    """What the journal of a data folder holds, by session, oldest first. Blocks; raises `OSError`."""
    records: dict[str, list[Record]] = {}
    for name in ("journal.kept", "journal"):
        with suppress(FileNotFoundError):
            for record in unpack((folder / ".store" / name).read_bytes()).records:
                records.setdefault(record.session, []).append(record)
    return records


class View:
    """One log file and the journal's records of its session, read as one. Blocks; raises `OSError`.

    ``size`` is taken at the opening; a file that is not there is empty. A context manager.
    """

    def __init__(self, path: Path, records: Sequence[Record] = ()) -> None:
        self.path = path
        self.sidecars: Sidecars = {name: content for record in records for name, content in record.sidecars.items()}
        try:
            self._descriptor: int | None = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            size = _size_of_file(self._descriptor)
        except FileNotFoundError:
            self._descriptor, size = None, 0
        self._laid_over = _joined(records, size)
        self.size = max([size, *(start + len(content) for start, content in self._laid_over)])

    def read_at(self, offset: int, count: int) -> bytes:
        """At most ``count`` bytes, as `core.log.lines` wants them."""
        end = min(offset + count, self.size)
        found = b"" if self._descriptor is None else os.pread(self._descriptor, max(end - offset, 0), offset)
        if not self._laid_over or offset >= end:
            return found
        whole = bytearray(found.ljust(end - offset, b"\0"))
        for start, content in self._laid_over:
            if start >= end or start + len(content) <= offset:
                continue
            first, last = max(start, offset), min(start + len(content), end)
            whole[first - offset : last - offset] = content[first - start : last - start]
        return bytes(whole)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _size_of_file(descriptor: int) -> int:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file")
    return found.st_size


def _joined(records: Sequence[Record], size: int) -> list[tuple[int, bytes]]:
    """Stretches to lay over a file of a size, neighbours as one: a busy session has thousands of records.

    What the file lacks before one of them is a line of its own, as `Recovery` makes it.
    """
    stretches: list[tuple[int, list[bytes], int]] = []
    reach = size
    for record in records:
        end = record.offset + len(record.content)
        if stretches and stretches[-1][2] == record.offset:
            start, pieces, _ = stretches[-1]
            pieces.append(record.content)
            stretches[-1] = (start, pieces, end)
        elif record.offset > reach:
            stretches.append((record.offset - 1, [b"\n", record.content], end))
        else:
            stretches.append((record.offset, [record.content], end))
        reach = max(reach, end)
    return [(start, b"".join(pieces)) for start, pieces, _ in stretches]
