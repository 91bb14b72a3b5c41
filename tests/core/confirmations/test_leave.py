"""Leave that was given before: whose it is, for what, and for whom it holds (sessions.md 4.3; contract section 9)."""

from collections.abc import Sequence

import pytest

from core.clock import now_ms
from core.confirmations.leave import Leave, args_hash
from core.confirmations.life import chosen
from core.confirmations.record import CHOICES, Approvers, Choice, Person, Record
from core.errors import StoreUnavailable
from core.ids import SessionId, TurnId
from tests.builders import ADMIN, ADMINS, MONA, OPERATOR, PIET, SESSION, a_confirmation, a_task
from tests.core.confirmations.bench import Bench

TURN = TurnId(a_task(50))


def asked(by: Person | None, approvers: Approvers = "anyone", **rest: object) -> Record:
    return a_confirmation(**({"requester": by, "approvers": approvers, "choices": CHOICES, "at": now_ms()} | rest))  # pyright: ignore[reportArgumentType] - a builder


async def later(bench: Bench, first: Record, choice: Choice, granter: Person, then: Record) -> Record:
    await bench.leave.remember(chosen(first, choice, granter, now_ms()))
    return await bench.leave.applied(then, now_ms())


@pytest.mark.parametrize(
    ("granter", "first_of", "then_of", "holds"),
    [
        (MONA, MONA, MONA, True),
        (MONA, MONA, PIET, False),
        (MONA, MONA, None, False),
        (PIET, MONA, MONA, False),
        (PIET, MONA, PIET, True),
        (ADMIN, MONA, MONA, True),
        (ADMIN, MONA, PIET, True),
        (ADMIN, MONA, None, True),
        (ADMIN, ADMIN, ADMIN, True),
        (ADMIN, ADMIN, PIET, False),
        (OPERATOR, MONA, PIET, True),
        (OPERATOR, None, None, True),
    ],
)
async def test_always_holds_for_whom_it_was_granted(
    bench: Bench, granter: Person, first_of: Person | None, then_of: Person | None, holds: bool
) -> None:
    record = await later(bench, asked(first_of), "always", granter, asked(then_of))
    assert (record.status, record.choice) == (("approved", "always") if holds else ("open", None))
    if holds:
        assert record.by is not None
        assert (record.by.key, record.closed_at is not None) == (granter.key, True)


@pytest.mark.parametrize(
    "then",
    [
        {"args_hash": "e" * 64},
        {"tool": "write_files"},
        {"session_id": SessionId("dc-90000000000000000")},
        {"choices": ("yes", "turn", "no")},
        {"args_hash": None},
    ],
)
async def test_always_is_for_this_session_tool_and_arguments_where_it_is_offered(
    bench: Bench, then: dict[str, object]
) -> None:
    assert (await later(bench, asked(MONA), "always", OPERATOR, asked(MONA).with_(**then))).is_open


async def test_a_requester_s_leave_does_not_reach_what_only_admins_may_answer(bench: Bench) -> None:
    assert (await later(bench, asked(MONA), "always", MONA, asked(MONA, "admins"))).is_open
    assert not (await later(bench, asked(MONA), "always", OPERATOR, asked(MONA, "admins"))).is_open


async def test_an_admin_who_is_one_no_longer_gave_leave_for_nothing(bench: Bench) -> None:
    await bench.leave.remember(chosen(asked(MONA), "always", ADMIN, now_ms()))
    nobody = Leave(bench.decisions, admins=frozenset())
    assert (await nobody.applied(asked(MONA), now_ms())).is_open


@pytest.mark.parametrize(
    ("granter", "then_of", "approvers", "holds"),
    [
        (MONA, MONA, "requester", True),
        (MONA, PIET, "requester", False),
        (MONA, MONA, "admins", False),
        (MONA, PIET, "anyone", True),
        (ADMIN, PIET, "requester", True),
        (ADMIN, None, "admins", True),
        (OPERATOR, None, "admins", True),
    ],
)
async def test_turn_holds_for_the_turn_s_requests_that_the_granter_may_answer(
    bench: Bench, granter: Person, then_of: Person | None, approvers: Approvers, holds: bool
) -> None:
    first = asked(MONA, turn_id=TURN)
    then = asked(then_of, approvers, turn_id=TURN, tool="another", args_hash="e" * 64)
    record = await later(bench, first, "turn", granter, then)
    assert (record.status, record.choice, record.by) == (
        ("approved", "turn", granter) if holds else ("open", None, None)
    )


