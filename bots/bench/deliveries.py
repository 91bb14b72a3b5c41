"""From a message to a runtime that hears of it: how long that takes, and what happens when there is too much of it."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from statistics import median
from typing import Any, Final

from bots.app import App, assemble
from bots.bench.goal import Bench, Measured
from bots.bench.peer import Peer, resident_mib
from bots.diagnostics import configure
from bots.settings import Settings
from core.entries import Author, MessageCreated
from core.ids import ChannelId, MessageId, UserId, discord_session
from core.sessions.facts import Said

SESSIONS: Final = 50
STARTED: Final = 3.0
"""Seconds after which the API is built too, which takes the interpreter for some 200 ms."""
RATE: Final = 500.0
TAKEN: Final = 100.0
TIMES: Final = 10
"""How much more comes than the runtime takes."""
DRAINED_WITHIN: Final = 120.0


def delay(bench: Bench) -> Measured:
    """The p99 in ms from the moment in which a message is due until the runtime has it."""
    return asyncio.run(_delay(bench))


def overload(bench: Bench) -> Measured:
    """MiB that the process grows from a quarter of the time to its end, while far more comes than is taken."""
    return asyncio.run(_overload(bench))


async def _delay(bench: Bench) -> Measured:
    warm_up, count = int(2 * RATE), int(bench.sizes.seconds / 3 * RATE)
    with Peer("bots.bench.runtime_peer", "0") as runtime:
        async with _program(bench, runtime.ready) as app:
            await asyncio.sleep(STARTED)
            await _say(app, RATE, range(warm_up))
            await _say(app, RATE, range(warm_up, warm_up + count))
            report = await _drained(runtime, warm_up + count)
    if trouble := _trouble(report, warm_up + count):
        return trouble
    delays = report["delays"]
    p99 = delays[int(len(delays) * 0.99)] * 1000
    return Measured(p99, f"p50 {median(delays) * 1000:.1f} ms, p99 {p99:.1f} ms")


async def _overload(bench: Bench) -> Measured:
    rate = TAKEN * TIMES
    count = int(bench.sizes.seconds * rate)
    with Peer("bots.bench.runtime_peer", str(TAKEN)) as runtime:
        async with _program(bench, runtime.ready) as app:
            await _say(app, rate, range(count // 4))
            before = resident_mib()
            await _say(app, rate, range(count // 4, count))
            after = resident_mib()
            runtime.tell("open")
            await asyncio.to_thread(runtime.answer)
            report = await _drained(runtime, count)
    grown = f"{before:.1f} MiB, then {after:.1f} MiB; {count:,} messages, none lost"
    return _trouble(report, count) or Measured(after - before, grown)


def _trouble(report: dict[str, Any], count: int) -> Measured | None:
    """Whatever the figures are: all of it has to come, in order."""
    lost, disordered = count - report["came"], report["disordered"]
    if lost or disordered:
        return Measured(float("inf"), f"{lost} were lost, {disordered} out of order")
    return None


async def _say(app: App, rate: float, numbers: range) -> None:
    """Messages at a steady rate, over all sessions; one for which the loop had no time counts from when it was due."""
    sessions = [app.sessions.of(discord_session(910_000_000_000_000_000 + number)) for number in range(SESSIONS)]
    began = time.monotonic()
    written: set[asyncio.Future[Any]] = set()
    for number in numbers:
        due = began + (number - numbers.start) / rate
        if (early := due - time.monotonic()) > 0:
            await asyncio.sleep(early)
        future = sessions[number % SESSIONS].append([Said(_message(number, due))])
        written.add(future)
        future.add_done_callback(written.discard)
    await asyncio.gather(*written)


def _message(number: int, due: float) -> MessageCreated:
    return MessageCreated(
        platform="discord",
        self_id=UserId("900000000000000009"),
        channel_id=ChannelId(str(910_000_000_000_000_000 + number % SESSIONS)),
        message_id=MessageId(str(1_400_000_000_000_000_000 + number)),
        timestamp=int(time.time() * 1000),
        content=f"{due!r} is when this was due, and then it goes on for as long as people do",
        is_direct=False,
        user=Author(id=UserId(str(920_000_000_000_000_000 + number % 50)), name="阿岚"),
        guild_id="900000000000000001",
    )


async def _drained(runtime: Peer, count: int) -> dict[str, Any]:
    """The runtime's report once everything came, or nobody believes that any more."""
    tries = int(DRAINED_WITHIN * 4)
    while True:
        runtime.tell("report")
        report: dict[str, Any] = await asyncio.to_thread(runtime.answer)
        tries -= 1
        if report["came"] >= count or not tries:
            return report
        await asyncio.sleep(0.25)


@asynccontextmanager
async def _program(bench: Bench, port: int) -> AsyncGenerator[App]:
    """The whole of it, without a platform."""
    configure("error", "console")
    settings = Settings(
        ishiki_data_dir=bench.folder / "data",
        ishiki_runtime_url=f"http://127.0.0.1:{port}",
        ishiki_wake="never",
        ishiki_http_port=0,
    )
    async with assemble(settings) as app:
        yield app
