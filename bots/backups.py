"""`ishiki backup` and `ishiki restore` (contract section 9, "Commands")."""

import json
import os
import sqlite3
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from bots.printing import fail, print_json, print_line, say
from bots.settings import load
from core.backup import Taken, restore, take
from core.content import for_terminal
from core.errors import FolderUnusable
from core.sessions.directory import FolderLock

_COMPRESSED: Final = (".gz", ".tgz")
_STANDARD: Final = "-"


def back_up(target: str, *, as_json: bool) -> None:
    """Take a backup, beside whoever owns the folder. Ends with code 1 where something could not be read."""
    folder = load().ishiki_data_dir
    if not (folder / "runtimes").is_dir():
        raise FolderUnusable(f"{folder} is no data folder; set ISHIKI_DATA_DIR to the one that `ishiki run` writes to")
    try:
        taken = _take(folder, target)
    except (OSError, sqlite3.Error) as error:
        fail(f"no backup was taken ({_reason(error)}); mend that, and take it again", 1)
    _tell(taken, target, as_json=as_json)
    for name, reason in taken.unreadable.items():
        say(f"{for_terminal(name)} is not in it ({reason}); check its owner, rights and disk")
    if taken.unreadable:
        raise typer.Exit(1)


def _take(folder: Path, target: str) -> Taken:
    if target == _STANDARD:
        if sys.stdout.isatty():
            fail("a backup is no text for a terminal; name a file, or send it into a pipe", 2)
        return take(folder, sys.stdout.buffer, compress=False)
    path = Path(target)
    if path.exists():
        fail(f"{for_terminal(target)} is there already; name a new file", 2)
    if not path.absolute().parent.is_dir():
        fail(f"{for_terminal(str(path.parent))} is no folder; make it first", 2)
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with (
            open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file,  # noqa: PTH123 - by descriptor
            _bar() as move,
        ):
            taken = take(folder, file, compress=path.suffix in _COMPRESSED, progress=move)
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return taken


def put_back(source: str, *, as_json: bool) -> None:
    """Make the data folder what a backup holds. Raises `BackupRefused`, `FolderHeld` and `FolderUnusable`."""
    folder = load().ishiki_data_dir
    path = Path(source)
    if source != _STANDARD and not path.is_file():
        fail(f"{for_terminal(source)} is no file; name the one that `ishiki backup` wrote", 2)
    with ExitStack() as stack:
        stack.callback(FolderLock(folder).release)
        file = sys.stdin.buffer if source == _STANDARD else stack.enter_context(path.open("rb"))
        try:
            restored = restore(file, folder)
        except OSError as error:
            fail(f"nothing was restored ({_reason(error)}); mend that, and restore it again", 1)
    if as_json:
        print_json({"folder": str(folder), "files": restored.files, "bytes": restored.size})
    else:
        print_line(f"{folder}: {restored.files} files, {_megabytes(restored.size)}; start it with `ishiki run`")


def _tell(taken: Taken, target: str, *, as_json: bool) -> None:
    """Not to standard output, where that took the backup."""
    found = {"sessions": taken.sessions, "files": taken.files, "bytes": taken.size, "left_out": taken.unreadable}
    line = f"{taken.sessions} sessions, {taken.files} files, {_megabytes(taken.size)}"
    if target == _STANDARD:
        say(json.dumps(found) if as_json else line)
    elif as_json:
        print_json({"file": target, **found})
    else:
        print_line(f"{for_terminal(target)}: {line}; `ishiki restore` makes a data folder of it")


@contextmanager
def _bar() -> Generator[Callable[[int, int], None]]:
    """A bar that moves, on a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _done, _of: None
        return
    with Progress(TextColumn("{task.description}"), BarColumn(), console=console, transient=True) as progress:
        bar = progress.add_task("sessions", total=None)
        yield lambda done, of: progress.update(bar, completed=done, total=of)


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB"


def _reason(error: OSError | sqlite3.Error) -> str:
    return getattr(error, "strerror", None) or str(error)
