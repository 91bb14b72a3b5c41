"""Turns that were cut off, as far as the log, the liveness keys and ``pending/`` tell (sessions.md 3.2).

Pure, so that also who does not hold the data folder can ask: `ishiki sessions`, the menu.
"""

from collections.abc import Iterable, Set
from typing import NamedTuple, Protocol

from core.entries import AnyEntry, TurnAborted, TurnDone, TurnEvent, TurnFailed, TurnStart
from core.ids import SessionId, TaskHash, TurnId

INTERRUPTED = "Interrupted"
"""The name of the failure that a turn ends with which was found open (log-format 4)."""


class Pending(Protocol):
    """What is asked of a confirmation's record."""

    @property
    def task_hash(self) -> TaskHash: ...
    @property
    def session_id(self) -> SessionId: ...
    @property
    def turn_id(self) -> TurnId | None: ...
    @property
    def is_open(self) -> bool: ...


class Interrupted(NamedTuple):
    """A turn that was cut off, when it began in Unix ms (0: not known), and what of it waits for an answer.

    ``resumable``: the answer to one of these begins a new turn that goes on with it.
    """

    session: SessionId
    turn: TurnId
    began: int
    resumable: tuple[TaskHash, ...] = ()


def interrupted(
    session: SessionId,
    newest_first: Iterable[AnyEntry],
    alive: Set[tuple[SessionId, TurnId]],
    pending: Iterable[Pending] = (),
) -> Interrupted | None:
    """The newest turn of a session if it was cut off; None where it ended in order, or lives.

    Reads no further back than that turn's beginning. ``alive`` are the turns whose key has not run out.
    """
    turn: TurnId | None = None
    for entry in newest_first:
        event = entry.data
        if turn is None and isinstance(event, TurnEvent) and not _is_cut_off(event):
            return None
        if turn is None and isinstance(event, TurnEvent):
            turn = event.turn_id
        if turn is not None and isinstance(event, TurnStart) and event.turn_id == turn:
            return None if (session, turn) in alive else _cut_off(session, turn, entry.timestamp, pending)
    return None if turn is None or (session, turn) in alive else _cut_off(session, turn, 0, pending)


def _is_cut_off(event: TurnEvent) -> bool:
    match event:
        case TurnStart():
            return True
        case TurnFailed():
            return event.error is not None and event.error.name == INTERRUPTED
        case TurnDone() | TurnAborted():
            return False


def _cut_off(session: SessionId, turn: TurnId, began: int, pending: Iterable[Pending]) -> Interrupted:
    open_ones = (one for one in pending if one.is_open and (one.session_id, one.turn_id) == (session, turn))
    return Interrupted(session, turn, began, tuple(one.task_hash for one in open_ones))
