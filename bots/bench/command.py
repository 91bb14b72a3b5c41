"""``ishiki bench``: run the rows one after the other and print the table."""

import shutil
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bots.bench.goal import Measured, Row, shown
from bots.bench.peer import Peer
from bots.bench.rows import ROWS
from bots.printing import console, fail, output, print_json, say
from bots.settings import load


class Result(NamedTuple):
    row: Row
    measured: Measured

    @property
    def verdict(self) -> str:
        value = self.measured.value
        return "not measured" if value is None else "met" if self.row.goal.met_by(value) else "missed"


def run(names: Sequence[str], *, quick: bool, as_json: bool) -> None:
    """Measure the rows of these names, or all. Ends with code 1 where a goal is missed or was not measured."""
    unknown = [name for name in names if name not in {row.name for row in ROWS}]
    if unknown:
        fail(f"there is no row {unknown[0]!r}; rows are {', '.join(row.name for row in ROWS)}", 2)
    rows = [row for row in ROWS if not names or row.name in names]
    with output(1), _folder(load().ishiki_data_dir) as folder:
        say(f"bench writes to {folder}, and removes it afterwards")
        results: list[Result] = []
        for result in _measured(rows, folder, quick=quick):
            results.append(result)
            if as_json:
                print_json(_document(result))
        if not as_json:
            console.print(_table(results))
    missed = [result.row.name for result in results if result.verdict != "met"]
    if missed:
        say(f"missed or not measured: {', '.join(missed)}")
        raise typer.Exit(1)


def _measured(rows: Sequence[Row], folder: Path, *, quick: bool) -> Iterator[Result]:
    terminal = Console(stderr=True)
    for number, row in enumerate(rows, 1):
        place = folder / row.name
        place.mkdir(mode=0o700)
        with terminal.status(f"{number} of {len(rows)}: {row.what}") if terminal.is_terminal else _nothing():
            measured = _measure(row, place, quick=quick)
        shutil.rmtree(place)
        yield Result(row, measured)


def _measure(row: Row, place: Path, *, quick: bool) -> Measured:
    try:
        with Peer("bots.bench", row.name, str(place), "quick" if quick else "full") as peer:
            return Measured(**peer.ready)
    except RuntimeError as error:
        return Measured(None, f"not measured: {error}; its own output says why")


@contextmanager
def _folder(data: Path) -> Generator[Path]:
    """A fresh folder in the data folder; nothing is written anywhere else."""
    made = not data.exists()
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="bench-", dir=data))
    except OSError as error:
        fail(f"{data} cannot be written ({error.strerror}); set ISHIKI_DATA_DIR to a folder that can", 2)
    try:
        yield folder.resolve()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if made:
            data.rmdir()


@contextmanager
def _nothing() -> Generator[None]:
    yield


def _document(result: Result) -> dict[str, object]:
    row, measured = result
    value = measured.value if measured.value != float("inf") else None
    return {
        "row": row.name, "what": row.what, "value": value, "unit": row.goal.unit, "goal": row.goal.limit,
        "better": "higher" if row.goal.at_least else "lower", "result": result.verdict, "detail": measured.detail,
    }  # fmt: skip


def _table(results: Sequence[Result]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("row", style="bold")
    table.add_column("what", overflow="fold")
    table.add_column("measured", justify="right", no_wrap=True)
    table.add_column("goal", justify="right", no_wrap=True)
    table.add_column("")
    table.add_column("figures", overflow="fold")
    for result in results:
        row, (value, detail) = result.row, (result.measured.value, result.measured.detail)
        figure = "–" if value is None else shown(value, row.goal.unit)
        colour = {"met": "green", "missed": "red"}.get(result.verdict, "yellow")
        table.add_row(row.name, row.what, figure, str(row.goal), Text(result.verdict, colour), detail)
    return table
