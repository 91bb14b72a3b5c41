"""What chats show of what is asked: one prompt each, in order, closed when it is over, also over restarts."""

import asyncio
import time
from contextlib import suppress

import pytest

from core.clock import now_ms
from core.confirmations.life import Given
from core.confirmations.record import Question, Record
from core.errors import ChatMoved, ChatRefused, ChatUnavailable
from core.ids import MessageId, SessionId, TaskHash, ThreadId, discord_session
from tests.builders import MONA, OPERATOR, SESSION, a_confirmation, a_task, an_ask
from tests.conftest import House, Until
from tests.core.confirmations.bench import Bench
from tests.fakes import FakeChat

YES = Given(option=0)
ELSEWHERE = discord_session("77")


def tasks(chat: FakeChat) -> list[TaskHash]:
    return [asked.prompt.task for asked in chat.asked]


async def yes(bench: Bench, record: Record) -> None:
    await bench.desk.give(record.task_hash, YES, MONA, record.deliver_to)


async def test_one_prompt_in_a_chat_in_the_order_of_the_requests(bench: Bench, until: Until) -> None:
    records = [await bench.open(a_confirmation(a_task(n), at=1_000 + n)) for n in (1, 2, 3)]
    for number, record in enumerate(records, 1):
        await until(lambda n=number: len(bench.chat.asked) == n)
        await asyncio.sleep(0.02)
        assert len(bench.chat.usable()) == 1
        await yes(bench, record)
    await until(lambda: not bench.desk.records())
    assert tasks(bench.chat) == [record.task_hash for record in records]
    assert bench.chat.usable() == []
    assert {shown[-1].outcome.split(",")[0] for shown in bench.chat.prompts.values()} == {"✅ Approved by Mona"}


async def test_a_prompt_appears_in_its_own_chat_only_and_quotes_its_cause(bench: Bench, until: Until) -> None:
    cause = {"entry_id": "e", "message_id": "55"}
    await bench.open(a_confirmation(a_task(1), cause=cause, thread_id=ThreadId("31")))
    await until(lambda: bench.chat.asked)
    assert (bench.chat.asked[0].quote, bench.chat.asked[0].thread) == ("55", "31")
    assert list(bench.chats) == [SESSION]


async def test_what_a_helper_asks_is_asked_where_the_work_began(bench: Bench, until: Until) -> None:
    helper = SessionId("temp-" + a_task(9))
    await bench.open(a_confirmation(a_task(1), session_id=helper, origin=SESSION, deliver_to=SESSION))
    await until(lambda: tasks(bench.chat) == [a_task(1)])


async def test_what_is_decided_while_it_waits_is_never_shown(bench: Bench, until: Until) -> None:
    first, second, third = [await bench.open(a_confirmation(a_task(n), at=n)) for n in (1, 2, 3)]
    await until(lambda: bench.chat.asked)
    await bench.desk.choose(second.task_hash, "no", OPERATOR)
    await until(lambda: bench.desk.get(second.task_hash) is None)
    await yes(bench, first)
    await until(lambda: len(bench.chat.asked) == 2)
    assert tasks(bench.chat) == [first.task_hash, third.task_hash]


async def test_expiry_closes_the_prompt_and_lets_the_next_one_on(bench: Bench, until: Until) -> None:
    await bench.open(a_confirmation(a_task(1), at=1, expires_at=now_ms() + 150))
    await bench.open(a_confirmation(a_task(2), at=2))
    await until(lambda: len(bench.chat.asked) == 2)
    await until(lambda: len(bench.chat.usable()) == 1)
    assert "Expired" in bench.chat.prompts[bench.chat.asked[0].message][-1].outcome


@pytest.mark.parametrize("trouble", [ChatUnavailable("slow", retry_after=1.5), ChatUnavailable("down"), None])
async def test_a_chat_in_trouble_holds_up_no_other(bench: Bench, until: Until, trouble: ChatUnavailable | None) -> None:
    if trouble is None:
        bench.chat.slow = 1.5
    else:
        bench.chat.refusals = [trouble]
    await bench.open(a_confirmation(a_task(1)))
    await asyncio.sleep(0.02)
    for n in range(2, 12):
        await bench.open(a_confirmation(a_task(n), session_id=discord_session(str(n))))
    async with asyncio.timeout(1):
        await until(lambda: sum(len(chat.asked) for chat in bench.chats.values()) == 10)
    assert bench.chat.asked == []
    await until(lambda: bench.chat.asked)


