"""Taking out of a log the lines that nobody can read (log-format 12); every other byte stays as it is.

Offline: whoever calls this holds the data folder's lock, and the journal is put back. A log is never seen half
repaired: its backup is whole and durable before the new file takes the place of the old one, in one rename.
"""

import asyncio
import errno
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from core.archive.store import Store
from core.audit.parsers import refused
from core.log.disk import Disk
from core.log.lines import cuts
from core.log.scan import MOST_NAMED
from core.log.view import View
from core.sessions.reading import Reading, Recorded

NOWHERE: Final = 1
"""A position after no entry."""
_BLOCK: Final = 1024 * 1024


class Unreadable(NamedTuple):
    """A line that is no JSON: its number from 1, where it starts, and its bytes, line feed included.

    ``torn``: the last one, whose end was never written.
    """

    line: int
    offset: int
    length: int
    torn: bool


@dataclass(slots=True)
class Damage:
    """What is to go: ``lines`` of ``size`` bytes. The first thousand are ``named``, ``stretches`` has all of them."""

    lines: int = 0
    size: int = 0
    named: list[Unreadable] = field(default_factory=list[Unreadable])
    stretches: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """``[start, end)``; lines that touch are one stretch, so that a file of noise is not many."""

    def add(self, line: Unreadable) -> None:
        self.lines += 1
        self.size += line.length
        if len(self.named) < MOST_NAMED:
            self.named.append(line)
        start, end = line.offset, line.offset + line.length
        if self.stretches and self.stretches[-1][1] == start:
            start, _ = self.stretches.pop()
        self.stretches.append((start, end))

    def kept(self, size: int) -> Iterator[tuple[int, int]]:
        """What stays of a file of so many bytes."""
        start = 0
        for gone, end in self.stretches:
            yield start, gone
            start = end
        yield start, size


def damage(log: View) -> Damage:
    """The lines that both parsers refuse. Blank lines are not among them. Blocks; raises `OSError`."""
    found = Damage()
    for number, (start, raw, ended) in enumerate(cuts(log.read_at, 0, log.size), 1):
        if raw.strip() and refused(raw) is not None:
            found.add(Unreadable(number, start, len(raw) + ended, torn=not ended))
    return found


def remove(log: View, found: Damage, *, disk: Disk | None = None) -> Path:
    """Put the log without those lines in its own place. Returns where its backup lies: beside it.

    Killed or failing anywhere, it leaves the log as it was, or repaired. Blocks; raises `OSError`, also where somebody
    writes to the file meanwhile.
    """
    disk = disk or Disk()
    path = log.path.resolve()
    was = path.stat()
    backup = _free_name(path)
    for target, parts, mode in (
        (backup, [(0, log.size)], 0o600),
        (path, [*found.kept(log.size)], was.st_mode & 0o777),
    ):
        temporary = path.with_name(f"{_left_by(path)}{secrets.token_hex(4)}")
        try:
            _write(_pieces(log, parts), temporary, disk, mode=mode, owner=was)
            now = path.stat()
            if (now.st_ino, now.st_size, now.st_mtime_ns) != (was.st_ino, log.size, was.st_mtime_ns):
                raise OSError(errno.EBUSY, "somebody writes to it")
            temporary.rename(target)
        finally:
            temporary.unlink(missing_ok=True)
        disk.sync_folder(path.parent)
    return backup


async def loosen(receipts: Store, session: Reading) -> None:
    """Before lines are taken out: have each follower look for its place by the entry it names, as positions change.

    Where that very line is damaged, the one before it is named instead. Raises `StoreUnavailable`.
    """
    for follower, receipt in receipts.of(session.id).items():
        position = await session.resume_from(receipt)
        before = await asyncio.to_thread(_last_before, session, position)
        entry = receipt.entry if before is None else before.entry.id
        await receipts.put_durably(follower, session.id, receipt._replace(entry=entry, position=NOWHERE))


def _last_before(session: Reading, position: int) -> Recorded | None:
    return next(session.read_back(position), None)


def sweep(path: Path) -> None:
    """Take away what a killed repair of that log left. Blocks; raises `OSError`."""
    for left in path.parent.glob(f"{_left_by(path)}*"):
        left.unlink()


def _left_by(path: Path) -> str:
    return f".{path.name}.repair-"


def _free_name(path: Path) -> Path:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    names = (path.with_name(f"{path.name}.backup-{stamp}{again}") for again in ("", *(f"-{n}" for n in range(2, 1000))))
    return next(name for name in names if not os.path.lexists(name))


def _pieces(log: View, parts: Iterable[tuple[int, int]]) -> Iterator[bytes]:
    for start, end in parts:
        position = start
        while position < end and (content := log.read_at(position, min(_BLOCK, end - position))):
            position += len(content)
            yield content


def _write(content: Iterable[bytes], target: Path, disk: Disk, *, mode: int, owner: os.stat_result) -> None:
    descriptor = disk.open(target)
    try:
        os.fchmod(descriptor, mode)
        with suppress(PermissionError):  # where root repairs, the account that runs the gateway goes on owning it
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        end = 0
        for piece in content:
            disk.write_at(descriptor, end, piece)
            end += len(piece)
        disk.sync(descriptor)
    finally:
        disk.close(descriptor)
