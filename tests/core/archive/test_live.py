"""Which turns are alive, by the wall clock and with the real database."""

import sqlite3
import time

from core.archive.live import Live, live_turns
from core.ids import SessionId, new_turn_id
from tests.conftest import House, Until

A, B = SessionId("dc-5"), SessionId("tg--1005~a_b")
TURN = new_turn_id()


def rows(house: House) -> list[tuple[str, int]]:
    with sqlite3.connect(house.folder / ".store" / "history.db") as database:
        found = database.execute("SELECT key, expires_at FROM live").fetchall()
    database.close()
    return found


async def test_a_turn_is_alive_from_its_queueing_to_its_end(house: House) -> None:
    live = Live(house.store)
    await live.start()
    await live.begin(A, TURN)
    ((key, expires_at),) = rows(house)
    assert key == f"action:{A}:{TURN}"
    assert 55_000 < expires_at - time.time() * 1000 <= 60_000
    await live.begin(B, TURN)
    assert await live.active() == {A, B}
    await live.end(A, TURN)
    assert await live.active() == {B}
    live.stop()


async def test_a_key_is_renewed_though_the_event_loop_stands_still(house: House) -> None:
    live = Live(house.store, lifetime_ms=300, renewed_every=0.1)
    await live.start()
    await live.begin(A, TURN)
    time.sleep(0.8)  # noqa: ASYNC251 - that is the point
    assert await live.active() == {A}
    live.stop()


async def test_the_key_of_a_killed_process_runs_out_and_is_swept(house: House, until: Until) -> None:
    killed = Live(house.store, lifetime_ms=50)
    await killed.begin(A, TURN)
    time.sleep(0.06)  # noqa: ASYNC251 - nothing happens meanwhile
    assert await killed.active() == set()
    assert len(rows(house)) == 1
    other = Live(house.store, renewed_every=0.05)
    other._thread.start()  # pyright: ignore[reportPrivateUsage] - without `start`, which removes them at once
    await until(lambda: not rows(house))
    other.stop()


async def test_a_start_removes_what_an_earlier_process_left(house: House) -> None:
    await Live(house.store).begin(A, TURN)
    await house.reopen()
    live = Live(house.store)
    await live.start()
    assert rows(house) == []
    live.stop()


async def test_a_database_that_is_locked_is_tried_again_and_the_turn_goes_on(house: House, until: Until) -> None:
    live = Live(house.store, renewed_every=0.05, tried_every=0.05)
    await live.start()
    await house.store.run(lambda database: database.execute("PRAGMA busy_timeout = 20"))
    other = sqlite3.connect(house.folder / ".store" / "history.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    await live.begin(A, TURN)
    assert await house.store.run(live_turns) == set()
    other.execute("ROLLBACK")
    other.close()
    await until(lambda: rows(house))
    live.stop()
