"""What the archive costs those who record, how far it falls behind, and how long a search takes."""

import asyncio
import random
import sqlite3
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from functools import partial
from itertools import accumulate, cycle
from typing import Final

from bots.bench.appends import IN_FLIGHT, message
from bots.bench.goal import Bench, Measured, each_second
from bots.bench.house import House, house_in
from bots.bench.pairs import in_turns
from bots.diagnostics import configure
from core.archive.archive import Archive
from core.archive.rows import Batch, Told
from core.archive.schema import migrate
from core.archive.search import MOST_INSIDE, reading, search
from core.archive.shelf import Piece, put
from core.ids import SessionId, discord_session
from core.sessions.facts import Said

SPREAD: Final = 200
SESSIONS: Final = 1_000
TOGETHER: Final = 2_000
_SESSION: Final = [discord_session(910_000_000_000_000_000 + number) for number in range(SESSIONS)]


def intake(bench: Bench) -> Measured:
    """Durable appends with the archive, beside the same without it."""
    return asyncio.run(_intake(bench))


def burst(bench: Bench) -> Measured:
    """Seconds from the end of a burst until all of it can be found."""
    return asyncio.run(_burst(bench))


def searches(bench: Bench) -> Measured:
    """The p99 in ms of the newest 50 hits, for one to three Chinese characters and for one word, over all sessions."""
    path = bench.folder / "history.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        migrate(database)
        _fill(database, bench.sizes.archived)
    with reading(path) as database:
        delays = sorted(_delay(database, words) for words in _queries(bench.sizes.looks))
        within = sorted(_delay(database, words, _SESSION[10]) for words in _queries(bench.sizes.looks))
    p99, p99_within = (found[int(len(found) * 0.99)] for found in (delays, within))
    p50 = delays[len(delays) // 2]
    return Measured(p99, f"p50 {p50:.2f} ms, p99 {p99:.2f} ms; within one session p99 {p99_within:.2f} ms")


async def _intake(bench: Bench) -> Measured:
    count = bench.sizes.appends
    async with _open(bench, "with") as archived, _open(bench, "without") as bare:
        archive = Archive(archived.store, archived.sessions)
        archive.start()
        pair = await in_turns(partial(_append, archived, count), partial(_append, bare, count), bench.sizes.pairs)
        await archive.stop(within=0)
    return Measured(pair.ratio, f"{each_second(pair.ours)} of {each_second(pair.beside)}")


async def _burst(bench: Bench) -> Measured:
    count = bench.sizes.burst
    async with _open(bench, "burst") as house:
        archive = Archive(house.store, house.sessions)
        archive.start()
        rate = await _append(house, count)
        ended = time.perf_counter()
        await archive.level()
        behind = time.perf_counter() - ended
        await archive.stop(within=0)
    return Measured(behind, f"{count:,} within {count / rate:.1f} s, all found {behind:.1f} s later")


@asynccontextmanager
async def _open(bench: Bench, name: str) -> AsyncGenerator[House]:
    configure("error", "console")
    async with house_in(bench.folder / name) as house:
        yield house


_numbers = iter(range(1 << 60))


async def _append(house: House, count: int) -> float:
    """Messages a second, so many in flight, over some sessions; no message comes twice."""
    left = iter(zip(range(count), cycle(_SESSION[:SPREAD]), strict=False))

    async def work() -> None:
        for _, session in left:
            await house.sessions.of(session).append([Said(message(next(_numbers)))])

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))
    return count / (time.perf_counter() - began)


# Words and characters as often as people use them: the n-th most frequent one n times as seldom.
_HAN: Final = [chr(0x4E00 + number) for number in range(3_000)]
_WORDS: Final = [f"w{number:x}" for number in range(20_000)]
_HAN_OFTEN: Final = list(accumulate(1 / (number + 8) for number in range(len(_HAN))))
_WORDS_OFTEN: Final = list(accumulate(1 / (number + 5) for number in range(len(_WORDS))))


def _fill(database: sqlite3.Connection, count: int) -> None:
    chance = random.Random(5)  # noqa: S311 - the same each time
    for start in range(0, count, TOGETHER):
        batches: dict[SessionId, Batch] = {}
        for number in range(start, min(start + TOGETHER, count)):
            session = chance.choice(_SESSION)
            han = "".join(chance.choices(_HAN, cum_weights=_HAN_OFTEN, k=chance.randint(4, 24)))
            words = " ".join(chance.choices(_WORDS, cum_weights=_WORDS_OFTEN, k=chance.randint(1, 8)))
            text = f"{'common ' if number % 2 else ''}{han} {words}"
            told = Told(f"e{number}", str(number), 0, 1_760_000_000_000 + number * 900, "user", text, "阿岚")
            batches.setdefault(session, Batch(session)).told.append(told)
        put(database, [Piece(batch, None) for batch in batches.values()])


def _queries(count: int) -> list[str]:
    chance = random.Random(7)  # noqa: S311 - the same each time
    queries: list[str] = []
    for number in range(count):
        if number % 4 == 3:
            queries += ["common"] if number % 16 == 3 else chance.choices(_WORDS, cum_weights=_WORDS_OFTEN)
        else:
            queries.append("".join(chance.choices(_HAN, cum_weights=_HAN_OFTEN, k=number % 4 + 1)))
    return queries


def _delay(database: sqlite3.Connection, words: str, session: SessionId | None = None) -> float:
    began = time.perf_counter()
    search(database, words, session=session, most=MOST_INSIDE)
    return (time.perf_counter() - began) * 1000
