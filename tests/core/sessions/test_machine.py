"""Sessions over a real journal and real files, told anything, killed anywhere, against plain lists.

Each fact is in the log exactly once, in the order of the calls; what was acknowledged is there, whatever happens; what
was refused may come to light after a crash, once. A long run, of so many times the ordinary number of examples:
``TORTURE=200 pytest --timeout=0 tests/core/sessions/test_machine.py``.
"""

import asyncio
import errno
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from core.audit import check
from core.codec import raw_json
from core.entries import MessageCreated, MessageDeleted, UserMessage, fact_of, message_entry
from core.errors import LogUnavailable
from core.ids import ChannelId, SessionId, discord_session, new_uuid
from core.log.journal import Journal
from core.log.view import View
from core.sessions import directory, session
from core.sessions.directory import Sessions
from core.sessions.facts import Fact, Said, Written
from core.sessions.reading import Recorded
from core.sessions.receipts import Receipt
from tests.builders import a_message, a_picture, retracted
from tests.core.log.disks import PowerlessDisk, fails_at

ROUNDS = int(os.environ.get("TORTURE") or "1")
SESSIONS = tuple(discord_session(ChannelId(str(number))) for number in range(1, 5))
SMALL = {(directory, "MOST_REMEMBERED"): 2, (session, "LOADED_BYTES"): 1500}
"""So that memory forgets early: sessions in memory, bytes of a log's end that are folded."""
TURN_OVER_AT = 3000
IN_MEMORY = Path("/dev/shm")
"""Here the test says what survives a power cut, so no device has to."""

NUMBER = st.integers(1, 6)
PLACE = st.sampled_from(SESSIONS)


class Told(NamedTuple):
    """A fact as the model has it: ``what`` is ``+``, ``~``, ``-`` or ``*``; of an edit also its time and content."""

    what: str
    number: int
    at: int = 0
    content: str = ""


TOLD = st.one_of(
    st.builds(Told, st.just("+"), NUMBER, st.just(0), st.sampled_from(["", "picture"])),
    st.builds(Told, st.just("~"), NUMBER, st.integers(1, 3), st.sampled_from("ab")),
    st.builds(Told, st.just("-"), NUMBER, st.just(0), st.just("")),
    st.builds(Told, st.just("*"), st.integers(0, 10**9), st.just(0), st.just("")),
)


def fact_for(told: Told) -> Fact:
    match told.what:
        case "+":
            media = (a_picture(told.number),) if told.content else ()
            return Said(a_message(told.number, f"said {told.number}", at=0), media)
        case "~":
            return Said(a_message(told.number, told.content, at=0), edited_at=told.at)
        case "-":
            return retracted(told.number)
        case _:
            line = UserMessage(id=new_uuid(), timestamp=1, content=raw_json(f"{told.number}"))
            return Written((message_entry(line, now=1),))


def told_by(recorded: Recorded) -> Told | None:
    """What a line says; None for a line of media, which says nothing of its own."""
    match fact_of(recorded.entry):
        case MessageCreated(message_id=number, edited=None):
            return Told("+", int(number))
        case MessageCreated(message_id=number, edited=edited, content=content):
            return Told("~", int(number), edited.timestamp if edited else 0, content)
        case MessageDeleted(message_id=number):
            return Told("-", int(number))
        case None if isinstance(recorded.entry.data, UserMessage):
            return Told("*", int(bytes(recorded.entry.data.content).strip(b'"')))
        case _:
            return None


