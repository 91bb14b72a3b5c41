"""Reading logs: all of one, the counts of one, the end of one."""

import asyncio
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

from bots.bench.goal import Bench, Measured, each_second
from bots.bench.made_logs import SESSION, write_log
from bots.bench.pairs import Run, in_turns
from bots.bench.peer import bare_environment
from core.ids import session_id
from core.log.file import FileLog
from core.log.journal import Journal
from core.sessions.reading import Reading

LAST: Final = 100
# What `ishiki log stats` counts, as jq says it. That `sort | uniq -c` then counts the words is not in jq's time.
JQ: Final = 'if .type == "message" then .data.type // .data.role else .type end'


def typed_replay(bench: Bench) -> Measured:
    """Every entry of a log as an object, beside every line through `orjson.loads`."""
    try:
        loads: Callable[[bytes], Any] = import_module("orjson").loads
    except ImportError:
        return Measured(None, "not measured: orjson is not installed; pip install orjson")
    path = _log(bench)
    write_log(path, lines=bench.sizes.entries)

    def ours() -> None:
        count = 0
        for _ in _reading(bench).read():
            count += 1
        assert count == bench.sizes.entries

    def beside() -> None:
        with path.open("rb") as lines:
            for line in lines:
                loads(line)

    pair = asyncio.run(in_turns(_timed(ours), _timed(beside), bench.sizes.pairs))
    mine, theirs = (each_second(bench.sizes.entries / seconds) for seconds in (pair.ours, pair.beside))
    return Measured(1 / pair.ratio, f"{mine} of {theirs}")


def log_stats(bench: Bench) -> Measured:
    """`ishiki log stats`, its start included, beside jq that only names what is to be counted."""
    jq = shutil.which("jq")
    if jq is None:
        return Measured(None, "not measured: jq is not installed; apt-get install jq")
    path = _log(bench)
    write_log(path, lines=bench.sizes.entries)
    command = [sys.executable, "-c", "from bots.cli import main; main()", "log", "stats", str(path)]
    ours, beside = (_timed(partial(_run, each)) for each in (command, [jq, "-r", JQ, str(path)]))
    pair = asyncio.run(in_turns(ours, beside, max(1, bench.sizes.pairs // 2)))
    return Measured(pair.ratio, f"{pair.ours:.2f} s beside {pair.beside:.2f} s")


def last_entries(bench: Bench) -> Measured:
    """The last entries of a long log, opened anew each time, in ms."""
    write_log(_log(bench), size=bench.sizes.log_bytes)
    delays: list[float] = []
    for _ in range(bench.sizes.looks):
        began = time.perf_counter()
        found = [*islice(_reading(bench).read_back(), LAST)]
        delays.append(time.perf_counter() - began)
        assert len(found) == LAST
    p99 = quantiles(delays, n=100)[98] * 1000
    size = _log(bench).stat().st_size >> 20
    return Measured(p99, f"p50 {median(delays) * 1000:.2f} ms, p99 {p99:.2f} ms of {size:,} MiB")


def _log(bench: Bench) -> Path:
    return bench.folder / "runtimes" / SESSION / "events.jsonl"


def _reading(bench: Bench) -> Reading:
    log = FileLog(bench.folder / "runtimes", SESSION, Journal(bench.folder))
    return Reading(session_id(SESSION), log)


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=bare_environment())  # noqa: S603 - our own


def _timed(work: Callable[[], None]) -> Run:
    async def run() -> float:
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    return run
