"""The desk over a real folder: each record is decided once, and by nothing that is not on the disk."""

import asyncio
import errno
import json
import time
from typing import Any

import pytest

from core.clock import now_ms
from core.confirmations.life import Given
from core.confirmations.record import CHOICES, Answer, Person, Question, Record
from core.errors import AlreadyDecided, InvalidAnswer, NotAllowed, UnknownTask
from core.ids import MessageId, SessionId, TurnId
from tests.builders import ADMIN, MONA, OPERATOR, PIET, SESSION, a_confirmation, a_task, an_ask
from tests.conftest import Until
from tests.core.confirmations.bench import Bench

YES, NO = Given(option=0), Given(option=1)


async def test_what_is_opened_is_in_its_file_before_anybody_is_told(bench: Bench) -> None:
    seen: list[Record | None] = []
    bench.desk.listen(lambda record: seen.append(bench.on_disk(record)))
    record = await bench.open(a_confirmation(a_task(1)))
    assert seen[0] == record == bench.on_disk(record)


async def test_the_same_hash_again_is_the_same_record_also_when_it_is_filed(bench: Bench, until: Until) -> None:
    first = await bench.open(a_confirmation(a_task(1)))
    assert (await bench.open(a_confirmation(a_task(1), tool="rm"))).tool == "write_file"
    await bench.desk.give(first.task_hash, YES, MONA, SESSION)
    await until(lambda: bench.desk.get(first.task_hash) is None)
    assert (await bench.open(a_confirmation(a_task(1), tool="rm"))).status == "approved"
    assert not bench.path(first).exists()


async def test_of_many_at_once_the_first_valid_answer_is_the_answer(bench: Bench) -> None:
    bench.folder.pause = 0.02
    record = await bench.open(a_confirmation(a_task(1), approvers="anyone"))
    people = [Person(platform="discord", id=str(100 + number)) for number in range(12)]
    gives = [bench.desk.give(record.task_hash, (YES, NO)[index % 2], by, SESSION) for index, by in enumerate(people)]
    came = await asyncio.gather(*gives, return_exceptions=True)
    taken = [one for one in came if isinstance(one, Record)]
    assert [one.by for one in taken] == [people[0]]
    assert all(isinstance(one, AlreadyDecided) for one in came if not isinstance(one, Record))


async def test_a_failed_write_decides_nothing_and_the_next_answer_counts(bench: Bench) -> None:
    record = await bench.open(a_confirmation(a_task(1), approvers="anyone"))
    bench.folder.full = True
    with pytest.raises(OSError, match="No space"):
        await bench.desk.give(record.task_hash, YES, MONA, SESSION)
    found = bench.on_disk(record)
    assert found is not None
    assert bench.now(record.task_hash).is_open
    assert found.is_open
    assert bench.runtime.resolved == []
    bench.folder.full = False
    assert (await bench.desk.give(record.task_hash, NO, PIET, SESSION)).status == "denied"


async def test_nothing_is_opened_on_a_full_disk(bench: Bench) -> None:
    bench.folder.full = True
    with pytest.raises(OSError, match="No space") as raised:
        await bench.open(a_confirmation(a_task(1)))
    assert raised.value.errno == errno.ENOSPC
    with pytest.raises(UnknownTask):
        await bench.desk.find(a_task(1))


async def test_during_a_slow_write_the_second_waits_and_is_told_who_was_first(bench: Bench) -> None:
    record = await bench.open(a_confirmation(a_task(1), approvers="anyone"))
    bench.folder.pause = 0.3
    first = asyncio.create_task(bench.desk.give(record.task_hash, YES, MONA, SESSION))
    await asyncio.sleep(0.05)
    assert bench.now(record.task_hash).is_open, "not before it is written"
    with pytest.raises(AlreadyDecided, match="approved by Mona"):
        await bench.desk.give(record.task_hash, NO, PIET, SESSION)
    assert (await first).status == "approved"


