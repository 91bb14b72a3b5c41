"""Deliveries that the runtime would not take are taken up again, when an operator says so (contract section 9)."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import structlog

from core.entries import AnyEntry, Attachment, MessageCreated, fact_of
from core.errors import RuntimeRefused, RuntimeUnavailable, StoreUnavailable, UnknownEntry
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
    """What taking up came to, in entries; ``problem`` is why it ended early. What nobody needs any more is taken."""

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
        parked: Sequence[tuple[SessionId, EntryId]] = ()
        taken = refused = 0
        try:
            parked = await self._kept.set_aside(wanted)
            for session, entry in parked:
                try:
                    await self._again(session, entry)
                except RuntimeRefused as error:
                    await self._kept.set_aside_again(session, entry, str(error))
                    refused += 1
                else:
                    await self._kept.settle(session, entry)
                    taken += 1
        except (RuntimeUnavailable, StoreUnavailable, OSError) as error:
            problem = error.strerror or "the disk" if isinstance(error, OSError) else str(error)
            return Came(taken, refused, len(parked) - taken - refused, problem)
        finally:
            logger.info("deliveries_retried", taken=taken, refused=refused)
        return Came(taken, refused)

    async def _again(self, session: SessionId, entry: EntryId) -> None:
        """Deliver one entry, if there is something to deliver still."""
        if not self._sessions.exists(session):
            return
        place = self._sessions.of(session)
        try:
            recorded = await place.find(entry)
        except UnknownEntry:  # a repair took it out
            return
        # That it was taken back the runtime has heard; it must not hear of the message behind that.
        if not await _is_retracted(place, recorded.entry):
            await self._runtime.deliver(session, [recorded.raw], key=entry)


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
