"""One session over a real log: each thing once, in order, also after a restart and beyond what memory holds."""

import asyncio
import errno
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from core.codec import raw_json
from core.entries import (
    AnyEntry,
    MessageCreated,
    MessageDeleted,
    Quote,
    TurnFailed,
    TurnStart,
    UserMessage,
    fact_of,
    message_entry,
    turn_event,
)
from core.errors import LogUnavailable, UnknownEntry
from core.ids import EntryId, MessageId, TurnId, new_uuid
from core.log.file import FileLog
from core.log.memory import MemoryLog
from core.sessions.facts import Fact, Said, Written
from core.sessions.reading import Recorded
from core.sessions.receipts import Receipt
from core.sessions.session import LOADED_BYTES, Session
from core.sessions.state import SessionState, key_of
from core.sidecars import read_sidecar
from tests.builders import SESSION, a_message, a_picture, retracted, said
from tests.conftest import House
from tests.core.log.disks import FailingDisk

TURN = TurnId("0f0e6a2c-3f7e-4a57-9b57-2f0f6c0f8e11")
START = Written((turn_event(TurnStart(turn_id=TURN), now=1),))
LONG = "x" * 2000


def told(recorded: Sequence[Recorded]) -> list[str]:
    """Lines as short words: ``+1``, ``~1`` for an edit, ``-1``, ``*`` for anything else."""
    words: list[str] = []
    for line in recorded:
        match fact_of(line.entry):
            case MessageCreated(message_id=number, edited=edited):
                words.append(f"{'+' if edited is None else '~'}{number}")
            case MessageDeleted(message_id=number):
                words.append(f"-{number}")
            case _:
                words.append("*")
    return words


def whole(house: House) -> list[str]:
    return told([*house.sessions.of(SESSION).read()])


