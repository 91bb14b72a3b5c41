"""How a turn ends in the log: once, and whatever the disk does meanwhile (log-format 4)."""

import asyncio
from collections.abc import Callable

import structlog

from core.clock import now_ms
from core.entries import AnyEntry, TurnEvent, turn_event
from core.errors import LogUnavailable
from core.sessions.facts import Written
from core.sessions.session import Session
from core.sessions.state import SessionState

Lines = Callable[[SessionState], tuple[AnyEntry, ...]]

logger = structlog.get_logger()


async def end(session: Session, event: TurnEvent, owed: tuple[AnyEntry, ...] = ()) -> None:
    """End a turn, behind the lines that it still owes."""
    await write(session, ending(event, owed))


def ending(event: TurnEvent, owed: tuple[AnyEntry, ...]) -> Lines:
    """The end of a turn, unless that was under way already when something else went wrong."""
    last = (*owed, turn_event(event, now=now_ms()))
    return lambda state: last if state.open_turn == event.turn_id else ()


async def write(session: Session, entries: tuple[AnyEntry, ...] | Lines) -> None:
    """What a turn came to is written whatever the disk does meanwhile: a turn that began must end."""
    pause = 0.5
    while True:
        try:
            await session.append([Written(entries)])
        except LogUnavailable as error:
            logger.warning("turn_waits_for_disk", session=session.id, reason=str(error))
            await asyncio.sleep(pause)
            pause = min(pause * 2, 30.0)
        else:
            return
