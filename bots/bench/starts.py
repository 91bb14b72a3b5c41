"""How long `ishiki run` takes to be ready, and what it holds in memory then.

Ready is what `/readyz` calls so: it serves, and each platform that it has a token of is connected. What stands in for
the platforms listens on loopback and was started before. On either side Python finds compiled what it imports, as where
a program is installed: the first run of each, which does not count, leaves it in the bench's own folder.
"""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from bots.bench.goal import Bench, Measured
from bots.bench.made_logs import write_log
from bots.bench.pairs import in_turns
from bots.bench.peer import Peer, bare_environment, resident_mib
from core.archive.store import Store
from core.ids import discord_session
from core.log.file import FileLog
from core.log.journal import Journal
from core.resources.fetch import Fetch
from core.runtime.deliver import Deliver
from core.runtime.turns import Turns
from core.sessions.reading import Reading
from core.sessions.receipts import Receipt

RUN: Final = (sys.executable, "-c", "from bots.cli import main; main()", "run")
IMPORTS: Final = (sys.executable, "-c", "import discord, telegram; print('started', flush=True)")
NO_PLATFORM: Final[Mapping[str, str]] = {}
FOLLOWERS: Final = (Fetch.name, Deliver.name, Turns.name)
SETTLED: Final = 3.0
"""Seconds after which what was only needed to start is let go, and the API is built."""


class Start(NamedTuple):
    seconds: float
    mib: float


def bare_start(bench: Bench) -> Measured:
    """With an empty data folder and both platforms, beside a Python that imports the two client libraries alone."""
    with _platforms() as both:
        pair = asyncio.run(
            in_turns(
                _seconds(lambda: _start(bench.folder / "none", both)),
                _seconds(lambda: _started(IMPORTS, bench.folder / "none", {"started"})),
                bench.sizes.pairs,
            )
        )
    alone = median(_start(bench.folder / "none", NO_PLATFORM).seconds for _ in range(bench.sizes.pairs))
    return Measured(pair.ratio, f"{pair.ours:.2f} s ({alone:.2f} s without a platform) beside {pair.beside:.2f} s")


def full_start(bench: Bench) -> Measured:
    """How many seconds more many sessions take than none, with both platforms."""
    with _platforms() as both:
        starts = _starts(bench, both, settle=0.0)
    many, none = (median(start.seconds for start in each) for each in zip(*starts, strict=True))
    return Measured(median(many.seconds - none.seconds for many, none in starts), f"{many:.2f} s beside {none:.2f} s")


def idle_memory(bench: Bench) -> Measured:
    """How many MiB more many sessions take that nothing happens in, without a platform."""
    starts = _starts(bench, NO_PLATFORM, settle=SETTLED)
    many, none = (median(start.mib for start in each) for each in zip(*starts, strict=True))
    return Measured(median(many.mib - none.mib for many, none in starts), f"{many:.1f} MiB beside {none:.1f} MiB")


def _starts(bench: Bench, platforms: Mapping[str, str], *, settle: float) -> list[tuple[Start, Start]]:
    """With many sessions and with none, in turns, after one of each to warm up."""
    many, none = bench.folder / "many", bench.folder / "none"
    asyncio.run(_fill(many, bench.sizes.sessions, bench.sizes.entries_each))
    runs = range(max(1, bench.sizes.pairs // 2) + 1)
    return [(_start(many, platforms, settle), _start(none, platforms, settle)) for _ in runs][1:]


def _seconds(start: Callable[[], Start]) -> Callable[[], Awaitable[float]]:
    async def run() -> float:
        return start().seconds

    return run


@contextmanager
def _platforms() -> Generator[Mapping[str, str]]:
    """Both platforms, with nothing to tell, and the settings that lead to them."""
    with Peer("bots.bench.discord_peer", "0", "0") as discord, Peer("bots.bench.telegram_peer", "0", "0") as telegram:
        yield {
            "DISCORD_TOKEN": "bench",
            "DISCORD_API_URL": f"http://127.0.0.1:{discord.ready}/api",
            "DISCORD_GATEWAY_URL": f"ws://127.0.0.1:{discord.ready}/gateway/",
            "DISCORD_ALLOW": "*",
            "TELEGRAM_TOKEN": "7000000001:bench",
            "TELEGRAM_API_URL": f"http://127.0.0.1:{telegram.ready}",
            "TELEGRAM_ALLOW": "*",
        }


async def _fill(folder: Path, sessions: int, entries: int) -> None:
    """A data folder as a clean stop leaves it: everything in the logs was done."""
    (folder / ".store").mkdir(parents=True)
    store, journal = Store.open(folder / ".store" / "history.db"), Journal(folder)
    for number in range(sessions):
        session = discord_session(910_000_000_000_000_000 + number)
        write_log(folder / "runtimes" / session / "events.jsonl", lines=entries, first=number)
        log = Reading(session, FileLog(folder / "runtimes", session, journal))
        newest = next(log.read_back())
        for follower in FOLLOWERS:
            store.put(follower, session, Receipt(newest.entry.id, newest.end))
    await store.close()


def _start(folder: Path, platforms: Mapping[str, str], settle: float = 0.0) -> Start:
    """One `ishiki run` until it is ready."""
    words = {"started", "discord_connected", "telegram_connected"} if platforms else {"started"}
    return _started(RUN, folder, words, platforms, settle)


def _started(
    command: tuple[str, ...],
    folder: Path,
    words: set[str],
    platforms: Mapping[str, str] = NO_PLATFORM,
    settle: float = 0.0,
) -> Start:
    """Seconds from the start of a process until it has said all these words, and its memory some seconds later."""
    folder.mkdir(parents=True, exist_ok=True)
    compiled = {"PYTHONPYCACHEPREFIX": str(folder.parent / "compiled"), "PYTHONDONTWRITEBYTECODE": ""}
    settings = bare_environment(ISHIKI_DATA_DIR=str(folder), ISHIKI_HTTP_PORT="0", **compiled, **platforms)
    out, err = subprocess.PIPE, subprocess.STDOUT
    began = time.perf_counter()
    with subprocess.Popen(command, cwd=folder, env=settings, stdout=out, stderr=err, text=True) as process:  # noqa: S603 - our own
        assert process.stdout is not None
        try:
            _hear(process.stdout, words)
            seconds = time.perf_counter() - began
            time.sleep(settle)
            mib = resident_mib(process.pid) if settle else 0.0
            process.send_signal(signal.SIGTERM)
            process.stdout.read()
        except BaseException:
            process.kill()
            raise
    return Start(seconds, mib)


def _hear(output: Iterable[str], words: set[str]) -> None:
    """Return once all these words were said. Raises `RuntimeError` where they never are."""
    missing, line = set(words), ""
    for line in output:
        missing = {word for word in missing if word not in line}
        if not missing:
            return
    raise RuntimeError(f"a start ended before it was ready; its last words were: {line.strip()}")
