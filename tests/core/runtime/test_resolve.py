"""What was decided is told to the runtime until it takes it, and then put away."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest

from bots.sandbox.runtime import RuntimeSandbox
from core.archive.decisions import Decisions
from core.confirmations import life
from core.confirmations.desk import Desk
from core.confirmations.folder import Folder
from core.confirmations.leave import Leave
from core.confirmations.record import Answer, Record
from core.errors import RuntimeUnavailable, StoreUnavailable
from core.health import Health, Troubles
from core.ids import SessionId, TaskHash
from core.runtime.http import HttpRuntime, resolution
from core.runtime.port import Runtime
from core.runtime.resolve import Resolve
from tests.builders import MONA, OPERATOR, SESSION, a_confirmation, a_task, an_ask
from tests.conftest import House, Until
from tests.fakes import FakeRuntime


class Forgetful(Decisions):
    """A database that fails so many times."""

    fails = 0

    async def put_decision(self, task: TaskHash, session: SessionId, status: str, decided_at: int, record: str) -> None:
        if self.fails:
            self.fails -= 1
            raise StoreUnavailable("disk I/O error")
        await super().put_decision(task, session, status, decided_at, record)


class Office:
    """A desk, and somebody who tells the runtime: ``far`` where that is given, else ``runtime``."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.runtime = FakeRuntime()
        self.far: Runtime | None = None
        self.health = Health("decisions", problem=None)

    async def start(self) -> None:
        self.house.sessions.folder(SESSION).mkdir(parents=True, exist_ok=True)
        self.decisions = Forgetful(self.house.store)
        self.desk = Desk(Folder(self.house.sessions.folder), self.decisions, Leave(self.decisions))
        self._work = self.desk.at_work([SESSION])
        await self._work.__aenter__()
        self.resolve = Resolve(self.desk, self.far or self.runtime, Troubles(self.health))
        self.resolve.start()

    async def stop(self) -> None:
        await self.resolve.stop()
        await self._work.__aexit__(None, None, None)

    async def decide(self, number: int = 1) -> Record:
        record = await self.desk.open(a_confirmation(a_task(number)))
        return await self.desk.choose(record.task_hash, "yes", OPERATOR)

    async def close(self, number: int = 1) -> None:
        await self.desk.insist(a_task(number), life.closed)


@pytest.fixture
async def office(house: House) -> AsyncIterator[Office]:
    office = Office(house)
    await office.start()
    yield office
    await office.stop()


async def test_a_decision_is_told_marked_and_filed_once_its_prompt_is_closed(office: Office, until: Until) -> None:
    await office.decide()
    await until(lambda: (found := office.desk.get(a_task(1))) is not None and found.resolved_at)
    assert [(one.status, one.by) for one in office.runtime.resolved] == [("approved", OPERATOR)]
    assert office.desk.get(a_task(1)) is not None, "its prompt still stands open"
    await office.close()
    await until(lambda: office.desk.get(a_task(1)) is None)
    assert len(office.runtime.resolved) == 1
    assert (await office.desk.find(a_task(1))).resolved_at is not None


async def test_what_is_closed_before_it_is_told_is_filed_after_it_is_told(office: Office, until: Until) -> None:
    office.runtime.deaf = [RuntimeUnavailable("busy", retry_after=0.1)]
    await office.decide()
    await office.close()
    assert office.desk.get(a_task(1)) is not None
    await until(lambda: office.desk.get(a_task(1)) is None)
    assert len(office.runtime.resolved) == 1


async def test_a_runtime_that_is_away_is_told_again_and_the_trouble_shows_meanwhile(
    office: Office, until: Until
) -> None:
    office.runtime.deaf = [RuntimeUnavailable("away", retry_after=0.1)] * 4
    await office.decide()
    await until(lambda: office.health.problem)
    await until(lambda: office.runtime.resolved)
    await until(lambda: office.health.problem is None)
    assert len(office.runtime.resolved) == 1


async def test_one_that_is_not_taken_holds_up_no_other(office: Office, until: Until) -> None:
    office.runtime.deaf = [RuntimeUnavailable("busy", retry_after=5.0)] * 20
    for number in range(1, 21):
        await office.decide(number)
    await until(lambda: not office.runtime.deaf)
    await office.decide(21)
    await until(lambda: office.runtime.resolved)
    assert office.runtime.resolved[0].task_hash == a_task(21)


