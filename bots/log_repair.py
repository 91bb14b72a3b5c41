"""`ishiki log repair`: the one command that rewrites logs (contract sections 5 and 9). Offline, with a backup."""

import asyncio
import errno
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import typer

from bots import log_sources
from bots.diagnostics import configure
from bots.log_sources import Source
from bots.printing import print_json, print_line, say
from core import audit
from core.archive.store import Store
from core.audit import Damage
from core.content import for_terminal
from core.errors import IshikiError
from core.ids import SessionId, is_session_id
from core.log.file import FileLog
from core.log.journal import Journal
from core.log.view import read_journal
from core.sessions.directory import FolderLock
from core.sessions.reading import Reading


class _Home(NamedTuple):
    """The data folder that a log lies in, and the session that it is the log of."""

    folder: Path
    session: SessionId | None


def repair(targets: list[str] | None, *, as_json: bool) -> None:
    """Repair what was named, or all. One that fails is named, the others go on, and the command ends with code 1."""
    configure("warning", "console")
    failed = False
    homes = {home.folder for source in log_sources.find(targets) if (home := _home_of(source.path)) is not None}
    with _held(homes):
        for source in log_sources.find(targets):
            try:
                _repair(source, as_json=as_json)
            except BrokenPipeError:
                raise
            except (OSError, IshikiError) as error:
                failed = True
                reason = getattr(error, "strerror", None) or str(error)
                say(f"{for_terminal(source.name)} is not repaired ({reason}); mend that and run it again")
    if failed:
        raise typer.Exit(1)


@contextmanager
def _held(folders: set[Path]) -> Generator[None]:
    """Own these data folders, and put back what their journals hold. Raises `FolderHeld` and `FolderUnusable`."""
    with ExitStack() as locks:
        for folder in sorted(folders):
            locks.callback(FolderLock(folder).release)
        for folder in sorted(folders):
            journal = Journal(folder)
            journal.start()
            journal.stop()
        yield


def _home_of(path: Path) -> _Home | None:
    real = path.resolve()
    for folder in real.parents:
        if folder.parent.name == "runtimes" and is_session_id(folder.name):
            is_log = real == folder / "events.jsonl"
            return _Home(folder.parent.parent, SessionId(folder.name) if is_log else None)
    return None


def _repair(source: Source, *, as_json: bool) -> None:
    home = _home_of(source.path)
    if home is not None and home.session in read_journal(home.folder):
        raise OSError(errno.EBUSY, "the journal still holds lines of it that could not be put back")
    if home is not None:
        audit.sweep(source.path.resolve())
    with log_sources.opened(source, progress=True) as log:
        found = audit.damage(log)
        backup = None
        if found.lines:
            if home is not None and home.session is not None:
                _loosen(home.folder, home.session)
            backup = audit.remove(log, found)
    if as_json:
        print_json({
            source.kind: source.name, "removed": found.lines, "bytes": found.size,
            "lines": [line._asdict() for line in found.named], "backup": str(backup) if backup else None,
        })  # fmt: skip
    else:
        _print(source, found, backup)


def _loosen(folder: Path, session: SessionId) -> None:
    database = folder / ".store" / "history.db"
    if not database.exists():
        return

    async def loosen() -> None:
        store = Store.open(database)
        try:
            await audit.loosen(store, Reading(session, FileLog(folder / "runtimes", session, Journal(folder))))
        finally:
            await store.close()

    asyncio.run(loosen())


def _print(source: Source, found: Damage, backup: Path | None) -> None:
    name = for_terminal(source.name)
    for line in found.named:
        what = "torn tail" if line.torn else "no JSON"
        print_line(
            f"{name}: line {line.line} is removed: {what}, {line.length} bytes from byte {line.offset}", "yellow"
        )
    if found.lines > len(found.named):
        print_line(f"{name}: and {found.lines - len(found.named)} more lines", "yellow")
    if backup is None:
        print_line(f"{name}: nothing to repair")
    else:
        lines = "line" if found.lines == 1 else "lines"
        print_line(f"{name}: {found.lines} {lines} removed; as it was: {for_terminal(str(backup))}", "bold")