async def test_time_that_runs_out_during_a_slow_write_takes_nothing_back(bench: Bench, until: Until) -> None:
    record = await bench.open(a_confirmation(a_task(1), expires_at=now_ms() + 200))
    bench.folder.pause = 0.4
    assert (await bench.desk.give(record.task_hash, YES, MONA, SESSION)).status == "approved"
    await until(lambda: bench.desk.get(record.task_hash) is None)
    assert (await bench.desk.find(record.task_hash)).status == "approved"
    assert [one.status for one in bench.runtime.resolved] == ["approved"]


async def test_an_answer_whose_write_fails_after_the_time_ran_out_leaves_an_expired_one(bench: Bench) -> None:
    record = await bench.open(a_confirmation(a_task(1), expires_at=now_ms() + 150))
    bench.folder.pause, bench.folder.full = 0.3, True
    with pytest.raises(OSError, match="No space"):
        await bench.desk.give(record.task_hash, YES, MONA, SESSION)
    bench.folder.pause, bench.folder.full = 0.0, False
    assert (await bench.desk.decided(record.task_hash, 5)).status == "expired"


async def test_a_folder_that_takes_nothing_holds_up_no_other_expiry(bench: Bench, until: Until) -> None:
    gone = await bench.open(
        a_confirmation(a_task(1), session_id=SessionId("chat-" + a_task(9)), expires_at=now_ms() + 60)
    )
    folder = bench.house.sessions.folder(gone.session_id)
    bench.path(gone).unlink()
    bench.path(gone).parent.rmdir()
    folder.rmdir()
    other = await bench.open(a_confirmation(a_task(2), expires_at=now_ms() + 200))
    await until(lambda: bench.desk.get(other.task_hash) is None)
    assert (await bench.desk.find(other.task_hash)).status == "expired"


async def test_whoever_stops_waiting_leaves_the_write_in_order(bench: Bench) -> None:
    record = await bench.open(a_confirmation(a_task(1), approvers="anyone"))
    bench.folder.pause = 0.2
    first = asyncio.create_task(bench.desk.give(record.task_hash, YES, MONA, SESSION))
    await asyncio.sleep(0.05)
    first.cancel()
    with pytest.raises(AlreadyDecided):
        await bench.desk.give(record.task_hash, NO, PIET, SESSION)
    found = bench.on_disk(record)
    assert found is not None
    assert (found.status, bench.now(record.task_hash).status) == ("approved", "approved")


async def test_a_full_disk_does_not_hold_up_the_end(bench: Bench) -> None:
    record = await bench.open(a_confirmation(a_task(1), expires_at=now_ms() + 100))
    bench.folder.full = True
    await asyncio.sleep(0.2)
    started = time.monotonic()
    await bench.stop()
    assert time.monotonic() - started < 2
    await bench.start()
    assert (await bench.desk.decided(record.task_hash, 5)).status == "expired", "told at the next start"


@pytest.mark.parametrize(
    ("asked_in", "pressed_in"),
    [
        ("tg-5", "tg--5"),
        ("tg--5", "tg-5"),
        ("tg-5", "tg-55"),
        ("tg-5", "tg-5~x"),
        ("tg-5~x", "tg-5"),
        ("tg-5~x", "tg-5~y"),
        ("tg-5", "dc-5"),
        ("dc-5", "tg-5"),
    ],
)
async def test_a_press_counts_in_its_own_chat_only(bench: Bench, asked_in: str, pressed_in: str) -> None:
    session = SessionId(asked_in)
    record = await bench.open(a_confirmation(a_task(1), session_id=session, approvers="anyone"))
    for by in (MONA, ADMIN):
        with pytest.raises(NotAllowed, match="another chat"):
            await bench.desk.give(record.task_hash, YES, by, SessionId(pressed_in))
    assert (await bench.desk.give(record.task_hash, YES, MONA, session)).status == "approved"


