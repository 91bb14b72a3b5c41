"""A press is answered in time, whatever the disk does, and says what became of it."""

import asyncio
import time
from dataclasses import dataclass, field

import pytest

from core.confirmations.life import Given
from core.confirmations.press import NOT_RECORDED, ONLY_PEOPLE
from core.confirmations.record import Question
from core.ids import Control, MessageId, SessionId
from tests.builders import MONA, PIET, SESSION, a_confirmation, a_task, an_ask
from tests.conftest import Until
from tests.core.confirmations.bench import Bench

YES, NO = Given(option=0), Given(option=1)
FIRST = Control(a_task(1), 0, "0")


@dataclass
class Told:
    """What a person who pressed was told, and after how many seconds."""

    words: list[str] = field(default_factory=list[str])
    started: float = field(default_factory=time.monotonic)
    after: float = 0.0

    async def accepted(self) -> None:
        self._say("accepted")

    async def waiting(self) -> None:
        self._say("waiting")

    async def refused(self, why: str, *, waited: bool) -> None:
        self._say(f"{'late: ' if waited else ''}{why}")

    def _say(self, what: str) -> None:
        if not self.words:
            self.after = time.monotonic() - self.started
        self.words.append(what)


async def press(bench: Bench, what: Given = YES, by: object = MONA, place: SessionId = SESSION) -> Told:
    told = Told()
    await bench.answers.press(FIRST, what, by, place, told)  # pyright: ignore[reportArgumentType] - or None
    return told


async def test_a_press_that_counts_is_accepted_once_it_is_written(bench: Bench) -> None:
    await bench.shown(a_confirmation(a_task(1)))
    assert (await press(bench)).words == ["accepted"]


async def test_a_slow_disk_is_waited_for_and_the_presser_is_told_within_a_second(bench: Bench, until: Until) -> None:
    await bench.shown(a_confirmation(a_task(1), approvers="anyone"))
    bench.folder.pause = 1.3
    first, second = await asyncio.gather(press(bench), press(bench, NO, PIET))
    assert first.words == ["waiting"]
    assert second.words == ["waiting", "late: That is decided already: approved by Mona."]
    assert max(first.after, second.after) < 1.2
    bench.folder.pause = 0
    await until(lambda: bench.runtime.resolved)
    assert [one.status for one in bench.runtime.resolved] == ["approved"]


async def test_a_disk_that_refuses_decides_nothing_and_says_so(bench: Bench) -> None:
    await bench.shown(a_confirmation(a_task(1)))
    bench.folder.full = True
    assert (await press(bench)).words == [NOT_RECORDED]
    assert len(bench.chat.usable()) == 1, "the prompt stays"
    bench.folder.pause = 1.2
    assert (await press(bench)).words == ["waiting", f"late: {NOT_RECORDED}"]
    bench.folder.full, bench.folder.pause = False, 0
    assert (await press(bench)).words == ["accepted"]


@pytest.mark.parametrize(
    ("what", "by", "place", "why"),
    [
        (YES, None, SESSION, ONLY_PEOPLE),
        (YES, PIET, SESSION, "Only Mona or an admin can answer this."),
        (YES, MONA, SessionId("dc-5"), "That was asked in another chat, and is answered there."),
        (Given(option=5), MONA, SESSION, "That is no choice here."),
    ],
)
async def test_a_press_that_does_not_count_is_told_why(
    bench: Bench, what: Given, by: object, place: SessionId, why: str
) -> None:
    await bench.shown(a_confirmation(a_task(1)))
    assert (await press(bench, what, by, place)).words == [why]
    assert bench.now(a_task(1)).is_open


async def test_a_press_on_something_that_is_not_known_is_told_so(bench: Bench) -> None:
    assert (await press(bench)).words == ["That is not known here any more."]


async def test_a_late_press_closes_the_prompt_that_was_left_behind(bench: Bench, until: Until) -> None:
    await bench.shown(a_confirmation(a_task(1)))
    await press(bench)
    await until(lambda: not bench.desk.records())
    stray = MessageId("6000")
    told = await press(bench, Given(option=0, pressed=stray))
    assert told.words == ["That is decided already: approved by Mona."]
    await until(lambda: stray in bench.chat.prompts)
    await until(lambda: stray in bench.chat.prompts)
    assert "Approved" in bench.chat.prompts[stray][-1].outcome


async def test_whoever_is_cut_off_after_pressing_has_pressed(bench: Bench) -> None:
    await bench.shown(a_confirmation(a_task(1)))
    bench.folder.pause = 0.2
    pressing = asyncio.create_task(press(bench))
    await asyncio.sleep(0.05)
    pressing.cancel()
    assert (await bench.desk.decided(a_task(1), 5)).status == "approved"


async def test_a_form_is_refused_beforehand_and_has_a_title(bench: Bench) -> None:
    await bench.shown(an_ask(Question(question="a?"), Question(question="b?"), task=a_task(1)))
    assert await bench.answers.check(FIRST, MONA, SESSION) is None
    assert await bench.answers.check(FIRST, PIET, SESSION) == "Only Mona or an admin can answer this."
    assert await bench.answers.check(FIRST, None, SESSION) == ONLY_PEOPLE
    assert [bench.answers.title(Control(a_task(1), n, "f")) for n in (0, 1, 2)] == ["a?", "b?", ""]
    assert bench.answers.title(Control(a_task(9), 0, "f")) == ""
