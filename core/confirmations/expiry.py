"""Time that runs out, by the wall clock and over restarts (sessions.md 4.2)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Final

from core.clock import now_ms
from core.confirmations.record import Record
from core.ids import TaskHash

LOOKS_EVERY: Final = 30.0
"""Seconds after which the wall clock is looked at again, which may have been set."""


class Expiry:
    """Ends what nobody answered in time. ``expire`` makes that durable, however long it takes."""

    def __init__(self, records: Callable[[], Iterable[Record]], expire: Callable[[TaskHash], Awaitable[None]]) -> None:
        self._records = records
        self._expire = expire
        self._opened = asyncio.Event()
        self._expiring: dict[TaskHash, asyncio.Task[None]] = {}

    def look(self) -> None:
        """Something was opened, whose time may run out first."""
        self._opened.set()

    async def run(self) -> None:
        """Watch the clock until cancelled; what is being written then is still waited for."""
        try:
            while True:
                self._opened.clear()
                wait = min([LOOKS_EVERY, *((at - now_ms()) / 1000 for at in self._coming(now_ms()))])
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(wait, 0.001)):
                        await self._opened.wait()
        finally:
            if self._expiring:
                await asyncio.wait(self._expiring.values())

    def _coming(self, now: int) -> list[int]:
        """When the others run out; those that have are ended, each by itself: a folder that fails holds up no other."""
        coming: list[int] = []
        for record in self._records():
            if not record.is_open or record.task_hash in self._expiring:
                continue
            if record.expires_at > now:
                coming.append(record.expires_at)
                continue
            task = asyncio.create_task(self._end(record.task_hash), name=f"expire {record.task_hash}")
            self._expiring[record.task_hash] = task
        return coming

    async def _end(self, task: TaskHash) -> None:
        try:
            await self._expire(task)
        finally:
            del self._expiring[task]
