"""Which logs a command looks into: those that were named, or all of the data folder. Read-only, without the lock."""

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from bots.printing import console as terminal
from bots.printing import fail, say
from core.content import for_terminal
from core.ids import is_session_id
from core.log.records import Record
from core.log.view import View, read_journal


class Source(NamedTuple):
    """A log to look into. ``kind`` is ``session`` or ``file``; ``assets`` its folder of sidecars, for a session."""

    kind: str
    name: str
    path: Path
    records: list[Record]
    assets: Path | None = None


def find(targets: list[str] | None, *, journal: bool = True) -> list[Source]:
    """The logs that were named, or all. Ends with code 2 where one is not there."""
    if targets and not any(is_session_id(target) for target in targets):
        return [_file(target) for target in targets]
    from bots.settings import load  # noqa: PLC0415 - a look into a file needs no settings

    folder = load().ishiki_data_dir
    runtimes = folder / "runtimes"
    if not targets and not runtimes.is_dir():
        fail(
            f"{folder} is no data folder; set ISHIKI_DATA_DIR to the one that `ishiki run` writes to, or name a file", 2
        )
    try:
        records = read_journal(folder) if journal else {}
        names = targets or sorted({path.name for path in runtimes.iterdir()} | set(records))
    except OSError as error:
        fail(f"the data folder {folder} cannot be read ({error.strerror}); check its owner and rights", 2)
    return [
        _session(runtimes, name, records) if is_session_id(name) else _file(name)
        for name in names
        if targets or is_session_id(name)
    ]


def _session(runtimes: Path, name: str, records: dict[str, list[Record]]) -> Source:
    folder = runtimes / name
    if not folder.is_dir() and name not in records:
        fail(f"there is no session {name} in {runtimes.parent}; `ishiki log stats` lists those that are there", 2)
    assets = folder / "resources" / "assets"
    return Source("session", name, folder / "events.jsonl", records.get(name, []), assets)


def _file(name: str) -> Source:
    path = Path(name)
    shown = for_terminal(name)
    if path.is_dir():
        fail(f"{shown} is a folder; name the events.jsonl in it, or a session id", 2)
    if not path.exists():
        fail(f"{shown} is neither a session id nor a file; `ishiki log stats` lists the sessions", 2)
    if not path.is_file():
        fail(f"{shown} is no regular file; save what it gives to one and name that", 2)
    return Source("file", name, path, [])


class _Watched(View):
    """A view that moves a progress bar as it is read."""

    def watch(self, progress: Progress, name: str) -> None:
        self._progress, self._bar = progress, progress.add_task(name, total=self.size)

    def read_at(self, offset: int, count: int) -> bytes:
        self._progress.update(self._bar, completed=offset)
        return super().read_at(offset, count)


def open_each(sources: Iterable[Source], *, progress: bool = False) -> Iterator[tuple[Source, View]]:
    """Each log opened. One that cannot be read is named, the others go on, and the command ends with code 1."""
    unreadable = False
    for source in sources:
        try:
            with opened(source, progress=progress) as log:
                yield source, log
        except BrokenPipeError:
            raise
        except OSError as error:
            unreadable = True
            say(f"{for_terminal(source.name)} cannot be read ({error.strerror}); check its owner, rights and disk")
    if unreadable:
        raise typer.Exit(1)


@contextmanager
def opened(source: Source, *, progress: bool) -> Generator[View]:
    """One log, with a bar that moves as it is read. Raises `OSError`."""
    console = terminal if terminal.is_terminal else Console(stderr=True)
    if not progress or not console.is_terminal:
        with View(source.path, source.records) as log:
            yield log
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn())
    with (
        Progress(*columns, console=console, transient=True) as bar,
        _Watched(source.path, source.records) as log,
    ):
        log.watch(bar, for_terminal(source.name))
        yield log
