"""Disks that fail: each behaves as the real one until it is told otherwise."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

from core.log.disk import Disk

Fault = Callable[[int, str], int | None]
"""``(number of the call from 1, its name)`` → the errno it fails with, or None."""


class FailingDisk(Disk):
    """Counts its calls; a write that fails has written half by then, as on a full disk.

    The device is not waited for: that a sync is asked for is what matters here.
    """

    def __init__(self, fault: Fault = lambda _number, _name: None) -> None:
        self.fault = fault
        self.calls = 0

    def _call(self, name: str) -> None:
        self.calls += 1
        code = self.fault(self.calls, name)
        if code is not None:
            raise OSError(code, os.strerror(code))

    def open(self, path: Path, *, make: bool = True) -> int:
        self._call("open")
        return super().open(path, make=make)

    def close(self, descriptor: int) -> None:
        super().close(descriptor)
        self._call("close")

    def size(self, descriptor: int) -> int:
        self._call("size")
        return super().size(descriptor)

    def read_at(self, descriptor: int, offset: int, count: int) -> bytes:
        self._call("read_at")
        return super().read_at(descriptor, offset, count)

    def write_at(self, descriptor: int, offset: int, content: bytes) -> None:
        try:
            self._call("write_at")
        except OSError:
            super().write_at(descriptor, offset, content[: len(content) // 2])
            raise
        super().write_at(descriptor, offset, content)

    def sync(self, descriptor: int) -> None:
        self._call("sync")

    def truncate(self, descriptor: int, size: int) -> None:
        self._call("truncate")
        super().truncate(descriptor, size)

    def make_folder(self, path: Path) -> None:
        self._call("make_folder")
        super().make_folder(path)

    def sync_folder(self, path: Path) -> None:
        self._call("sync_folder")

    def sync_all(self) -> None:
        self._call("sync_all")

    def put_whole(self, path: Path, content: bytes) -> None:
        self._call("put_whole")
        super().put_whole(path, content)

    def unlink(self, path: Path) -> None:
        self._call("unlink")
        super().unlink(path)

    def write_new(self, path: Path, content: bytes) -> None:
        self._call("write_new")
        super().write_new(path, content)


class PowerlessDisk(FailingDisk):
    """Keeps what each sync made durable, so that a power cut can be played: all that was not synced is gone."""

    def __init__(self, fault: Fault = lambda _number, _name: None) -> None:
        super().__init__(fault)
        self._paths: dict[int, Path] = {}
        self._durable: dict[Path, bytes] = {}

    def open(self, path: Path, *, make: bool = True) -> int:
        descriptor = super().open(path, make=make)
        self._paths[descriptor] = path
        return descriptor

    def sync(self, descriptor: int) -> None:
        super().sync(descriptor)
        path = self._paths[descriptor]
        self._durable[path] = path.read_bytes()

    def cut_power(self, folder: Path, into: Path) -> None:
        """What a machine finds in ``folder`` after the power came back, put into ``into``."""
        for path, content in list(self._durable.items()):  # the committer may be at it
            found = into / path.relative_to(folder)
            found.parent.mkdir(parents=True, exist_ok=True)
            found.write_bytes(content)


def fails_at(*numbers: int, code: int = errno.ENOSPC) -> Fault:
    return lambda number, _name: code if number in numbers else None


def dies_at(number: int) -> Fault:
    return lambda now, _name: errno.EIO if now >= number else None
