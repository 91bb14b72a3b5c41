"""Durable appends beside the least that group commit can cost: one thread, one write and one sync, futures woken."""

import asyncio
import os
import queue
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from bots.bench.goal import Bench, Measured, each_second
from bots.bench.house import house_in
from bots.bench.pairs import in_turns
from bots.bench.said import text_of
from bots.diagnostics import configure
from core.codec import encode
from core.entries import Author, MessageCreated, custom_message
from core.ids import ChannelId, MessageId, SessionId, UserId, discord_session
from core.log.disk import Disk
from core.sessions.directory import Sessions
from core.sessions.facts import Said

IN_FLIGHT: Final = 64
MANY: Final = 1_000
SLOW: Final = 0.005
"""Seconds of a sync on a plain disk."""

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


class SlowDisk(Disk):
    """Each sync takes as long as on a plain disk, and then as long as it takes."""

    def sync(self, descriptor: int) -> None:
        time.sleep(SLOW)
        super().sync(descriptor)


class Bare:
    """Group commit of lines that are ready: no offsets, no checksums, no second file."""

    def __init__(self, path: Path, disk: Disk) -> None:
        self._disk = disk
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._waiting: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]] | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def append(self, line: bytes) -> asyncio.Future[None]:
        done = self._loop.create_future()
        self._waiting.put((line, done))
        return done

    def close(self) -> None:
        self._waiting.put(None)
        self._thread.join()
        os.close(self._descriptor)

    def _run(self) -> None:
        while (item := self._waiting.get()) is not None:
            group = [item]
            while not self._waiting.empty() and (item := self._waiting.get()) is not None:
                group.append(item)
            os.write(self._descriptor, b"".join(line for line, _ in group))
            self._disk.sync(self._descriptor)
            self._loop.call_soon_threadsafe(_wake, group)
            if item is None:
                return


def _wake(group: Sequence[tuple[bytes, asyncio.Future[None]]]) -> None:
    for _, done in group:
        done.set_result(None)


async def _beside_bare(bench: Bench, *, sessions: int, disk: Disk) -> Measured:
    configure("error", "console")
    count = bench.sizes.appends // (10 if isinstance(disk, SlowDisk) else 1)
    lines = _lines(count)
    async with house_in(bench.folder / "data", disk) as house, _bare(bench.folder / "bare", disk) as bare:
        write = Writing(house.sessions, sessions)
        await write.open()
        write.prepare(count * (bench.sizes.pairs + 1))
        pair = await in_turns(
            partial(_in_flight, write.append, count),
            partial(_in_flight, lambda number: bare.append(lines[number]), count),
            bench.sizes.pairs,
        )
    return Measured(pair.ratio, f"{each_second(pair.ours)} of {each_second(pair.beside)}")


async def _many_beside_one(bench: Bench) -> Measured:
    configure("error", "console")
    async with house_in(bench.folder / "data") as house:
        many, one = Writing(house.sessions, MANY), Writing(house.sessions, 1, first=MANY)
        await many.open()
        await one.open()
        count = bench.sizes.appends
        for writing in (many, one):
            writing.prepare(count * (bench.sizes.pairs + 1))
        pair = await in_turns(
            partial(_in_flight, many.append, count), partial(_in_flight, one.append, count), bench.sizes.pairs
        )
    return Measured(pair.ratio, f"{each_second(pair.ours)} of {each_second(pair.beside)}")


async def _one_alone(bench: Bench) -> Measured:
    configure("error", "console")
    count = bench.sizes.delays
    lines = _lines(count)
    descriptor = os.open(bench.folder / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    async def bare(number: int) -> None:
        os.write(descriptor, lines[number])
        os.fdatasync(descriptor)

    async with house_in(bench.folder / "data") as house:
        write = Writing(house.sessions, 1)
        await write.open()
        write.prepare(count * (bench.sizes.pairs + 1))
        pair = await in_turns(partial(_delay, write.append, count), partial(_delay, bare, count), bench.sizes.pairs)
    os.close(descriptor)
    return Measured(pair.ratio, f"p50 {pair.ours * 1e6:.0f} µs beside {pair.beside * 1e6:.0f} µs")


class Writing:
    """Messages as a door hands them in, one by one, spread over so many sessions; each is a new one."""

    def __init__(self, sessions: Sessions, spread: int, *, first: int = 0) -> None:
        self._sessions = sessions
        self._ids = [discord_session(910_000_000_000_000_000 + first + number) for number in range(spread)]
        self._next = 0
        self._said: list[Said] = []

    def prepare(self, count: int) -> None:
        """Have so many more messages ready."""
        start = len(self._said)
        self._said += (Said(_message(number)) for number in range(start, start + count))

    async def open(self) -> None:
        """One message into each session, as rows are about sessions that are known."""
        self.prepare(len(self._ids))
        await asyncio.gather(*(self.append(number) for number in range(len(self._ids))))

    def append(self, _number: int) -> Awaitable[object]:
        number, self._next = self._next, self._next + 1
        session: SessionId = self._ids[number % len(self._ids)]
        return self._sessions.of(session).append((self._said[number],))


def _message(number: int) -> MessageCreated:
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
    return [encode(custom_message(_message(number), now=1_793_531_049_900)) + b"\n" for number in range(count)]


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


@asynccontextmanager
async def _bare(path: Path, disk: Disk) -> AsyncGenerator[Bare]:
    bare = Bare(path, disk)
    try:
        yield bare
    finally:
        bare.close()
