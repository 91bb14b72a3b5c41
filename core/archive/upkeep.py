"""What is kept for a time goes when that is over: at start, and daily at 04:00 local time (sessions.md 2.4, 2.5)."""

import asyncio
import sqlite3
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import structlog

from core.archive.file_history import FileHistory
from core.archive.store import Store
from core.archive.usage import prune_usage
from core.clock import now_ms
from core.errors import StoreUnavailable

HOUR: Final = 4

logger = structlog.get_logger()


def _now() -> datetime:
    return datetime.now().astimezone()


class Upkeep:
    """One task that sleeps but for that moment."""

    def __init__(self, store: Store, files: FileHistory, now: Callable[[], datetime] = _now) -> None:
        self._store = store
        self._files = files
        self._now = now
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="upkeep")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def clean(self) -> None:
        """Let go of what has been kept long enough. Raises `StoreUnavailable` and `OSError`."""

        def prune(database: sqlite3.Connection) -> None:
            with database:
                prune_usage(database, now_ms() // 1000)

        await self._store.run(prune)
        await self._files.clean()

    async def _run(self) -> None:
        while True:
            try:
                await self.clean()
            except (StoreUnavailable, OSError) as error:
                logger.warning("upkeep_waits", reason=str(error), again="tomorrow")
            await asyncio.sleep(until_next(self._now()))


def until_next(now: datetime) -> float:
    """Seconds until the next 04:00."""
    due = now.replace(hour=HOUR, minute=0, second=0, microsecond=0)
    return ((due if due > now else due + timedelta(days=1)) - now).total_seconds()
