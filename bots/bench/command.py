"""``ishiki bench``: run the rows one after the other and print the table."""

import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from rich.table import Table
from rich.text import Text
from typer import Exit

from bots.bench.goal import Measured, Row, shown
from bots.bench.peer import Peer
from bots.bench.rows import ROWS
from bots.printing import console, fail, output, print_json, say

ROOM: Final = 3 << 30
QUICK_ROOM: Final = 1 << 29
"""Bytes that the largest row needs: a log of 1 GiB, or a million entries in 10,000 folders."""


class Result(NamedTuple):
    row: Row
    measured: Measured

    @property
    def verdict(self) -> str:
        value = self.measured.value
        return "not measured" if value is None else "met" if self.row.goal.met_by(value) else "missed"


def run(names: Sequence[str], *, folder: Path, quick: bool, as_json: bool) -> None:
    """Measure the rows of these names, or all. Ends with code 1 where a goal is missed or was not measured.

    Reads no setting, and writes only to a new folder in ``folder``.
    """
    unknown = [name for name in names if name not in {row.name for row in ROWS}]
    if unknown:
        fail(f"there is no row {unknown[0]!r}; rows are {', '.join(row.name for row in ROWS)}", 2)
    rows = [row for row in ROWS if not names or row.name in names]
    signal.signal(signal.SIGTERM, _end)
    with output(1), _place(folder, QUICK_ROOM if quick else ROOM) as place:
        say(f"bench writes to {place}, and removes it afterwards")
        results: list[Result] = []
        for result in _measured(rows, place, quick=quick):
            results.append(result)
            if as_json:
                print_json(_document(result))
        if not as_json:
            console.print(_table(results))
    missed = [result.row.name for result in results if result.verdict != "met"]
    if missed:
        say(f"missed or not measured: {', '.join(missed)}")
        raise Exit(1)


def _measured(rows: Sequence[Row], folder: Path, *, quick: bool) -> Iterator[Result]:
    for number, row in enumerate(rows, 1):
        say(f"{number} of {len(rows)}, {row.name}: {row.what}")
        place = folder / row.name
        place.mkdir()
        result = Result(row, _measure(row, place, quick=quick))
        shutil.rmtree(place)
        yield result


def _measure(row: Row, place: Path, *, quick: bool) -> Measured:
    try:
        with Peer("bots.bench", row.name, str(place), "quick" if quick else "full") as peer:
            return Measured(**peer.ready)
    except RuntimeError as error:
        return Measured(None, f"not measured: {error}; what it said on standard error tells why")


@contextmanager
def _place(folder: Path, room: int) -> Generator[Path]:
    """A fresh folder in another; it is gone afterwards, also after Ctrl-C."""
    cure = "name another with --folder"
    try:
        if shutil.disk_usage(folder).free < room:
            fail(f"{folder} has less than {room >> 20:,} MiB free; make room, or {cure}", 2)
        place = Path(tempfile.mkdtemp(prefix="ishiki-bench-", dir=folder))
    except OSError as error:
        fail(f"{folder} cannot be written to ({error.strerror}); {cure}", 2)
    try:
        yield place.resolve()
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _end(_number: int, _frame: object) -> None:
    """SIGTERM ends as Ctrl-C does."""
    sys.exit(143)


def _document(result: Result) -> dict[str, object]:
    row, measured = result
    value = measured.value if measured.value != float("inf") else None
    return {
        "row": row.name, "what": row.what, "value": value, "unit": row.goal.unit, "goal": row.goal.limit,
        "better": "higher" if row.goal.at_least else "lower", "result": result.verdict, "detail": measured.detail,
    }  # fmt: skip


def _table(results: Sequence[Result]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("row", style="bold", no_wrap=True)
    table.add_column("what", overflow="fold")
    table.add_column("measured", justify="right", no_wrap=True)
    table.add_column("goal", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("figures", overflow="fold")
    for result in results:
        row, (value, detail) = result.row, (result.measured.value, result.measured.detail)
        figure = "–" if value is None else shown(value, row.goal.unit)
        colour = {"met": "green", "missed": "red"}.get(result.verdict, "yellow")
        table.add_row(row.name, row.what, figure, str(row.goal), Text(result.verdict, colour), detail)
    return table
