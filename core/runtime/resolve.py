"""What was decided goes to the runtime, at least once until it is taken; then it is filed (contract section 6)."""

import asyncio
from typing import Final

import structlog

from core.confirmations import life
from core.confirmations.desk import Desk
from core.confirmations.record import Record
from core.errors import RuntimeUnavailable, StoreUnavailable
from core.health import Troubles
from core.ids import TaskHash
from core.runtime.port import Runtime

LONGEST_PAUSE: Final = 60.0
OPEN_CALLS: Final = 8

logger = structlog.get_logger()


class Resolve:
    """One task for each decision that is not filed yet. ``runtime`` None: there is nobody to tell."""

    def __init__(self, desk: Desk, runtime: Runtime | None, troubles: Troubles | None = None) -> None:
        self._desk = desk
        self._runtime = runtime
        self._troubles = troubles
        self._calls = asyncio.Semaphore(OPEN_CALLS)
        self._tasks: dict[TaskHash, asyncio.Task[None]] = {}
        self._stopped = False

    def start(self) -> None:
        """Take up what an earlier run left, and follow the desk from now on."""
        self._desk.listen(self._changed)
        for record in self._desk.records():
            self._changed(record)

    async def stop(self) -> None:
        """End where it stands; the files say where that is."""
        self._stopped = True
        running = list(self._tasks.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _changed(self, record: Record) -> None:
        task = record.task_hash
        is_due = not record.is_open and (record.resolved_at is None or record.closed_at is not None)
        if is_due and not self._stopped and task not in self._tasks:
            self._tasks[task] = asyncio.create_task(self._settle(task), name=f"resolve {task}")

    async def _settle(self, task: TaskHash) -> None:
        """Tell, and file what is told and closed; else whoever closes it comes by here again."""
        try:
            record = self._desk.get(task)
            if record is not None and record.resolved_at is None:
                await self._tell(record)
                await self._desk.insist(task, life.resolved)
            record = self._desk.get(task)
            if record is not None and record.closed_at is not None:
                await self._file(task)
        finally:
            del self._tasks[task]
        # It may have been closed in the moment before this task ended.
        left = self._desk.get(task)
        if left is not None and left.closed_at is not None:
            self._changed(left)

    async def _tell(self, record: Record) -> None:
        if self._runtime is None:
            return
        pause, key = 0.5, f"resolve {record.task_hash}"
        while True:
            try:
                async with self._calls:
                    await self._runtime.resolve(record)
            except RuntimeUnavailable as error:
                if self._troubles is not None:
                    self._troubles.begin(key, str(error))
                seconds = error.retry_after if error.retry_after is not None else pause
                await asyncio.sleep(seconds)
                pause = min(pause * 2, LONGEST_PAUSE)
            except Exception as error:
                logger.exception("resolve_failed", task=record.task_hash, exc_info=error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            else:
                if self._troubles is not None:
                    self._troubles.end(key)
                return

    async def _file(self, task: TaskHash) -> None:
        pause = 0.5
        while True:
            try:
                await self._desk.file(task)
            except (OSError, StoreUnavailable) as error:
                logger.warning("decision_not_filed", task=task, reason=type(error).__name__, again_in=pause)
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            else:
                return