async def test_while_a_platform_asks_to_wait_an_answer_still_counts(bench: Bench, until: Until) -> None:
    record = await bench.shown(a_confirmation(a_task(1)))
    bench.chat.refusals = [ChatUnavailable("slow", retry_after=0.3)]
    started = time.monotonic()
    await yes(bench, record)
    assert time.monotonic() - started < 0.2
    await until(lambda: bench.runtime.resolved)
    assert time.monotonic() - started < 0.25, "the runtime is told before the prompt is closed"
    await until(lambda: bench.chat.usable() == [])


async def test_what_a_chat_refuses_is_noted_and_the_next_one_shown(bench: Bench, until: Until) -> None:
    bench.chat.refusals = [ChatRefused("not here", name="Forbidden")]
    first = await bench.open(a_confirmation(a_task(1), at=1))
    second = await bench.open(a_confirmation(a_task(2), at=2))
    await until(lambda: bench.chat.asked)
    assert tasks(bench.chat) == [second.task_hash]
    refused = bench.now(first.task_hash)
    assert refused.is_open
    assert refused.error is not None
    assert refused.error.message == "not here"
    await bench.desk.choose(first.task_hash, "yes", OPERATOR)
    await yes(bench, second)
    await until(lambda: not bench.desk.records())
    assert len(bench.chat.asked) == 1


async def test_a_chat_whose_platform_is_off_keeps_it_open_and_says_so(bench: Bench, until: Until) -> None:
    bench.off = {SESSION}
    record = await bench.open(a_confirmation(a_task(1), expires_at=now_ms() + 400))
    await until(lambda: bench.now(record.task_hash).error)
    assert bench.now(record.task_hash).is_open
    assert (await bench.desk.decided(record.task_hash, 5)).status == "expired"
    await until(lambda: bench.desk.get(record.task_hash) is None)


async def test_an_answered_question_is_closed_once_however_often_the_next_one_is_tried_and_over_a_restart(
    bench: Bench, until: Until
) -> None:
    record = await bench.open(an_ask(Question(question="a?"), Question(question="b?"), task=a_task(1)))
    await until(lambda: bench.now(record.task_hash).prompt is not None)
    chat, first = bench.chat, bench.chat.asked[0].message

    class Busy(FakeChat):
        async def ask(self, *_args: object, **_kwargs: object) -> MessageId:
            raise ChatUnavailable("not now", retry_after=0.01)

    busy = bench.chats[SESSION] = Busy(asked=chat.asked, prompts=chat.prompts)
    await bench.desk.give(record.task_hash, Given(question=0, text="so"), MONA, SESSION)

    def is_closed() -> bool:
        shown = bench.now(record.task_hash).prompt
        return shown is not None and shown.closed

    await until(is_closed)
    await asyncio.sleep(0.1)
    await bench.restart()
    await asyncio.sleep(0.1)
    assert [bool(shown.outcome) for shown in busy.prompts[first]].count(True) == 1
    bench.chats[SESSION] = FakeChat(asked=chat.asked, prompts=chat.prompts)
    await until(lambda: len(bench.chat.asked) == 2)
    assert [bool(shown.outcome) for shown in chat.prompts[first]].count(True) == 1


async def test_questions_are_shown_one_by_one_and_each_is_closed(bench: Bench, until: Until) -> None:
    questions = (Question(question="a?", options=("x", "y")), Question(question="b?", detail="more"))
    record = await bench.open(an_ask(*questions, task=a_task(1)))
    await until(lambda: bench.chat.asked)
    await bench.desk.give(record.task_hash, Given(question=0, option=1), MONA, SESSION)
    await until(lambda: len(bench.chat.asked) == 2)
    await bench.desk.give(record.task_hash, Given(question=1, text="so"), MONA, SESSION)
    await until(lambda: bench.desk.get(record.task_hash) is None)
    assert [(asked.prompt.title, asked.prompt.text) for asked in bench.chat.asked] == [
        ("(1/2) a?", ""),
        ("(2/2) b?", "more"),
    ]
    outcomes = [bench.chat.prompts[asked.message][-1].outcome for asked in bench.chat.asked]
    assert outcomes == ["✅ y", "✅ so by Mona"]