async def test_a_log_that_cannot_be_read_at_this_moment_may_be_asked_again(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.sessions.of(SESSION).append([said(1)])
    await house.reopen()  # what the log holds is read before anything is appended

    def no_more_files(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as starved:
        starved.setattr(FileLog, "read_back", no_more_files)
        with pytest.raises(LogUnavailable, match="Too many open files"):
            await house.sessions.of(SESSION).append([said(2)])
    await house.sessions.of(SESSION).append([said(2)])
    assert whole(house) == ["+1", "+2"]


# --- each thing once ----------------------------------------------------------------------------------------------

TWICE: list[Fact] = [
    said(1),
    said(1),
    said(1, "b", edited_at=20),
    said(1, "b", edited_at=20),
    retracted(1),
    retracted(1),
]
ONCE = ["+1", "~1", "-1"]


async def test_what_is_told_twice_in_one_batch_is_written_once(house: House):
    assert told(await house.sessions.of(SESSION).append(TWICE)) == ONCE
    assert whole(house) == ONCE


async def test_what_is_told_twice_in_different_batches_is_written_once(house: House):
    session = house.sessions.of(SESSION)
    answers = [told(await session.append([fact])) for fact in TWICE]
    assert answers == [["+1"], [], ["~1"], [], ["-1"], []]


async def test_what_is_told_twice_at_the_same_time_is_written_once_and_each_hears_what_was_its_own(house: House):
    session = house.sessions.of(SESSION)
    answers = await asyncio.gather(*(session.append([fact]) for fact in TWICE))
    assert [told(answer) for answer in answers] == [["+1"], [], ["~1"], [], ["-1"], []]
    assert whole(house) == ONCE


async def test_what_was_told_before_a_restart_is_not_written_again(house: House):
    await house.sessions.of(SESSION).append(TWICE[:4])
    await house.reopen()
    assert told(await house.sessions.of(SESSION).append(TWICE)) == ["-1"]
    await house.reopen()
    assert told(await house.sessions.of(SESSION).append(TWICE)) == []


async def test_what_memory_has_forgotten_is_looked_up_before_it_is_decided(house: House):
    session = house.sessions.of(SESSION)
    await session.append([said(1), said(2), said(3, "b", edited_at=20), retracted(4), said(5)])
    await session.append([said(number, LONG) for number in range(1000, 1000 + LOADED_BYTES // 2000 + 50)])
    await house.reopen()
    session = house.sessions.of(SESSION)
    again = [said(1), said(3, "b", edited_at=20), said(4), retracted(4), retracted(2), said(5, "c", edited_at=30)]
    assert not (await session.state()).complete
    assert told(await session.append(again)) == ["-2", "~5"]
    assert told(await session.append([said(2), said(5), said(5, "c", edited_at=30)])) == []
    (edit,) = await session.append([said(5, "d", edited_at=40)])
    fact = fact_of(edit.entry)
    assert isinstance(fact, MessageCreated)
    assert fact.edited is not None
    assert fact.edited.revision == 2


async def test_a_message_that_only_an_edit_of_is_remembered_is_not_written_again(house: House):
    session = house.sessions.of(SESSION)
    await session.append([said(1)])
    await session.append([said(number, LONG) for number in range(1000, 1000 + LOADED_BYTES // 2000 + 50)])
    await session.append([said(1, "b", edited_at=20)])
    await house.reopen()
    assert told(await house.sessions.of(SESSION).append([said(1), said(1, "b", edited_at=20)])) == []


async def test_a_batch_larger_than_memory_is_still_decided_as_a_whole(house: House):
    session = house.sessions.of(SESSION)
    many = [said(number) for number in range(1, 4500)]
    await session.append(many[:10])
    assert len(await session.append([*many, *many])) == 4489
    state = await session.state()
    assert not state.complete
    assert await session.append([many[0], many[11], many[-1]]) == []
    assert len(whole(house)) == 4499


async def test_a_message_is_found_in_the_log_though_memory_never_held_it(house: House):
    session = house.sessions.of(SESSION)
    await session.append([said(1), said(1, "b", edited_at=20), retracted(2)])
    await session.append([said(number, LONG) for number in range(1000, 1000 + LOADED_BYTES // 2000 + 50)])
    await house.reopen()
    session = house.sessions.of(SESSION)
    known = await session.standing(key_of(a_message(1)))
    gone = await session.standing(key_of(a_message(2)))
    assert known is not None
    assert (known.author, known.revision, known.edited_at, known.deleted) == ("11", 1, 20, False)
    assert gone is not None
    assert gone.deleted
    assert await session.standing(key_of(a_message(3))) is None


# --- what stands only further up than memory reaches --------------------------------------------------------------

FILLER = LOADED_BYTES // 2000 + 50


async def restarted_behind(house: House, *facts: Fact) -> Session:
    """A session whose log ends with more than memory folds, and these facts at the very end."""
    await house.sessions.of(SESSION).append([*[said(number, LONG) for number in range(10, 10 + FILLER)], *facts])
    await house.reopen()
    session = house.sessions.of(SESSION)
    assert not (await session.state()).complete
    return session


async def test_a_message_above_a_gap_that_was_filled_later_is_not_written_again(house: House):
    """The log's end then holds lower numbers than stand further up."""
    await house.sessions.of(SESSION).append([said(100_000), said(100_001, "b", edited_at=20)])
    session = await restarted_behind(house)
    assert told(await session.append([said(100_000), said(100_001, "b", edited_at=20)])) == []
    assert told(await session.append([said(100_001), said(100_002)])) == ["+100001", "+100002"]


async def test_a_message_above_a_long_turn_is_not_written_again(house: House):
    """The log's end then holds no message at all."""
    session = house.sessions.of(SESSION)
    await session.append([said(7)])
    lines = [
        message_entry(UserMessage(id=new_uuid(), timestamp=1, content=raw_json(LONG)), now=1) for _ in range(FILLER)
    ]
    await session.append([Written(tuple(lines))])
    await house.reopen()
    session = house.sessions.of(SESSION)
    assert told(await session.append([said(7), said(8)])) == ["+8"]
    session.forget()
    assert told(await session.append([said(7), said(8), said(9)])) == ["+9"]


async def test_an_edit_above_its_message_counts_though_memory_has_the_message(house: House):
    """An edit may be told first, and the message long after it (log-format 7.1)."""
    await house.sessions.of(SESSION).append([said(5, "b", edited_at=20)])
    session = await restarted_behind(house, said(5))
    standing = await session.standing(key_of(a_message(5)))
    assert standing is not None
    assert (standing.revision, standing.edited_at) == (1, 20)
    assert told(await session.append([said(5, "b", edited_at=20), said(5, "a", edited_at=10)])) == []
    (edit,) = await session.append([said(5, "c", edited_at=30)])
    assert edit.entry.data.data.edited.revision == 2


async def test_two_edits_of_one_moment_are_known_though_only_one_is_in_memory(house: House):
    await house.sessions.of(SESSION).append([said(5), said(5, "b", edited_at=20)])
    session = await restarted_behind(house, said(5, "c", edited_at=20))
    assert told(await session.append([said(5, "b", edited_at=20), said(5, "c", edited_at=20)])) == []


# --- media --------------------------------------------------------------------------------------------------------


async def test_a_line_with_media_never_points_at_nothing(house: House):
    picture = a_picture(1)
    recorded = await house.sessions.of(SESSION).append([Said(a_message(1), (picture,))])
    assert told(recorded) == ["+1", "*"]
    path = house.sessions.folder(SESSION) / "resources" / "assets" / f"{picture.asset}.json"
    sidecar = read_sidecar(path.read_bytes())
    assert sidecar.id == sidecar.name == picture.asset
    assert sidecar.ref == picture.ref
    assert b"://" not in path.read_bytes()


# --- turns --------------------------------------------------------------------------------------------------------


async def test_what_arrives_during_a_turn_is_written_at_once_and_bears_its_id(house: House):
    session = house.sessions.of(SESSION)
    await session.append([START])
    (line,) = await session.append([said(1)])
    assert line.entry.turn_id == TURN


async def test_a_turn_found_open_is_closed_as_interrupted_before_anything_else_is_written(house: House):
    await house.sessions.of(SESSION).append([START, said(1)])
    await house.reopen()
    session = house.sessions.of(SESSION)
    assert (await session.state()).open_turn == TURN
    (line,) = await session.append([said(2)])
    assert line.entry.turn_id is None
    *_, end, last = [recorded.entry for recorded in session.read()]
    assert isinstance(end.data, TurnFailed)
    assert end.data.error is not None
    assert (end.turn_id, end.data.error.name) == (TURN, "Interrupted")
    assert last == line.entry
    await house.reopen()
    await house.sessions.of(SESSION).append([said(3)])
    assert whole(house) == ["*", "+1", "*", "+2", "+3"]


async def test_a_turn_of_ours_is_not_taken_for_an_interrupted_one_when_memory_was_let_go(house: House):
    session = house.sessions.of(SESSION)
    await session.append([START])
    session.forget()
    (line,) = await session.append([said(1)])
    assert line.entry.turn_id == TURN
    assert whole(house) == ["*", "+1"]


async def test_a_turn_found_open_is_closed_though_memory_was_let_go_before_the_first_line(house: House):
    await house.sessions.of(SESSION).append([START])
    await house.reopen()
    session = house.sessions.of(SESSION)
    await session.state()
    session.forget()
    (line,) = await session.append([said(1)])
    assert line.entry.turn_id is None


# --- following ----------------------------------------------------------------------------------------------------


async def test_a_follower_gets_every_line_once_and_in_order_while_others_append(house: House):
    session = house.sessions.of(SESSION)
    await session.append([said(1), said(2)])
    got: list[int] = []

    async def follow() -> None:
        async for recorded in session.follow():
            got.append(recorded.end)
            if len(got) == 602:
                return

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(follow())
        tasks.create_task(follow_late(session))
        for number in range(3, 603):
            waiting = session.append([said(number)])
            if number % 7 == 0:
                await waiting
    assert got == [recorded.end for recorded in session.read()]


async def follow_late(session: Session) -> None:
    """A second one that begins in the middle: it gets the rest."""
    await asyncio.sleep(0)
    start = session.size
    expected = 0
    async for recorded in session.follow(start):
        assert recorded.start >= expected
        expected = recorded.end
        if told([recorded]) == ["+602"]:
            return


async def test_a_follower_goes_on_after_the_entry_that_it_names(house: House):
    session = house.sessions.of(SESSION)
    recorded = await session.append([said(number) for number in range(1, 6)])
    assert await session.position_after(recorded[1].entry.id) == recorded[1].end
    assert await session.resume_from(Receipt(recorded[1].entry.id, recorded[1].end)) == recorded[1].end
    assert await session.resume_from(Receipt(recorded[1].entry.id, 3)) == recorded[1].end, "the file was repaired"
    assert await session.resume_from(Receipt(EntryId("gone"), recorded[1].end)) == 0
    assert await session.resume_from(None) == 0
    with pytest.raises(UnknownEntry):
        await session.position_after(EntryId("gone"))


async def test_a_bad_line_is_skipped_and_no_other_is_lost(house: House):
    folder = house.sessions.folder(SESSION)
    await house.sessions.of(SESSION).append([said(1)])
    await house.close()
    with (folder / "events.jsonl").open("ab") as file:
        file.write(b'{"id":"b"\n\n' + b"\xff" * 10 + b'\n{"id":"torn')
    await house.open()
    session = house.sessions.of(SESSION)
    following = session.follow()
    assert told([await anext(following)]) == ["+1"]
    assert told(await session.append([said(1), said(2)])) == ["+2"]
    assert told([await anext(following)]) == ["+2"]
    assert whole(house) == ["+1", "+2"]


# --- failures -----------------------------------------------------------------------------------------------------


async def test_an_append_that_failed_leaves_no_memory_ahead_of_the_file(tmp_path: Path):
    full = False

    def fault(_number: int, name: str) -> int | None:
        return errno.ENOSPC if full and name == "write_at" else None

    house = House(tmp_path, FailingDisk(fault))
    await house.open()
    session = house.sessions.of(SESSION)
    await session.append([said(1)])
    full = True
    facts: list[Fact] = [said(2), said(1, "b", edited_at=20), START, Said(a_message(3), (a_picture(3),))]
    answers = await asyncio.gather(*(session.append([fact]) for fact in facts), return_exceptions=True)
    assert [type(answer) for answer in answers] == [LogUnavailable] * 4
    state = await session.state()
    assert state.standing(key_of(a_message(2))) is None
    assert state.open_turn is None
    assert whole(house) == ["+1"]
    full = False
    assert told(await session.append([*facts, *facts])) == ["+2", "~1", "*", "+3", "*", "*"]
    await house.close()
    await house.open()
    assert whole(house) == ["+1", "+2", "~1", "*", "+3", "*", "*"]
    await house.close()


async def test_a_fact_that_cannot_be_decided_is_told_to_who_handed_it_in_and_the_next_goes_on(house: House):
    def broken(_state: object) -> tuple[()]:
        raise ZeroDivisionError

    session = house.sessions.of(SESSION)
    with pytest.raises(ZeroDivisionError):
        await session.append([Written(broken)])
    assert told(await session.append([said(1)])) == ["+1"]


async def test_listeners_hear_of_each_durable_line_in_file_order(house: House):
    heard: list[Recorded] = []
    house.sessions.listen(lambda _session, added: heard.extend(added))
    session = house.sessions.of(SESSION)
    await asyncio.gather(*(session.append([said(number)]) for number in range(1, 50)))
    assert heard == [*session.read()]


# --- against a plain model ----------------------------------------------------------------------------------------


class AgainstAModel(RuleBasedStateMachine):
    """A session told anything, restarted and made to forget at will, against a few dictionaries."""

    numbers = Bundle("numbers")

    @initialize()
    def begin(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.log = MemoryLog()
        self.restart()
        self.original: set[int] = set()
        self.edits: dict[int, list[tuple[int, str]]] = {}
        self.deleted: set[int] = set()
        self.expected: list[str] = []

    @rule()
    def restart(self) -> None:
        self.session = Session(SESSION, self.log, on_append=lambda _session, _added: None, spawn=self.spawn)

    def spawn(self, work: Coroutine[Any, Any, None], _name: str) -> None:
        self.loop.create_task(work)

    @rule()
    def forget(self) -> None:
        self.session.forget()

    @rule(most=st.integers(0, 3))
    def let_go(self, most: int) -> None:
        self.loop.run_until_complete(self.session.state()).trim(most)

    @rule(target=numbers, number=st.integers(1, 6))
    def name(self, number: int) -> int:
        return number

    @rule(number=numbers, times=st.integers(1, 2))
    def say(self, number: int, times: int) -> None:
        self.tell([said(number)] * times)
        if number not in self.deleted | self.original:
            self.original.add(number)
            self.expected.append(f"+{number}")

    @rule(number=numbers, content=st.sampled_from("abc"), at=st.integers(1, 3))
    def edit(self, number: int, content: str, at: int) -> None:
        self.tell([said(number, content, edited_at=at)])
        edits = self.edits.setdefault(number, [])
        newest = max((time for time, _ in edits), default=0)
        if number not in self.deleted and at >= newest and (at, content) not in edits:
            edits.append((at, content))
            self.expected.append(f"~{number}")

    @rule(number=numbers)
    def retract(self, number: int) -> None:
        self.tell([retracted(number)])
        if number not in self.deleted:
            self.deleted.add(number)
            self.expected.append(f"-{number}")

    def tell(self, facts: Sequence[Fact]) -> None:
        async def append() -> None:
            await self.session.append(facts)
            await self.session.settle()

        self.loop.run_until_complete(append())

    @invariant()
    def the_log_is_what_the_model_says(self) -> None:
        if hasattr(self, "expected"):
            assert told([*self.session.read()]) == self.expected

    def teardown(self) -> None:
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()


AgainstAModel.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestASessionAgainstAModel = AgainstAModel.TestCase


async def test_facts_that_cannot_be_written_fail_alone_and_leave_no_trace_in_memory(house: House) -> None:
    def broken(_state: SessionState) -> tuple[AnyEntry, ...]:
        raise ZeroDivisionError

    session = house.sessions.of(SESSION)
    await session.append([said(1)])
    good = session.append([said(2)])
    bad = session.append([said(3), Written(broken)])
    again = session.append([said(2), said(3)])
    assert len(await good) == 1
    with pytest.raises(ZeroDivisionError):
        await bad
    assert [recorded.entry.data.data.message_id for recorded in await again] == ["3"]


async def test_a_quote_without_content_is_filled_from_the_log_unless_it_was_retracted(house: House) -> None:
    session = house.sessions.of(SESSION)
    picture = '<img src="asset://x" title="cat"/>'
    bare = Quote(id=MessageId("1"))
    await session.append([said(1, "tea?"), said(1, f"coffee? {picture}", edited_at=1_793_600_005_000)])
    [recorded] = await session.append([said(2, "yes", quote=bare)])
    quote = recorded.entry.data.data.quote
    assert (quote.content, quote.user.name) == ('coffee? <img title="cat"/>', "Mona")
    await session.append([retracted(1)])
    together = [session.append([said(10, "both at once")]), session.append([said(11, quote=Quote(id=MessageId("10")))])]
    [recorded] = (await asyncio.gather(*together))[1]
    assert recorded.entry.data.data.quote.content == "both at once"
    for number, quoted in ((3, bare), (4, Quote(id=MessageId("77")))):
        [recorded] = await session.append([said(number, "yes", quote=quoted)])
        assert recorded.entry.data.data.quote == quoted
