"""Deliveries that the runtime would not take are taken up again, when an operator says so (contract section 9)."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import structlog

from core.entries import AnyEntry, Attachment, MessageCreated, fact_of
from core.errors import RuntimeRefused, RuntimeUnavailable, UnknownEntry
from core.ids import EntryId, SessionId
from core.runtime.port import Runtime
from core.sessions.directory import Sessions
from core.sessions.session import Session
from core.sessions.state import MessageKey, key_of

logger = structlog.get_logger()


class SetAside(Protocol):
    """What was parked, by whoever keeps it. Raises `StoreUnavailable`."""

    async def set_aside(self, session: SessionId | None) -> Sequence[tuple[SessionId, EntryId]]:
        """Session and entry of each, the oldest first."""
        ...

    async def set_aside_again(self, session: SessionId, entry: EntryId, reason: str) -> None: ...

    async def settle(self, session: SessionId, entry: EntryId) -> None:
        """It is parked no longer."""
        ...


class Came(NamedTuple):
    """What taking up came to, in entries; ``problem`` is why it ended early."""

    taken: int = 0
    refused: int = 0
    left: int = 0
    problem: str = ""


class Redeliver:
    """One round at a time. What has come behind an entry was delivered long ago, so each goes by itself."""

    def __init__(self, runtime: Runtime, sessions: Sessions, kept: SetAside) -> None:
        self._runtime = runtime
        self._sessions = sessions
        self._kept = kept
        self._round: asyncio.Task[Came] | None = None

    def begin(self, session: SessionId | None) -> "asyncio.Task[Came]":
        """Take up what is parked, in one session or in all; the round that is under way, if one is."""
        if self._round is None or self._round.done():
            self._round = asyncio.create_task(self._go_round(session), name="deliver retry")
        return self._round

    async def stop(self) -> None:
        """End where it stands: what was not taken is parked still."""
        if self._round is not None:
            self._round.cancel()
            await asyncio.gather(self._round, return_exceptions=True)

    async def _go_round(self, wanted: SessionId | None) -> Came:
        parked = await self._kept.set_aside(wanted)
        taken = refused = 0
        for number, (session, entry) in enumerate(parked):
            try:
                if await self._again(session, entry):
                    taken += 1
                await self._kept.settle(session, entry)
            except RuntimeUnavailable as error:
                return Came(taken, refused, len(parked) - number, str(error))
            except RuntimeRefused as error:
                refused += 1
                await self._kept.set_aside_again(session, entry, str(error))
        logger.info("deliveries_retried", taken=taken, refused=refused)
        return Came(taken, refused)

    async def _again(self, session: SessionId, entry: EntryId) -> bool:
        """Deliver one entry; False where there is nothing to deliver any more."""
        if not self._sessions.exists(session):
            return False
        place = self._sessions.of(session)
        try:
            recorded = await place.find(entry)
        except UnknownEntry:  # a repair took it out
            return False
        if await _is_retracted(place, recorded.entry):
            return False  # the runtime has heard that; it must not hear of the message behind it
        await self._runtime.deliver(session, [recorded.raw], key=entry)
        return True


async def _is_retracted(session: Session, entry: AnyEntry) -> bool:
    """Whether a message, or a file's message, was taken back behind that entry."""
    match fact_of(entry):
        case MessageCreated() as fact:
            key = key_of(fact)
        case Attachment(platform=str(platform), self_id=str(own), channel_id=str(channel), message_id=str(message)):
            key = MessageKey(platform, own, channel, message)
        case _:
            return False
    standing = await session.standing(key)
    return standing is not None and standing.deleted