async def test_a_press_in_the_chat_that_went_on_counts_and_leaves_the_new_chat_alone(bench: Bench) -> None:
    old, new = SessionId("tg--5"), SessionId("tg--1005")
    record = await bench.open(a_confirmation(a_task(1), session_id=old))
    with pytest.raises(NotAllowed):
        await bench.desk.give(record.task_hash, YES, MONA, new)
    await bench.lineage.succeed(old, new)
    await bench.desk.move(old, new)
    decided = await bench.desk.give(record.task_hash, Given(option=0, pressed=MessageId("77")), MONA, old)
    assert decided.status == "approved"
    assert "77" not in (decided.prompt.message_ids if decided.prompt is not None else ())


async def test_nobody_but_who_may_answers_and_a_refusal_changes_nothing(bench: Bench) -> None:
    record = await bench.open(a_confirmation(a_task(1)))
    with pytest.raises(NotAllowed, match="only Mona or an admin"):
        await bench.desk.give(record.task_hash, YES, PIET, SESSION)
    with pytest.raises(InvalidAnswer):
        await bench.desk.give(record.task_hash, Given(option=7), MONA, SESSION)
    with pytest.raises(UnknownTask):
        await bench.desk.give(a_task(9), YES, MONA, SESSION)
    assert bench.now(record.task_hash).is_open


async def test_the_operator_answers_without_being_in_the_chat(bench: Bench) -> None:
    record = await bench.open(a_confirmation(a_task(1), approvers="admins", requester=None))
    assert (await bench.desk.choose(record.task_hash, "no", OPERATOR)).by == OPERATOR
    with pytest.raises(AlreadyDecided, match="denied by operator"):
        await bench.desk.choose(record.task_hash, "yes", OPERATOR)
    ask = await bench.open(an_ask(task=a_task(2)))
    answers = [Answer(question="Which one?", answer="that")]
    assert (await bench.desk.answer(ask.task_hash, answers, OPERATOR)).answers == tuple(answers)


async def test_whoever_waits_for_a_decision_is_told_at_once_and_else_gets_what_there_is(bench: Bench) -> None:
    record = await bench.open(a_confirmation(a_task(1)))
    assert (await bench.desk.decided(record.task_hash, 0.05)).is_open
    waiting = [asyncio.create_task(bench.desk.decided(record.task_hash, 10)) for _ in range(3)]
    await asyncio.sleep(0.01)
    await bench.desk.give(record.task_hash, YES, MONA, SESSION)
    assert {(await one).status for one in waiting} == {"approved"}
    with pytest.raises(UnknownTask):
        await bench.desk.decided(a_task(9), 1)


async def test_stop_ends_the_turn_and_all_that_it_asks(bench: Bench, until: Until) -> None:
    turn, later = TurnId(a_task(50)), TurnId(a_task(51))
    asked = [await bench.open(a_confirmation(a_task(n), choices=CHOICES, turn_id=turn)) for n in (1, 2)]
    question = await bench.open(an_ask(task=a_task(3), turn_id=turn))
    others = [
        await bench.open(a_confirmation(a_task(4), turn_id=later)),
        await bench.open(a_confirmation(a_task(5))),
        await bench.open(a_confirmation(a_task(6), session_id=SessionId("dc-1"), turn_id=turn)),
    ]
    await bench.desk.give(asked[0].task_hash, Given(option=4), MONA, SESSION)
    await until(lambda: len(bench.runtime.resolved) == 3)
    told = {one.task_hash: (one.status, one.by) for one in bench.runtime.resolved}
    assert told == {one.task_hash: ("stopped", MONA) for one in [*asked, question]}
    assert bench.stopped_turns == [(turn, asked[0].task_hash)]
    assert all(bench.now(other.task_hash).is_open for other in others)
    late = await bench.open(a_confirmation(a_task(7), choices=CHOICES, turn_id=turn))
    assert (late.status, late.by) == ("stopped", MONA)


