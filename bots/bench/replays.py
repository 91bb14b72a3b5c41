"""Reading logs: all of one, the counts of one, the end of one."""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from itertools import islice
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

from bots.bench.goal import Bench, Measured
from bots.bench.made_logs import SESSION, write_log
from bots.bench.peer import bare_environment
from core.ids import session_id
from core.log.file import FileLog
from core.log.journal import Journal
from core.sessions.reading import Reading

LAST: Final = 100
# What `ishiki log stats` counts, as jq says it; its sorting and counting of the words are not even in its time.
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

    mine, theirs, ratio = _in_turns(ours, beside, bench.sizes.pairs)
    rates = (f"{bench.sizes.entries / seconds:,.0f} entries/s" for seconds in (mine, theirs))
    return Measured(1 / ratio, " of ".join(rates))


def log_stats(bench: Bench) -> Measured:
    """`ishiki log stats`, its start included, beside jq that only names what is to be counted."""
    jq = shutil.which("jq")
    if jq is None:
        return Measured(None, "not measured: jq is not installed; apt-get install jq")
    path = _log(bench)
    write_log(path, lines=bench.sizes.entries)
    command = [sys.executable, "-c", "from bots.cli import main; main()", "log", "stats", str(path)]
    mine, theirs, ratio = _in_turns(
        lambda: _run(command), lambda: _run([jq, "-r", JQ, str(path)]), max(1, bench.sizes.pairs // 2)
    )
    return Measured(ratio, f"{mine:.2f} s beside {theirs:.2f} s")


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


def _in_turns(ours: Callable[[], None], beside: Callable[[], None], pairs: int) -> tuple[float, float, float]:
    """Seconds of ours and of what stands beside it, and the first by the second: medians."""
    beside()
    runs = [(_seconds(ours), _seconds(beside)) for _ in range(pairs)]
    return (*(median(times) for times in zip(*runs, strict=True)), median(mine / theirs for mine, theirs in runs))  # pyright: ignore[reportReturnType]


def _seconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