async def test_a_stop_in_between_tells_it_again_after_the_start(office: Office, until: Until) -> None:
    office.runtime.deaf = [RuntimeUnavailable("away")] * 1000
    await office.decide()
    await until(lambda: len(office.runtime.deaf) < 1000)
    await office.stop()
    office.runtime.deaf = []
    await office.start()
    await until(lambda: office.runtime.resolved)
    assert office.runtime.resolved[0].by == OPERATOR


async def test_what_was_told_and_closed_before_a_stop_is_only_filed(office: Office, until: Until) -> None:
    office.decisions.fails = 1000
    await office.decide()
    await office.close()
    await until(lambda: office.decisions.fails < 1000)
    await office.stop()
    assert (office.house.sessions.folder(SESSION) / "pending" / f"{a_task(1)}.json").exists()
    await office.start()
    await until(lambda: office.desk.get(a_task(1)) is None)
    assert len(office.runtime.resolved) == 1
    assert (await office.desk.find(a_task(1))).status == "approved"


async def test_a_database_that_fails_is_asked_again_and_the_file_stays_till_then(office: Office, until: Until) -> None:
    office.decisions.fails = 1
    await office.decide()
    await office.close()
    await asyncio.sleep(0.1)
    assert (office.house.sessions.folder(SESSION) / "pending" / f"{a_task(1)}.json").exists()
    await until(lambda: office.desk.get(a_task(1)) is None)


async def test_without_a_runtime_everything_is_filed_all_the_same(house: House, until: Until) -> None:
    office = Office(house)
    await office.start()
    await office.resolve.stop()
    office.resolve = Resolve(office.desk, None)
    office.resolve.start()
    await office.decide()
    await office.close()
    await until(lambda: office.desk.get(a_task(1)) is None)
    await office.stop()


def test_the_body_says_what_there_is_to_say_and_nothing_else() -> None:
    gone = life.expired(a_confirmation(a_task(1), expires_at=2_000), 2_500)
    assert resolution(gone) == {"sessionId": SESSION, "taskHash": a_task(1), "status": "expired", "at": 2_500}
    yes = life.chosen(a_confirmation(a_task(1)), "yes", MONA, 2_500)
    assert resolution(yes) == {
        "sessionId": SESSION,
        "taskHash": a_task(1),
        "status": "approved",
        "choice": "yes",
        "by": {"platform": "discord", "id": "11", "name": "Mona"},
        "at": 2_500,
    }
    answer = Answer(question="Which one?", answer="that")
    said = life.answered(an_ask(task=a_task(1)), [answer], OPERATOR, 2_500)
    assert resolution(said)["answers"] == [{"question": "Which one?", "answer": "that"}]


@pytest.fixture
async def far() -> AsyncIterator[RuntimeSandbox]:
    async with RuntimeSandbox() as server:
        yield server


async def told_over_http(house: House, far: RuntimeSandbox, until: Until) -> None:
    """Decide and close; over when it is filed."""
    office = Office(house)
    async with aiohttp.ClientSession() as client:
        office.far = HttpRuntime(client, far.url, far.token)
        await office.start()
        await office.decide()
        await office.close()
        await until(lambda: office.desk.get(a_task(1)) is None)
        await office.stop()


async def test_over_http_a_decision_is_told_with_its_hash_as_key(
    house: House, far: RuntimeSandbox, until: Until
) -> None:
    await told_over_http(house, far, until)
    [call] = far.calls
    assert (call.path, call.status, call.key) == ("/resolve", 204, a_task(1))
    at = call.body.pop("at")
    assert isinstance(at, int)
    assert call.body == {
        "sessionId": SESSION,
        "taskHash": a_task(1),
        "status": "approved",
        "choice": "yes",
        "by": OPERATOR.model_dump(mode="json", exclude_none=True),
    }


async def test_over_http_a_runtime_that_no_longer_waits_counts_as_told(
    house: House, far: RuntimeSandbox, until: Until
) -> None:
    far.fail("/resolve", 410, times=5)
    await told_over_http(house, far, until)
    assert [call.status for call in far.calls] == [410]


@pytest.mark.parametrize("status", [400, 401, 404, 409, 422, 429, 503])
async def test_over_http_every_other_answer_is_followed_by_the_same_call_again(
    house: House, far: RuntimeSandbox, until: Until, status: int
) -> None:
    far.fail("/resolve", status, headers={"Retry-After": "0"})
    await told_over_http(house, far, until)
    assert [call.status for call in far.calls] == [status, 204]
    first, second = far.calls
    assert (first.body, first.key) == (second.body, second.key)