async def test_what_is_being_opened_while_its_turn_is_stopped_is_stopped(bench: Bench) -> None:
    turn = TurnId(a_task(50))
    first = await bench.open(a_confirmation(a_task(1), choices=CHOICES, turn_id=turn))
    bench.folder.pause = 0.1
    stopping = asyncio.create_task(bench.desk.give(first.task_hash, Given(option=4), MONA, SESSION))
    await asyncio.sleep(0.05)
    late = await bench.open(a_confirmation(a_task(2), choices=CHOICES, turn_id=turn))
    await stopping
    assert (await bench.desk.decided(late.task_hash, 5)).status == "stopped"


async def test_a_stop_that_we_were_stopped_in_is_carried_out_after_the_start(bench: Bench) -> None:
    turn = TurnId(a_task(50))
    await bench.stop()
    await bench.start(shows=False, tells=False)
    first = await bench.open(a_confirmation(a_task(1), choices=CHOICES, turn_id=turn))
    other = await bench.open(a_confirmation(a_task(2), choices=CHOICES, turn_id=turn))
    bench.folder.most = bench.folder.written + 1
    await bench.desk.give(first.task_hash, Given(option=4), MONA, SESSION)
    await bench.stop()
    await bench.start(shows=False, tells=False)
    assert bench.now(other.task_hash).status == "stopped"


async def test_a_stop_after_a_restart_stops_what_its_turn_asked_before(bench: Bench, until: Until) -> None:
    turn = TurnId(a_task(50))
    first, other = [await bench.open(a_confirmation(a_task(n), choices=CHOICES, turn_id=turn, at=n)) for n in (1, 2)]
    await bench.restart()
    await bench.desk.give(first.task_hash, Given(option=4), MONA, SESSION)
    await until(lambda: not bench.desk.records())
    assert (await bench.desk.find(other.task_hash)).status == "stopped"


async def test_a_filed_decision_stays_readable_and_its_file_is_gone(bench: Bench, until: Until) -> None:
    record = await bench.open(an_ask(Question(question="Which?", options=("a", "b")), task=a_task(1)))
    await until(lambda: bench.chat.asked)
    await bench.desk.give(record.task_hash, Given(option=1), MONA, SESSION)
    await until(lambda: bench.desk.get(record.task_hash) is None)
    assert not bench.path(record).exists()
    filed = await bench.desk.find(record.task_hash)
    assert (filed.status, filed.answers) == ("answered", (Answer(question="Which?", answer="b"),))
    assert filed.resolved_at is not None
    assert filed.closed_at is not None
    with pytest.raises(AlreadyDecided, match="answered by Mona"):
        await bench.desk.give(record.task_hash, Given(option=0), MONA, SESSION)


@pytest.mark.parametrize("prefix", ["chat-", "cli-", "temp-"])
async def test_what_is_asked_where_nothing_is_shown_is_filed_too(bench: Bench, until: Until, prefix: str) -> None:
    session = SessionId(prefix + a_task(9))
    record = await bench.open(a_confirmation(a_task(1), session_id=session, approvers="admins", requester=None))
    await bench.desk.choose(record.task_hash, "yes", OPERATOR)
    await until(lambda: bench.desk.get(record.task_hash) is None)
    assert not bench.path(record).exists()
    assert (await bench.desk.find(record.task_hash)).error is None


async def test_members_of_others_outlive_a_decision_on_disk(bench: Bench) -> None:
    record = await bench.open(a_confirmation(a_task(1)))
    path = bench.path(record)
    document: dict[str, Any] = json.loads(path.read_text()) | {"objective": "tidy up", "todos": [1]}
    await bench.stop()
    path.write_text(json.dumps(document))
    await bench.start(shows=False, tells=False)
    await bench.desk.give(record.task_hash, YES, MONA, SESSION)
    told: dict[str, Any] = json.loads(path.read_text())
    assert (told["objective"], told["todos"], told["status"]) == ("tidy up", [1], "approved")