class Disk(PowerlessDisk):
    """Fails at one call from now, once or for good, and knows what a power cut would leave."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._durable = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def sync(self, descriptor: int) -> None:
        """What is durable is ours to say: the real device would only take its time."""
        self._call("sync")
        path = self._paths[descriptor]
        self._durable[path] = path.read_bytes()

    def sync_folder(self, path: Path) -> None:
        self._call("sync_folder")

    def fail(self, after: int, code: int, *, for_good: bool) -> None:
        at = self.calls + after

        def fault(number: int, _name: str) -> int | None:
            return code if number == at or (for_good and number > at) else None

        self.fault = fault

    def heal(self) -> None:
        self.fault = fails_at()


class Log:
    """What one log has to hold."""

    def __init__(self) -> None:
        self.lines: list[Told] = []
        self.unsure: list[Told] = []
        """Handed in, and refused: a crash may bring it to light all the same."""
        self.cut_off = False
        """A crash may have left some bytes of it, which the next append closes off (log-format 12)."""

    def calls_for(self, told: Told) -> bool:
        same = [line for line in self.lines if line.number == told.number and line.what != "*"]
        if told.what == "*":
            return True
        if any(line.what == "-" for line in same):
            return False
        if told.what != "~":
            return all(line.what != told.what for line in same)
        edits = [(line.at, line.content) for line in same if line.what == "~"]
        newest = max((at for at, _ in edits), default=0)
        return told.at >= newest and (told.at, told.content) not in edits

    def take(self, told: Sequence[Told]) -> list[Told]:
        """What of this is new, and stands in the log from now on."""
        new: list[Told] = []
        for fact in told:
            if self.calls_for(fact):
                # Content tells versions of an edit apart; of a message it only says whether media come along.
                self.lines.append(fact._replace(content="") if fact.what == "+" else fact)
                new.append(self.lines[-1])
                self.cut_off = False
        return new

    def found(self, lines: Sequence[Told]) -> None:
        """After a crash: what was acknowledged, then some of what was not, each still once."""
        assert list(lines[: len(self.lines)]) == self.lines, "acknowledged is present"
        waiting = iter(self.unsure)
        for line in lines[len(self.lines) :]:
            assert any(line.what == told.what and line[:3] == told[:3] for told in waiting), "nothing that nobody said"
            assert self.take([line]) == [line], "exactly once"
        self.cut_off = bool(self.unsure)
        self.unsure = []


class Everything(RuleBasedStateMachine):
    """Four sessions of one data folder."""

    @initialize()
    def begin(self) -> None:
        self.before = {place: getattr(*place) for place in SMALL}
        for place, value in SMALL.items():
            setattr(*place, value)
        self.loop = asyncio.new_event_loop()
        self.place = tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None)
        self.houses = 0
        self.folder = Path(self.place.name) / "0"
        self.folder.mkdir()
        self.logs = {session: Log() for session in SESSIONS}
        self.open()

    def run(self, what: Awaitable[Any]) -> Any:
        async def wait() -> Any:
            async with asyncio.timeout(20):
                return await what

        return self.loop.run_until_complete(wait())

    def open(self) -> None:
        self.disk = Disk(self.folder)
        self.journal = Journal(self.folder, disk=self.disk, turn_over_at=TURN_OVER_AT)
        self.journal.start()
        self.sessions = Sessions(self.folder, self.journal)
        for place, log in self.logs.items():
            log.found(self.told(self.sessions.of(place).read()))

    def told(self, recorded: Any) -> list[Told]:
        lines = [told_by(line) for line in recorded]
        return [line for line in lines if line is not None]

    # --- telling ------------------------------------------------------------------------------------------------------

    @rule(batches=st.lists(st.tuples(PLACE, st.lists(TOLD, min_size=1, max_size=4)), min_size=1, max_size=6))
    def tell(self, batches: list[tuple[SessionId, list[Told]]]) -> None:
        """Several appends at once, of which each may hold and repeat anything."""

        async def append() -> list[Any]:
            waiting = [self.sessions.of(place).append([fact_for(told) for told in facts]) for place, facts in batches]
            answers = await asyncio.gather(*waiting, return_exceptions=True)
            await self.sessions.close()
            return answers

        for (place, facts), answer in zip(batches, self.run(append()), strict=True):
            log = self.logs[place]
            if isinstance(answer, LogUnavailable):
                log.unsure += facts
            else:
                assert not isinstance(answer, BaseException), answer
                assert self.told(answer) == log.take(facts)

    @rule(place=PLACE, told=TOLD, times=st.integers(2, 3))
    def tell_again_and_again(self, place: SessionId, told: Told, times: int) -> None:
        """One fact by several ways at once."""
        self.tell([(place, [told])] * times)

    # --- forgetting ---------------------------------------------------------------------------------------------------

    @rule(place=PLACE, most=st.integers(0, 3))
    def let_go_of_messages(self, place: SessionId, most: int) -> None:
        self.run(self.sessions.of(place).state()).trim(most)

    @rule(place=PLACE)
    def forget(self, place: SessionId) -> None:
        self.sessions.of(place).forget()

    # --- reading ------------------------------------------------------------------------------------------------------

    @rule(place=PLACE, anywhere=st.integers(0, 100))
    def read_from_anywhere(self, place: SessionId, anywhere: int) -> None:
        log = self.sessions.of(place)
        lines = [*log.read()]
        assert [*log.read_back()] == lines[::-1]
        cut = anywhere % (len(lines) + 1)  # not drawn below it: threads make the number of lines no pure choice
        start = lines[cut].start if cut < len(lines) else log.size
        assert [*log.read(start)] == lines[cut:]
        assert [*log.read_back(start)] == lines[:cut][::-1]
        if cut:
            before = lines[cut - 1]
            assert self.run(log.resume_from(Receipt(before.entry.id, before.end))) == before.end
            assert self.run(log.resume_from(Receipt(before.entry.id, max(before.end - 7, 1)))) == before.end

    @rule(place=PLACE, facts=st.lists(TOLD, min_size=1, max_size=3), from_start=st.booleans())
    def follow(self, place: SessionId, facts: list[Told], from_start: bool) -> None:
        """Somebody who follows gets each line once, those that come meanwhile too."""
        log = self.sessions.of(place)
        start = 0 if from_start else log.size
        got: list[Recorded] = []
        grown = asyncio.Event()

        async def follow() -> None:
            async for recorded in log.follow(start):
                got.append(recorded)
                grown.set()

        async def until(expected: list[Recorded]) -> None:
            while len(got) < len(expected):
                grown.clear()
                await grown.wait()

        following = self.loop.create_task(follow())
        try:
            self.tell([(place, facts)])
            self.run(until([*log.read(start)]))
            assert got == [*log.read(start)]
        finally:
            following.cancel()
            self.run(asyncio.wait([following]))

    # --- failing and ending -------------------------------------------------------------------------------------------

    @rule(after=st.integers(1, 8), code=st.sampled_from([errno.EIO, errno.ENOSPC]))
    def let_the_disk_fail_once(self, after: int, code: int) -> None:
        self.disk.fail(after, code, for_good=False)

    @rule()
    def stop_and_open(self) -> None:
        self.disk.heal()
        self.stop()
        if not any(log.unsure for log in self.logs.values()):
            assert (self.folder / ".store" / "journal").stat().st_size == 0
        self.open()

    @rule(
        after=st.integers(1, 12),
        batches=st.lists(st.tuples(PLACE, st.lists(TOLD, min_size=1, max_size=3)), min_size=1, max_size=5),
        again=st.booleans(),
    )
    def die_while_writing(self, after: int, batches: list[tuple[SessionId, list[Told]]], again: bool) -> None:
        """From some call on the process does nothing any more; the platforms tell it again what it did not take."""
        self.disk.fail(after, errno.EIO, for_good=True)
        self.tell(batches)
        self.stop()
        self.open()
        if again:
            self.tell(batches)

    @rule()
    def die_idle(self) -> None:
        """Killed between two writes: the journal is not empty then."""
        self.move_to(partial(shutil.copytree, self.folder))

    @rule()
    def cut_the_power(self) -> None:
        """All that was not synced is gone."""
        self.move_to(partial(self.disk.cut_power, self.folder))

    def move_to(self, fill: Callable[[Path], object]) -> None:
        self.houses += 1
        new = Path(self.place.name) / str(self.houses)
        fill(new)
        new.mkdir(exist_ok=True)
        self.disk.heal()
        self.stop()
        shutil.rmtree(self.folder)
        self.folder = new
        self.open()

    def stop(self) -> None:
        self.run(self.sessions.close())
        self.journal.stop()

    # --- always -------------------------------------------------------------------------------------------------------

    @invariant()
    def each_fact_is_there_once_and_in_order(self) -> None:
        for place, log in getattr(self, "logs", {}).items():
            assert self.told(self.sessions.of(place).read()) == log.lines

    @precondition(lambda self: hasattr(self, "logs"))
    @invariant()
    def the_files_keep_every_rule(self) -> None:
        for place, log in self.logs.items():
            if not log.unsure:  # else what was refused may stand behind the end until the next append
                folder = self.sessions.folder(place)
                with View(folder / "events.jsonl") as view:
                    found = check(view, folder / "resources" / "assets")
                    assert [one for one in found if not (log.cut_off and one.rule == "torn-tail")] == []

    def teardown(self) -> None:
        if not hasattr(self, "loop"):
            return
        self.disk.heal()
        self.stop()
        self.run(self.loop.shutdown_default_executor())
        self.loop.close()
        self.place.cleanup()
        for place, value in self.before.items():
            setattr(*place, value)


TestEverything = Everything.TestCase
TestEverything.settings = settings(max_examples=20 * ROUNDS, stateful_step_count=30, deadline=None)
