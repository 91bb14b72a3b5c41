"""What a runtime refused is handed over again when an operator says so."""

from core.archive.store import Store
from core.errors import RuntimeRefused, RuntimeUnavailable
from core.health import Health
from core.ids import EntryId, SessionId
from core.runtime.deliver import Deliver
from core.runtime.redeliver import Came, Redeliver
from tests.builders import SESSION, retracted, said
from tests.conftest import House
from tests.fakes import FakeRuntime

OTHER = SessionId("tg--100")


async def parked_in(house: House, runtime: FakeRuntime, *numbers: int) -> list[EntryId]:
    """Messages of these numbers in the log, each refused by the runtime. Their entries."""
    deliver = Deliver(runtime, house.store, house.store, Health("runtime"))
    session = house.sessions.of(SESSION)
    for number in numbers:
        await session.append([said(number)])
        runtime.errors.append(RuntimeRefused("422"))
        await deliver.catch_up(session)
    return [entry for _, entry in await house.store.set_aside(None)]


async def test_what_was_parked_is_delivered_each_by_itself_and_is_parked_no_longer(house: House):
    runtime = FakeRuntime()
    entries = await parked_in(house, runtime, 1, 2)
    assert len(entries) == 2
    redeliver = Redeliver(runtime, house.sessions, house.store)
    assert await redeliver.begin(OTHER) == Came()
    assert await redeliver.begin(None) == Came(taken=2)
    assert [(session, len(lines), key) for session, lines, key in runtime.delivered] == [
        (SESSION, 1, entries[0]),
        (SESSION, 1, entries[1]),
    ]
    assert await redeliver.begin(SESSION) == Came()
    assert await house.store.set_aside(None) == []


async def test_what_is_refused_again_stays_parked_and_the_others_go_on(house: House):
    runtime = FakeRuntime()
    entries = await parked_in(house, runtime, 1, 2, 3)
    runtime.errors += [RuntimeRefused("422 again")]
    redeliver = Redeliver(runtime, house.sessions, house.store)
    assert await redeliver.begin(SESSION) == Came(taken=2, refused=1)
    assert await house.store.set_aside(None) == [(SESSION, entries[0])]
    assert await reason(house.store) == "422 again"


async def test_a_runtime_that_is_away_ends_the_round_and_nothing_is_lost(house: House):
    runtime = FakeRuntime()
    entries = await parked_in(house, runtime, 1, 2)
    runtime.errors += [RuntimeUnavailable("it does not answer")]
    redeliver = Redeliver(runtime, house.sessions, house.store)
    assert await redeliver.begin(None) == Came(left=2, problem="it does not answer")
    assert [entry for _, entry in await house.store.set_aside(None)] == entries


async def test_a_message_that_was_taken_back_meanwhile_is_not_told_behind_its_retraction(house: House):
    runtime = FakeRuntime()
    await parked_in(house, runtime, 1)
    await house.sessions.of(SESSION).append([retracted(1)])
    assert await Redeliver(runtime, house.sessions, house.store).begin(None) == Came(taken=1)
    assert runtime.delivered == []


async def reason(store: Store) -> str:
    rows = await store.run(lambda database: database.execute("SELECT record FROM outbox").fetchall())
    return str(rows[0][0])
