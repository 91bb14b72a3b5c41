"""Which turn was cut off: it has no end, or the end that a start gave it, and its key has run out."""

import pytest

from core.entries import AnyEntry, FailureCause, TurnAborted, TurnDone, TurnEvent, TurnFailed, TurnStart, turn_event
from core.ids import TurnId, new_turn_id
from core.sessions.interrupted import Interrupted, interrupted
from tests.builders import SESSION, a_confirmation, a_task

TURN, BEFORE = new_turn_id(), new_turn_id()


def log(*events: TurnEvent) -> list[AnyEntry]:
    earlier = (TurnStart(turn_id=BEFORE), TurnDone(turn_id=BEFORE))
    lines: list[AnyEntry] = [turn_event(event, now=7) for event in (*earlier, *events)]
    return lines[::-1]


def cut_off(*events: TurnEvent, alive: TurnId | None = None) -> Interrupted | None:
    pending = [
        a_confirmation(a_task(1), turn_id=TURN),
        a_confirmation(a_task(2), turn_id=BEFORE),
        a_confirmation(a_task(3), turn_id=TURN, status="denied", decided_at=1),
    ]
    return interrupted(SESSION, log(*events), {(SESSION, alive)} if alive else set(), pending)


def test_a_turn_without_end_whose_key_has_run_out_was_cut_off_and_what_it_asked_is_resumable() -> None:
    assert cut_off(TurnStart(turn_id=TURN)) == Interrupted(SESSION, TURN, 7, (a_task(1),))
    assert cut_off(TurnStart(turn_id=TURN), alive=TURN) is None


def test_a_turn_that_the_next_start_ended_was_cut_off() -> None:
    end = TurnFailed(turn_id=TURN, error=FailureCause(name="Interrupted", message="the gateway stopped"))
    assert cut_off(TurnStart(turn_id=TURN), end) == Interrupted(SESSION, TURN, 7, (a_task(1),))


@pytest.mark.parametrize(
    "end", [TurnDone(turn_id=TURN), TurnAborted(turn_id=TURN), TurnFailed(turn_id=TURN), TurnDone(turn_id=BEFORE)]
)
def test_a_turn_that_ended_in_order_was_not(end: TurnEvent) -> None:
    assert cut_off(TurnStart(turn_id=TURN), end) is None


def test_nothing_was_cut_off_where_there_was_no_turn() -> None:
    assert interrupted(SESSION, [], set()) is None
