"""What a durable append is measured beside: the least that group commit can cost, and a disk that is slow alike."""

import asyncio
import os
import queue
import threading
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from core.log.disk import Disk

SLOW: Final = 0.005
"""Seconds of a sync on a plain disk."""

_Item = tuple[bytes, "asyncio.Future[None]"]


class SlowDisk(Disk):
    """Each sync, of whatever kind, takes as long as on a plain disk, and then as long as it takes."""

    def sync(self, descriptor: int) -> None:
        time.sleep(SLOW)
        super().sync(descriptor)

    def sync_folder(self, path: Path) -> None:
        time.sleep(SLOW)
        super().sync_folder(path)

    def sync_all(self) -> None:
        time.sleep(SLOW)
        super().sync_all()


class Bare:
    """Group commit of lines that are ready: one thread, one write and one sync of one file, futures woken together.

    No offsets, no checksums, no second file. As in ours, what the loop hands in during one turn stays together: else
    the first line would be synced alone, and the others after it.
    """

    def __init__(self, path: Path, disk: Disk) -> None:
        self._disk = disk
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._gathered: list[_Item] = []
        self._waiting: queue.SimpleQueue[list[_Item] | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def append(self, line: bytes) -> asyncio.Future[None]:
        done = self._loop.create_future()
        if not self._gathered:
            self._loop.call_soon(self._hand_over)
        self._gathered.append((line, done))
        return done

    def close(self) -> None:
        self._waiting.put(None)
        self._thread.join()
        os.close(self._descriptor)

    def _hand_over(self) -> None:
        gathered, self._gathered = self._gathered, []
        self._waiting.put(gathered)

    def _run(self) -> None:
        while (group := self._waiting.get()) is not None:
            os.write(self._descriptor, b"".join(line for line, _ in group))
            self._disk.sync(self._descriptor)
            self._loop.call_soon_threadsafe(_wake, group)


def _wake(group: Sequence[_Item]) -> None:
    for _, done in group:
        done.set_result(None)


@asynccontextmanager
async def bare_in(path: Path, disk: Disk) -> AsyncGenerator[Bare]:
    """Open one on a new file; close it in the end."""
    bare = Bare(path, disk)
    try:
        yield bare
    finally:
        bare.close()
