"""How long `ishiki run` takes to be ready, and what it holds in memory then."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from bots.bench.goal import Bench, Measured
from bots.bench.made_logs import write_log
from bots.bench.peer import bare_environment, resident_mib
from core.archive.store import Store
from core.ids import discord_session
from core.log.file import FileLog
from core.log.journal import Journal
from core.sessions.reading import Reading
from core.sessions.receipts import Receipt

RUN: Final = (sys.executable, "-c", "from bots.cli import main; main()", "run")
IMPORTS: Final = (sys.executable, "-c", "import discord, telegram; print('started', flush=True)")
FOLLOWERS: Final = ("fetch", "deliver", "turns")
SETTLED: Final = 1.5
"""Seconds after which what was only needed to start is let go."""


class Start(NamedTuple):
    seconds: float
    mib: float


def bare_start(bench: Bench) -> Measured:
    """With an empty data folder, beside a Python that imports the two client libraries and nothing else."""
    starts = [(_start(RUN, bench.folder / "none"), _start(IMPORTS, bench.folder)) for _ in range(bench.sizes.pairs)]
    ours, imports = (median(start.seconds for start in each) for each in zip(*starts, strict=True))
    ratio = median(mine.seconds / theirs.seconds for mine, theirs in starts)
    return Measured(ratio, f"{ours:.2f} s beside {imports:.2f} s")


def full_start(bench: Bench) -> Measured:
    """How many seconds more many sessions take than none."""
    starts = _starts(bench, settle=False)
    more = median(many.seconds - none.seconds for many, none in starts)
    return Measured(more, " beside ".join(f"{median(each):.2f} s" for each in _seconds(starts)))


def idle_memory(bench: Bench) -> Measured:
    """How many MiB more many sessions take that nothing happens in."""
    starts = _starts(bench, settle=True)
    many, none = (median(start.mib for start in each) for each in zip(*starts, strict=True))
    return Measured(median(many.mib - none.mib for many, none in starts), f"{many:.1f} MiB beside {none:.1f} MiB")


def _starts(bench: Bench, *, settle: bool) -> list[tuple[Start, Start]]:
    many, none = bench.folder / "many", bench.folder / "none"
    asyncio.run(_fill(many, bench.sizes.sessions, bench.sizes.entries_each))
    wait = SETTLED if settle else 0.0
    _start(RUN, many)
    return [(_start(RUN, many, wait), _start(RUN, none, wait)) for _ in range(max(1, bench.sizes.pairs // 2))]


def _seconds(starts: Sequence[tuple[Start, Start]]) -> list[list[float]]:
    return [[start.seconds for start in each] for each in zip(*starts, strict=True)]


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


def _start(command: Sequence[str], folder: Path, settle: float = 0.0) -> Start:
    """Seconds from the start of a process until it says ``started``, and its memory some seconds later."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = bare_environment(ISHIKI_DATA_DIR=str(folder), ISHIKI_HTTP_PORT="0")
    out, err = subprocess.PIPE, subprocess.STDOUT
    began = time.perf_counter()
    with subprocess.Popen(command, cwd=folder, env=settings, stdout=out, stderr=err) as process:  # noqa: S603 - our own
        assert process.stdout is not None
        for line in process.stdout:
            if b"started" in line:
                break
        seconds = time.perf_counter() - began
        if process.poll() is None:
            time.sleep(settle)
            mib = resident_mib(process.pid) if settle else 0.0
            process.send_signal(signal.SIGINT)
        else:
            mib = 0.0
        process.stdout.read()
    return Start(seconds, mib)