async def test_ticks_show_in_the_prompt_that_stands(bench: Bench, until: Until) -> None:
    fruit = Question(question="Which?", options=("a", "b", "c"), multi_select=True)
    record = await bench.shown(an_ask(fruit, task=a_task(1)))
    for option in (0, 2, 0):
        await bench.desk.give(record.task_hash, Given(option=option), MONA, SESSION)
    await until(lambda: bench.chat.prompts[bench.chat.asked[0].message][-1].ticked == (2,))
    assert len(bench.chat.asked) == 1


# --- restarts ---------------------------------------------------------------------------------------------------------


async def test_after_a_restart_a_prompt_that_stands_is_left_and_works(bench: Bench, until: Until) -> None:
    record = await bench.shown(a_confirmation(a_task(1)))
    await bench.restart()
    await until(lambda: len(bench.chat.prompts[bench.chat.asked[0].message]) == 2)
    assert len(bench.chat.asked) == 1
    await yes(bench, record)
    await until(lambda: not bench.desk.records())
    assert bench.chat.usable() == []


async def test_after_a_restart_a_prompt_that_is_gone_is_posted_again(bench: Bench, until: Until) -> None:
    record = await bench.shown(a_confirmation(a_task(1)))
    await bench.stop()
    bench.chat.gone.add(bench.chat.asked[0].message)
    await bench.start()
    await until(lambda: len(bench.chat.asked) == 2)
    await yes(bench, record)
    await until(lambda: not bench.desk.records())
    assert bench.chat.usable() == []


async def test_what_ran_out_while_we_were_not_there_is_not_shown_any_more(bench: Bench, until: Until) -> None:
    await bench.stop()
    await bench.start(shows=False)
    record = await bench.open(a_confirmation(a_task(1), expires_at=now_ms() + 100))
    await bench.stop()
    await asyncio.sleep(0.15)
    bench.pause = 0.1
    await bench.start()
    await until(lambda: bench.desk.get(record.task_hash) is None)
    assert (await bench.desk.find(record.task_hash)).status == "expired"
    assert bench.chat.asked == []


@pytest.mark.parametrize("pressed", [0, 1])
async def test_two_prompts_that_a_crash_left_both_work_and_both_are_closed(
    bench: Bench, until: Until, pressed: int
) -> None:
    await bench.stop()
    await bench.start(most=1)
    bench.chat.knows_nonces = False
    record = await bench.open(a_confirmation(a_task(1)))
    await until(lambda: bench.chat.asked)
    await bench.stop()
    await bench.start()
    await until(lambda: len(bench.chat.asked) == 2 and bench.now(record.task_hash).prompt is not None)
    await bench.desk.give(record.task_hash, Given(option=0, pressed=bench.chat.asked[pressed].message), MONA, SESSION)
    await until(lambda: not bench.desk.records())
    assert bench.chat.usable() == ([] if pressed == 0 else [bench.chat.asked[0].message])
    bench.showing.close_stray(record.task_hash, SESSION, bench.chat.asked[0].message)
    await until(lambda: bench.chat.usable() == [])
    assert len(bench.runtime.resolved) == 1


async def test_a_prompt_pressed_before_it_was_ever_noted_is_closed(bench: Bench, until: Until) -> None:
    await bench.stop()
    await bench.start(most=1)
    record = await bench.open(a_confirmation(a_task(1)))
    await until(lambda: bench.chat.asked)
    await bench.stop()
    await bench.start(shows=False)
    await bench.desk.give(record.task_hash, Given(option=0, pressed=bench.chat.asked[0].message), MONA, SESSION)
    await bench.stop()
    await bench.start()
    await until(lambda: not bench.desk.records())
    assert (bench.chat.usable(), len(bench.chat.asked)) == ([], 1)