@pytest.mark.parametrize(
    "then",
    [
        {"turn_id": TurnId(a_task(51))},
        {"turn_id": None},
        {"turn_id": TURN, "choices": ("yes", "always", "no")},
        {"turn_id": TURN, "session_id": SessionId("dc-1")},
    ],
)
async def test_turn_is_for_this_turn_where_it_is_offered(bench: Bench, then: dict[str, object]) -> None:
    assert (await later(bench, asked(MONA, turn_id=TURN), "turn", OPERATOR, asked(MONA).with_(**then))).is_open


async def test_leave_for_a_turn_does_not_outlive_the_process_and_always_does(bench: Bench) -> None:
    await later(bench, asked(MONA, turn_id=TURN), "turn", OPERATOR, asked(MONA))
    await bench.restart()
    assert (await bench.leave.applied(asked(MONA, turn_id=TURN), now_ms())).is_open
    await later(bench, asked(MONA), "always", OPERATOR, asked(MONA))
    await bench.restart()
    assert not (await bench.leave.applied(asked(MONA), now_ms())).is_open


@pytest.mark.parametrize("granter", [MONA, ADMIN, OPERATOR])
@pytest.mark.parametrize("then_of", [MONA, PIET, None])
async def test_a_stopped_turn_asks_nobody_any_more(bench: Bench, granter: Person, then_of: Person | None) -> None:
    first, then = asked(MONA, turn_id=TURN), asked(then_of, turn_id=TURN, choices=("yes", "no"))
    record = await later(bench, first, "stop", granter, then)
    assert (record.status, record.by) == ("stopped", granter)


async def test_leave_that_comes_after_a_stop_does_not_undo_it(bench: Bench) -> None:
    await bench.leave.remember(chosen(asked(MONA, turn_id=TURN), "stop", MONA, now_ms()))
    record = await later(bench, asked(MONA, turn_id=TURN), "turn", MONA, asked(MONA, turn_id=TURN))
    assert record.status == "stopped"


async def test_leave_goes_along_when_a_chat_migrates_and_nowhere_else(bench: Bench) -> None:
    old, new, other = SessionId("tg--5"), SessionId("tg--1005"), SessionId("tg--55")
    await bench.leave.remember(chosen(asked(MONA, session_id=old), "always", OPERATOR, now_ms()))
    assert (await bench.leave.applied(asked(MONA, session_id=new), now_ms())).is_open
    await bench.lineage.succeed(old, new)
    assert (await bench.leave.applied(asked(MONA, session_id=new), now_ms())).status == "approved"
    assert (await bench.leave.applied(asked(MONA, session_id=other), now_ms())).is_open


async def test_what_cannot_be_looked_up_is_asked() -> None:
    class Broken:
        async def grant(self, session: SessionId, tool: str, args_hash: str, by: str, at: int) -> None:
            raise StoreUnavailable

        async def granted(self, sessions: Sequence[SessionId], tool: str, args_hash: str) -> list[str]:
            raise StoreUnavailable

    leave = Leave(Broken(), admins=ADMINS)
    await leave.remember(chosen(asked(MONA), "always", MONA, now_ms()))
    assert (await leave.applied(asked(MONA), now_ms())).is_open


def test_arguments_are_the_same_however_their_members_are_ordered() -> None:
    assert args_hash({"a": 1, "b": [2, "ü"]}) == args_hash({"b": [2, "ü"], "a": 1})
    different: list[object] = [{"a": 1}, {"a": "1"}, {"a": [1]}, None, [], {}, "", {"a": True}, {"a": 1.5}]
    assert len({args_hash(one) for one in different}) == len(different)
    with pytest.raises(ValueError, match="JSON"):
        args_hash({"a": float("nan")})


async def test_a_decision_by_leave_is_told_and_filed_without_ever_being_shown(bench: Bench) -> None:
    await bench.leave.remember(chosen(asked(MONA), "always", OPERATOR, now_ms()))
    record = await bench.open(asked(MONA))
    assert (record.status, record.session_id) == ("approved", SESSION)
    assert (await bench.desk.decided(record.task_hash, 5)).status == "approved"
    assert bench.chat.asked == []
