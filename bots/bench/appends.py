"""Durable appends beside the least that group commit, or a single write, can cost."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import cycle
from statistics import median
from typing import Final

from bots.bench.bare import SlowDisk, bare_in
from bots.bench.goal import Bench, Measured, each_second
from bots.bench.house import house_in
from bots.bench.pairs import in_turns
from bots.bench.said import text_of
from bots.diagnostics import configure
from core.codec import encode
from core.entries import Author, MessageCreated, custom_message
from core.ids import ChannelId, MessageId, UserId, discord_session
from core.log.disk import Disk
from core.sessions.facts import Said

IN_FLIGHT: Final = 64
MANY: Final = 1_000

Append = Callable[[int], Awaitable[object]]


def one_session(bench: Bench) -> Measured:
    """Appends of one message each into one session, beside ready lines into one file."""
    return asyncio.run(_beside_bare(bench, sessions=1, disk=Disk()))


def many_sessions(bench: Bench) -> Measured:
    """The same over many sessions, beside one."""
    return asyncio.run(_many_beside_one(bench))


def slow_disk(bench: Bench) -> Measured:
    """Over many sessions where each sync takes its time, beside ready lines with the same syncs."""
    return asyncio.run(_beside_bare(bench, sessions=MANY, disk=SlowDisk()))


def one_alone(bench: Bench) -> Measured:
    """How long one append takes with nothing else to do, beside one write and one sync."""
    return asyncio.run(_one_alone(bench))


async def _beside_bare(bench: Bench, *, sessions: int, disk: Disk) -> Measured:
    count = bench.sizes.appends
    lines = _lines(count)
    async with _writing(bench, "ours", sessions, disk) as append, bare_in(bench.folder / "bare", disk) as bare:
        pair = await in_turns(
            partial(_in_flight, append, count),
            partial(_in_flight, lambda number: bare.append(lines[number]), count),
            bench.sizes.pairs,
        )
    return Measured(pair.ratio, f"{each_second(pair.ours)} of {each_second(pair.beside)}")


async def _many_beside_one(bench: Bench) -> Measured:
    """Each in a data folder of its own: in one, either would pay for what the other left to be synced."""
    count = bench.sizes.appends
    async with _writing(bench, "many", MANY) as many, _writing(bench, "one", 1) as one:
        pair = await in_turns(partial(_in_flight, many, count), partial(_in_flight, one, count), bench.sizes.pairs)
    return Measured(pair.ratio, f"{each_second(pair.ours)} of {each_second(pair.beside)}")


async def _one_alone(bench: Bench) -> Measured:
    count = bench.sizes.delays
    lines = _lines(count)
    descriptor = os.open(bench.folder / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    async def bare(number: int) -> None:
        os.write(descriptor, lines[number])
        os.fdatasync(descriptor)

    async with _writing(bench, "ours", 1, count=count) as append:
        pair = await in_turns(partial(_delay, append, count), partial(_delay, bare, count), bench.sizes.pairs)
    os.close(descriptor)
    return Measured(pair.ratio, f"p50 {pair.ours * 1e6:.0f} µs beside {pair.beside * 1e6:.0f} µs")


@asynccontextmanager
async def _writing(
    bench: Bench, name: str, spread: int, disk: Disk | None = None, *, count: int = 0
) -> AsyncGenerator[Append]:
    """A data folder, and a way to append to it messages that are ready, as a door hands them in, to each session in
    turn. The sessions are known: each has a message already. The number is not looked at: no message comes twice."""
    configure("error", "console")
    runs = bench.sizes.pairs + 1
    said = [Said(message(number)) for number in range(spread + runs * (count or bench.sizes.appends))]
    messages = zip(cycle(discord_session(910_000_000_000_000_000 + each) for each in range(spread)), said, strict=False)
    async with house_in(bench.folder / name, disk) as house:

        def append(_number: int) -> Awaitable[object]:
            session, message = next(messages)
            return house.sessions.of(session).append((message,))

        await asyncio.gather(*map(append, range(spread)))
        yield append


def message(number: int) -> MessageCreated:
    """A message as a door hands it in."""
    return MessageCreated(
        platform="discord",
        self_id=UserId("900000000000000009"),
        channel_id=ChannelId("910000000000000000"),
        message_id=MessageId(str(1_400_000_000_000_000_000 + number)),
        timestamp=1_793_531_049_892,
        content=text_of(number).replace("<", "&lt;").replace(">", "&gt;"),
        is_direct=False,
        user=Author(id=UserId(str(920_000_000_000_000_000 + number % 50)), name="阿岚"),
        guild_id="900000000000000001",
    )


def _lines(count: int) -> list[bytes]:
    return [encode(custom_message(message(number), now=1_793_531_049_900)) + b"\n" for number in range(count)]


async def _in_flight(append: Append, count: int) -> float:
    """Appends a second, with so many under way at each moment."""
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            await append(number)

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))
    return count / (time.perf_counter() - began)


async def _delay(append: Append, count: int) -> float:
    """The middle one of so many delays, in seconds."""
    delays: list[float] = []
    for number in range(count):
        began = time.perf_counter()
        await append(number)
        delays.append(time.perf_counter() - began)
    return median(delays)