@pytest.mark.parametrize("writes", range(7))
@pytest.mark.parametrize("ending", ["press", "expire", "stop"])
async def test_stopped_at_any_write_of_its_life_each_step_is_done_and_there_is_one_decision(
    house: House, until: Until, writes: int, ending: str
) -> None:
    bench = Bench(house)
    await bench.start(most=writes)
    record = a_confirmation(
        a_task(1), choices=("yes", "stop"), turn_id=a_task(50), at=now_ms(),
        expires_at=now_ms() + (150 if ending == "expire" else 10**9),
    )  # fmt: skip
    try:
        await bench.open(record)
    except OSError:
        assert writes == 0
        assert bench.chat.asked == []
        await bench.stop()
        return
    told: Record | None = None
    await asyncio.sleep(0.03)
    what = Given(option=0 if ending == "press" else 1)
    if ending != "expire":
        with suppress(OSError):
            told = await bench.desk.give(record.task_hash, what, MONA, SESSION)
    await asyncio.sleep(0.2)
    await bench.stop()
    if (left := bench.on_disk(record)) is not None and told is not None:
        assert left.status == told.status, "what was acknowledged is on the disk"
    await house.reopen()
    await bench.start()
    if ending != "expire" and told is None:
        await until(lambda: bench.chat.asked)
        told = await bench.desk.give(record.task_hash, what, MONA, SESSION)
    await until(lambda: not bench.desk.records())
    filed = await bench.desk.find(record.task_hash)
    assert filed.status == {"press": "approved", "expire": "expired", "stop": "stopped"}[ending]
    assert {one.status for one in bench.runtime.resolved} == {filed.status}
    assert len({one.decided_at for one in bench.runtime.resolved}) == 1
    assert len(bench.runtime.resolved) <= 2, "twice only if the first was not marked"
    if ending == "expire" and writes == 1:  # shown, which no file says, and over before we were there again
        assert bench.chat.usable() == [bench.chat.asked[0].message]
        bench.showing.close_stray(record.task_hash, SESSION, bench.chat.asked[0].message)
    await until(lambda: bench.chat.usable() == [])
    assert len(bench.chat.asked) == 1, "the same nonce is the same prompt"
    assert not bench.path(record).exists()
    await bench.stop()


# --- migration --------------------------------------------------------------------------------------------------------


async def test_open_prompts_are_asked_anew_where_a_chat_goes_on(bench: Bench, until: Until) -> None:
    old, new = SessionId("tg--5"), SessionId("tg--1005")
    records = [await bench.open(a_confirmation(a_task(n), session_id=old, at=n)) for n in (1, 2)]
    await until(lambda: bench.now(a_task(1)).prompt)
    bystander = await bench.shown(a_confirmation(a_task(3), session_id=SessionId("tg--55")))
    await bench.lineage.succeed(old, new)
    for _ in range(2):  # both notices
        await bench.desk.move(old, new)
    await until(lambda: bench.now(a_task(1)).prompt)
    assert tasks(bench.chats[new]) == [a_task(1)]
    assert (bench.now(a_task(1)).deliver_to, bench.now(a_task(1)).origin) == (new, old)
    for record in records:
        await bench.desk.give(record.task_hash, YES, MONA, new)
    await until(lambda: len(bench.desk.records()) == 1)
    assert bench.now(bystander.task_hash).deliver_to == "tg--55"
    assert len(bench.chats[SessionId("tg--55")].asked) == 1


async def test_a_chat_that_says_it_goes_on_elsewhere_is_followed(bench: Bench, until: Until) -> None:
    old, new = SessionId("tg--5"), SessionId("tg--1005")
    bench.chats[old].refusals = [ChatMoved("it is a supergroup now", successor=new)]
    await bench.open(a_confirmation(a_task(1), session_id=old, cause={"entry_id": "e", "message_id": "55"}))
    await until(lambda: bench.chats[new].asked)
    assert bench.chats[old].asked == []
    assert bench.chats[new].asked[0].quote is None, "messages have other numbers there"
    assert bench.lineage.current(old) == new


async def test_what_the_old_chat_refused_is_shown_in_the_new_one(bench: Bench, until: Until) -> None:
    old, new = SessionId("tg--5"), SessionId("tg--1005")
    bench.chats[old].refusals = [ChatRefused("the group is gone", name="Forbidden")]
    record = await bench.open(a_confirmation(a_task(1), session_id=old))
    await until(lambda: bench.now(record.task_hash).error)
    await bench.desk.move(old, new)
    await until(lambda: bench.chats[new].asked)
    await until(lambda: bench.now(record.task_hash).prompt)
    assert bench.now(record.task_hash).error is None


