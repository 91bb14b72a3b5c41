"""Answering a press in time: after at most a second, however long the disk takes (sessions.md 4.5)."""

import asyncio
from collections.abc import Collection
from typing import Final, Protocol

import structlog

from core.confirmations.desk import Desk
from core.confirmations.life import Given
from core.confirmations.record import Person, Record
from core.confirmations.showing import Showing
from core.errors import AlreadyDecided, ConfirmationError, StoreUnavailable, UnknownTask
from core.ids import Control, MessageId, SessionId

WITHIN: Final = 1.0
"""Seconds; Discord allows three in all."""
NOT_RECORDED: Final = "That could not be recorded, so nothing is decided; please try again in a moment."
ONLY_PEOPLE: Final = "Only people can answer this."
NOTHING_KNOWN: Final = "This is nothing that I know."
NOT_ALLOWED_HERE: Final = "You may not use this bot here."
UNREADABLE: Final = "This cannot be read."

logger = structlog.get_logger()


class Presser(Protocol):
    """The person who pressed, as far as the platform lets us answer. None of it raises: a decision stands anyway."""

    async def accepted(self) -> None:
        """It counts."""
        ...

    async def waiting(self) -> None:
        """It is being recorded."""
        ...

    async def refused(self, why: str, *, waited: bool) -> None:
        """It does not count. ``waited``: `waiting` was said before."""
        ...


class Answers:
    """Takes the answers that come in through the doors."""

    def __init__(self, desk: Desk, showing: Showing) -> None:
        self._desk = desk
        self._showing = showing

    async def press(self, control: Control, what: Given, by: Person | None, place: SessionId, presser: Presser) -> None:
        """Let a press count, durably, and say so in time. ``by`` None: it was no person. Never raises."""
        if by is None:
            await presser.refused(ONLY_PEOPLE, waited=False)
            return
        taking = asyncio.ensure_future(self._desk.give(control.task, what, by, place))
        waited = False
        try:
            await asyncio.wait({taking}, timeout=WITHIN)
            if not taking.done():
                waited = True
                await presser.waiting()
            await asyncio.shield(taking)
        except ConfirmationError as error:
            await presser.refused(_sentence(error), waited=waited)
            if isinstance(error, AlreadyDecided) and what.pressed is not None:
                self._showing.close_stray(control.task, place, what.pressed)
        except Exception as error:  # noqa: BLE001 - the presser is told, whatever went wrong
            logger.warning("press_not_recorded", task=control.task, error=type(error).__name__)
            await presser.refused(NOT_RECORDED, waited=waited)
        else:
            if not waited:
                await presser.accepted()

    def awaits_reply(self, place: SessionId, quoted: MessageId, by: Person) -> Record | None:
        """The question that a reply of this person to that message answers in their own words."""
        return self._desk.awaits_reply(place, quoted, by)

    def is_admin(self, by: Person) -> bool:
        """Whether they may answer everything."""
        return self._desk.is_admin(by)

    def title(self, control: Control) -> str:
        """What is asked, in a line; empty where that is not known any more."""
        record = self._desk.get(control.task)
        if record is None or control.question >= len(record.questions):
            return ""
        return record.questions[control.question].question

    async def check(self, control: Control, by: Person | None, place: SessionId) -> str | None:
        """Why this person would be refused now; None where they would not."""
        if by is None:
            return ONLY_PEOPLE
        try:
            await self._desk.check(control.task, by, place)
        except ConfirmationError as error:
            return _sentence(error)
        except StoreUnavailable:
            return NOT_RECORDED
        return None

    def gone(self, place: SessionId, messages: Collection[MessageId]) -> None:
        """Messages of a chat were deleted: prompts among them are posted again."""
        self._showing.look_again(place, messages)

    async def reply(self, record: Record, what: Given, by: Person, place: SessionId) -> None:
        """Let a reply count, durably. Raises `OSError`: nothing was decided, and it may be handed in again."""
        try:
            await self._desk.give(record.task_hash, what, by, place)
        except ConfirmationError as error:
            logger.info("reply_does_not_count", task=record.task_hash, reason=str(error))


def _sentence(error: ConfirmationError) -> str:
    """What the error says, for somebody in a chat."""
    why = "that is not known here any more" if isinstance(error, UnknownTask) else str(error)
    return f"{why[:1].upper()}{why[1:]}."
