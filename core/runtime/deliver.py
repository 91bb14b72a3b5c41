"""Follower: what happened goes to the runtime, ``trigger`` false, per session in log order, never skipping one.

Per session one call at a time, over all sessions at most eight (contract section 9, "Runtime wire"). The receipt is
left when the runtime took a batch; until then the same batch is handed over again.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

import structlog

from core.entries import AnyEntry, Attachment, UserMessage, fact_of
from core.errors import RuntimeRefused, RuntimeUnavailable
from core.health import Health, Troubles
from core.ids import SessionId
from core.runtime.port import Runtime
from core.sessions.reading import Recorded
from core.sessions.receipts import Receipt, Receipts
from core.sessions.session import Session

MOST_ENTRIES: Final = 100
MOST_BYTES: Final = 1024 * 1024
OPEN_CALLS: Final = 8
LONGEST_PAUSE: Final = 60.0

logger = structlog.get_logger()


class Parking(Protocol):
    """Where entries are noted that the runtime will never take, so that an operator can take them up again."""

    async def put_outbox(self, key: str, session: SessionId, state: str, record: str) -> None: ...


def is_delivered(entry: AnyEntry) -> bool:
    """Platform facts and what people say in terminal and API sessions; no other line."""
    fact = fact_of(entry)
    if isinstance(fact, Attachment):
        return fact.source == "platform"
    return fact is not None or isinstance(entry.data, UserMessage)


class Deliver:
    """Hands the log over to a runtime."""

    name = "deliver"

    def __init__(self, runtime: Runtime, receipts: Receipts, parking: Parking, health: Health) -> None:
        self._runtime = runtime
        self._receipts = receipts
        self._parking = parking
        self._troubles = Troubles(health)
        self._calls = asyncio.Semaphore(OPEN_CALLS)
        self._moved: dict[SessionId, asyncio.Event] = {}

    def cares_for(self, entry: AnyEntry) -> bool:
        return is_delivered(entry)

    async def until(self, session: Session, position: int) -> None:
        """Return when everything up to a position has been taken or parked."""
        while True:
            receipt = self._receipts.get(self.name, session.id)
            if receipt is not None and receipt.position >= position:
                return
            await self._moved.setdefault(session.id, asyncio.Event()).wait()

    async def catch_up(self, session: Session) -> None:
        """Hand over everything from the receipt to the end."""
        position = await session.resume_from(self._receipts.get(self.name, session.id))
        while position < session.size:
            chunk, position = await session.chunk_from(position)
            for batch in batches(chunk):
                await self._hand_over(session, batch)
            if chunk:
                self._leave(session, Receipt(chunk[-1].entry.id, position))

    async def _hand_over(self, session: Session, batch: Sequence[Recorded]) -> None:
        try:
            await self._insist(session, batch)
        except RuntimeRefused as error:
            if len(batch) > 1:
                # Too large: in halves. Else one of them is at fault, and the others must not be set aside with it.
                size = len(batch) // 2 if error.too_large else 1
                for start in range(0, len(batch), size):
                    await self._hand_over(session, batch[start : start + size])
                return
            self._troubles.end(session.id)
            entry = batch[0].entry.id
            logger.warning("delivery_parked", session=session.id, entry=entry, reason=str(error))
            await self._parking.put_outbox(f"deliver:{session.id}:{entry}", session.id, "parked", str(error))
        self._leave(session, Receipt(batch[-1].entry.id, batch[-1].end))

    async def _insist(self, session: Session, batch: Sequence[Recorded]) -> None:
        pause = 0.5
        while True:
            try:
                async with self._calls:
                    lines = [recorded.raw for recorded in batch]
                    await self._runtime.deliver(session.id, lines, key=batch[-1].entry.id)
            except RuntimeUnavailable as error:
                self._troubles.begin(session.id, str(error))
                await asyncio.sleep(error.retry_after if error.retry_after is not None else pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            else:
                self._troubles.end(session.id)
                return

    def _leave(self, session: Session, receipt: Receipt) -> None:
        self._receipts.put(self.name, session.id, receipt)
        moved = self._moved.pop(session.id, None)
        if moved is not None:
            moved.set()


def batches(chunk: Sequence[Recorded]) -> list[list[Recorded]]:
    """What of a chunk is delivered, cut to calls of at most 100 entries or 1 MiB."""
    found: list[list[Recorded]] = []
    size = 0
    for recorded in chunk:
        if not is_delivered(recorded.entry):
            continue
        size += len(recorded.raw)
        if not found or len(found[-1]) >= MOST_ENTRIES or size > MOST_BYTES:
            found.append([])
            size = len(recorded.raw)
        found[-1].append(recorded)
    return found