async def test_a_move_that_we_were_stopped_in_is_made_after_the_start(bench: Bench, until: Until) -> None:
    old, new = SessionId("tg--5"), SessionId("tg--1005")
    await bench.shown(a_confirmation(a_task(1), session_id=old))
    await bench.lineage.succeed(old, new)
    await bench.restart()
    await until(lambda: bench.chats[new].asked)
    assert bench.now(a_task(1)).deliver_to == new


# --- free text --------------------------------------------------------------------------------------------------------


async def test_only_a_reply_to_the_prompt_of_the_question_that_is_next_is_an_answer(bench: Bench, until: Until) -> None:
    chat = SessionId("tg--5")
    mona = MONA.model_copy(update={"platform": "telegram"})
    record = await bench.shown(
        an_ask(Question(question="a?"), Question(question="b?"), session_id=chat, requester=mona, task=a_task(1))
    )
    first = bench.chats[chat].asked[0].message
    assert bench.desk.awaits_reply(chat, first, mona) is not None
    assert bench.desk.awaits_reply(chat, MessageId("1"), mona) is None
    assert bench.desk.awaits_reply(chat, first, MONA) is None
    assert bench.desk.awaits_reply(SessionId("tg-5"), first, mona) is None
    bench.chats[chat].slow = 0.2
    await bench.desk.give(record.task_hash, Given(question=0, text="so", reply=MessageId("9")), mona, chat)
    assert bench.desk.awaits_reply(chat, first, mona) is None, "that one is answered, and the next not yet shown"
    await until(lambda: len(bench.chats[chat].asked) == 2)
    second = bench.chats[chat].asked[1].message
    await until(lambda: bench.desk.awaits_reply(chat, second, mona) is not None)
    assert bench.desk.awaits_reply(chat, first, mona) is None


async def test_where_a_form_takes_free_text_a_reply_is_none(bench: Bench) -> None:
    await bench.shown(an_ask(task=a_task(1)))
    assert bench.desk.awaits_reply(SESSION, bench.chat.asked[0].message, MONA) is None


# --- many -------------------------------------------------------------------------------------------------------------


async def test_two_hundred_in_fifty_chats_with_a_sudden_stop_in_the_middle(house: House, until: Until) -> None:
    bench = Bench(house)
    await bench.start()
    chats = [discord_session(str(1000 + n)) for n in range(50)]
    records = [
        a_confirmation(a_task(n), session_id=chats[n % 50], at=now_ms() + n, approvers="anyone") for n in range(200)
    ]
    for record in records:
        await bench.open(record)
    presses = 0

    async def people(most: int) -> None:
        nonlocal presses
        while presses < most and bench.desk.records():
            for chat in chats:
                for message in bench.chats[chat].usable():
                    task = bench.chats[chat].prompts[message][-1].task
                    record = bench.desk.get(task)
                    if record is not None and record.is_open:
                        await bench.desk.give(task, Given(option=0, pressed=message), MONA, chat)
                        presses += 1
            await asyncio.sleep(0.002)

    await people(90)
    bench.folder.most = 0
    await bench.stop()
    await house.reopen()
    await bench.start()
    async with asyncio.timeout(60):
        await people(10**6)
    told: dict[TaskHash, set[int | None]] = {}
    for one in bench.runtime.resolved:
        told.setdefault(one.task_hash, set()).add(one.decided_at)
    assert told.keys() == {record.task_hash for record in records}
    assert all(len(times) == 1 for times in told.values())
    for number, chat in enumerate(chats):
        assert bench.chats[chat].usable() == []
        order = list(dict.fromkeys(tasks(bench.chats[chat])))
        assert order == [record.task_hash for record in records[number::50]]
    await bench.stop()


async def test_a_thousand_are_opened_and_shown_in_seconds(bench: Bench, until: Until) -> None:
    started = time.monotonic()
    for n in range(1000):
        await bench.open(a_confirmation(a_task(n), session_id=discord_session(str(1000 + n % 100)), at=n))
    await until(lambda: sum(len(chat.asked) for chat in bench.chats.values()) == 100)
    assert time.monotonic() - started < 30, "about 2 s on a machine of 2 cores"
