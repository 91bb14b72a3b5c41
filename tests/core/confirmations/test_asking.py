"""From a request to a record: where it is asked, who may answer, and what takes it back."""

import asyncio
import json
from typing import Any

import pytest

from core.confirmations.asking import MOST_ARGS, Asking, Origin, Request
from core.confirmations.life import Given
from core.confirmations.record import Cause, Person, Question
from core.entries import TurnStart, turn_event
from core.errors import InvalidRequest
from core.ids import EntryId, MessageId, SessionId, ThreadId, TurnId
from core.sessions.facts import Written
from tests.builders import MONA, SESSION, a_confirmation, a_message, a_task, retracted, said
from tests.conftest import Until
from tests.core.confirmations.bench import Bench

TURN = TurnId(a_task(50))


class Office:
    """Asks at a bench; ``origins`` are what turns came from, ``kept`` the files that were too long to show."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.origins: dict[tuple[SessionId, TurnId], Origin] = {}
        self.kept: list[bytes] = []
        self.asking = Asking(
            bench.desk,
            bench.house.sessions,
            self,
            self._keep,
            timeout=300.0,
            origin=bench.lineage.origin,
            current=bench.lineage.current,
            veil=lambda text: text.replace("s3cret", "***"),
        )

    def cause(self, session: SessionId, turn: TurnId) -> Origin | None:
        return self.origins.get((session, turn))

    async def _keep(self, _session: SessionId, content: bytes) -> str:
        self.kept.append(content)
        return "artifact://confirmations/request.json"

    async def wake(self, number: int = 1, session: SessionId = SESSION, **rest: object) -> EntryId:
        """A message came, and a turn answers it."""
        open_session = self.bench.house.sessions.of(session)
        await open_session.append([said(number, **rest)])  # pyright: ignore[reportArgumentType] - a builder
        path = self.bench.house.sessions.folder(session) / "events.jsonl"
        entry = EntryId(json.loads(path.read_bytes().splitlines()[-1])["id"])
        await open_session.append([Written((turn_event(TurnStart(turn_id=TURN), now=1),))])
        self.origins[session, TURN] = Origin(entry, a_message(number, **rest))  # pyright: ignore[reportArgumentType]
        return entry


@pytest.fixture
def office(bench: Bench) -> Office:
    return Office(bench)


def a_request(session: SessionId = SESSION, **rest: Any) -> Request:
    members: dict[str, Any] = {"kind": "confirm", "tool": "rm", "choices": ("yes", "no")}
    return Request(session=session, **(members | rest))


async def test_the_running_turn_says_whom_to_ask_and_what_to_quote(office: Office) -> None:
    entry = await office.wake(5, thread_id=ThreadId("31"))
    record = await office.asking.ask(a_request(args={"path": "a"}), a_task(1))
    assert record.cause == Cause(entry_id=entry, message_id=MessageId("5"))
    assert (record.turn_id, record.requester, record.approvers) == (TURN, MONA, "requester")
    assert (record.origin, record.deliver_to, record.thread_id) == (SESSION, SESSION, "31")
    assert record.expires_at - record.created_at == 300_000
    assert (await office.asking.ask(a_request(timeout=1.5), a_task(2))).expires_at % 10**6 != 0


async def test_where_nobody_is_known_to_have_asked_admins_answer(office: Office) -> None:
    await office.bench.open(a_confirmation(a_task(9)))
    record = await office.asking.ask(a_request(), a_task(1))
    assert (record.requester, record.approvers, record.turn_id, record.cause) == (None, "admins", None, None)


async def test_a_bot_that_made_the_turn_is_never_asked(office: Office) -> None:
    await office.wake(5, via="webhook")
    record = await office.asking.ask(a_request(), a_task(1))
    assert (record.requester, record.approvers) == (None, "admins")


async def test_in_a_business_chat_admins_are_asked_and_not_the_stranger(office: Office) -> None:
    session = SessionId("tg-5~x")
    await office.wake(5, session, platform="telegram")
    record = await office.asking.ask(a_request(session), a_task(1))
    assert record.approvers == "admins"
    assert (await office.asking.ask(a_request(session, approvers="anyone"), a_task(2))).approvers == "anyone"


async def test_a_helper_asks_where_the_work_began_with_the_cause_of_that_work(office: Office) -> None:
    helper = SessionId("temp-" + a_task(9))
    entry = await office.wake(5)
    await office.bench.lineage.descend(helper, SESSION)
    office.bench.house.sessions.folder(helper).mkdir(parents=True)
    record = await office.asking.ask(a_request(helper), a_task(1))
    assert (record.session_id, record.origin, record.deliver_to) == (helper, SESSION, SESSION)
    assert record.requester == MONA
    assert record.cause is not None
    assert record.cause.entry_id == entry


async def test_after_a_migration_it_is_asked_where_the_chat_goes_on(office: Office) -> None:
    old, new = SessionId("tg--5"), SessionId("tg--1005")
    await office.bench.lineage.succeed(old, new)
    await office.bench.open(a_confirmation(a_task(9), session_id=old, deliver_to=new))
    record = await office.asking.ask(a_request(old, requester="13"), a_task(1))
    assert (record.origin, record.deliver_to) == (old, new)
    assert record.requester == Person(platform="telegram", id="13")


async def test_a_requester_in_a_session_that_is_no_chat_cannot_be(office: Office) -> None:
    with pytest.raises(InvalidRequest):
        await office.asking.ask(a_request(SessionId("chat-" + a_task(9)), requester="11"), a_task(1))


async def test_large_arguments_are_kept_in_a_file_and_cut_in_the_record(office: Office) -> None:
    await office.wake()
    for text in ("x" * 5000, "é" * 3000, "👍" * 2000, '"\\' * 2000):
        args = {"command": text}
        record = await office.asking.ask(a_request(args=args), a_task(len(office.kept) + 1))
        assert len(json.dumps(record.args, ensure_ascii=False).encode()) <= MOST_ARGS
        assert "cut" in str(record.args)
        assert json.loads(office.kept[-1])["args"] == args
        assert record.file is not None
    small = await office.asking.ask(a_request(args={"a": 1}), a_task(20))
    assert (small.args, small.file) == ({"a": 1}, None)


async def test_leave_is_for_the_whole_arguments_not_for_what_is_shown_of_them(office: Office) -> None:
    await office.wake()
    hashes = {
        (await office.asking.ask(a_request(args={"command": text}), a_task(number))).args_hash
        for number, text in enumerate(["x" * 5000 + "a", "x" * 5000 + "b", "s3cret 1", "s3cret 2"], 1)
    }
    assert len(hashes) == 4


async def test_what_must_not_be_shown_is_in_no_file(office: Office) -> None:
    await office.wake()
    questions = (Question(question="s3cret?", detail="s3cret", options=("s3cret", "***")),)
    await office.asking.ask(a_request(text="s3cret", args={"s3cret": ["s3cret" * 500]}), a_task(1))
    ask = await office.asking.ask(a_request(kind="ask", tool=None, choices=(), questions=questions), a_task(2))
    assert len(set(ask.questions[0].options)) == 2, "options stay apart"
    pending = office.bench.house.sessions.folder(SESSION) / "pending"
    assert all(b"s3cret" not in path.read_bytes() for path in pending.iterdir())
    assert all(b"s3cret" not in content for content in office.kept)


# --- what takes it back -----------------------------------------------------------------------------------------------


async def test_a_retraction_withdraws_what_the_message_caused_and_nothing_else(office: Office, until: Until) -> None:
    office.bench.house.sessions.listen(office.bench.desk.on_append)
    await office.wake(5)
    first, waiting = [await office.asking.ask(a_request(), a_task(n)) for n in (1, 2)]
    another = Cause(entry_id=EntryId("e"), message_id=MessageId("6"))
    other = await office.bench.open(a_confirmation(a_task(3), cause=another))
    await until(lambda: office.bench.now(first.task_hash).prompt)
    await office.bench.house.sessions.of(SESSION).append([retracted(5)])
    await until(lambda: len(office.bench.desk.records()) == 1)
    assert office.bench.now(other.task_hash).is_open
    for record in (first, waiting):
        filed = await office.bench.desk.find(record.task_hash)
        assert (filed.status, filed.withdrawn) == ("denied", True)
    outcome = office.bench.chat.prompts[office.bench.chat.asked[0].message][-1].outcome
    assert "Withdrawn" in outcome


async def test_what_is_asked_about_a_message_that_is_gone_already_is_denied(office: Office, until: Until) -> None:
    await office.wake(5)
    await office.bench.house.sessions.of(SESSION).append([retracted(5)])
    assert (await office.asking.ask(a_request(), a_task(1))).withdrawn
    await until(lambda: office.bench.desk.get(a_task(1)) is None)
    assert [one.status for one in office.bench.runtime.resolved] == ["denied"]
    assert office.bench.chat.asked == []


async def test_a_retraction_that_we_were_stopped_in_counts_after_the_start(office: Office, until: Until) -> None:
    await office.wake(5)
    record = await office.asking.ask(a_request(), a_task(1))
    await until(lambda: office.bench.now(record.task_hash).prompt)
    await office.bench.house.sessions.of(SESSION).append([retracted(5)])  # nobody listens
    assert office.bench.now(record.task_hash).is_open
    await office.bench.restart()
    await until(lambda: not office.bench.desk.records())
    assert (await office.bench.desk.find(record.task_hash)).withdrawn
    assert office.bench.chat.usable() == []


async def test_an_answer_that_is_faster_than_the_retraction_stays(office: Office, until: Until) -> None:
    office.bench.house.sessions.listen(office.bench.desk.on_append)
    await office.wake(5)
    record = await office.asking.ask(a_request(), a_task(1))
    await until(lambda: office.bench.now(record.task_hash).prompt)
    office.bench.folder.pause = 0.2
    giving = asyncio.create_task(office.bench.desk.give(record.task_hash, Given(option=0), MONA, SESSION))
    await asyncio.sleep(0.05)
    await office.bench.house.sessions.of(SESSION).append([retracted(5)])
    assert (await giving).status == "approved"
    await until(lambda: not office.bench.desk.records())
    assert (await office.bench.desk.find(record.task_hash)).status == "approved"
