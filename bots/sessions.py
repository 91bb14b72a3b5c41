"""``ishiki sessions``: what there is, and where somebody is needed. Read-only, without the lock."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from rich.console import Console
from rich.progress import track

from bots import pending_sources
from bots.printing import console, fail, output, print_json, print_table, span
from core.clock import now_ms
from core.ids import SessionId, is_session_id, platform_of, prefix_of
from core.log.records import Record
from core.log.tally import Tally, tally
from core.log.view import View, read_journal

_HEADS: Final = ("session", "name", "platform", "entries", "last activity", "open", "besides")
_ELSEWHERE: Final = {"cli": "terminal", "chat": "web", "temp": "web"}
_NAMES: Final = "SELECT session_id, coalesce(nullif(name, ''), title) FROM session"
_PARKED: Final = (
    "SELECT session_id, count(*) FROM outbox WHERE state = 'parked' AND key GLOB 'deliver:*' GROUP BY session_id"
)
_LIVE: Final = "SELECT key FROM live WHERE key GLOB 'action:*:*' AND expires_at > CAST(? AS INTEGER)"

LONG: Final = 500
"""Sessions from which on it shows how far it has come."""


class _Row(NamedTuple):
    session: SessionId
    name: str
    log: Tally
    open: int
    parked: int
    active: bool


def show(*, as_json: bool) -> None:
    """All sessions, the one in which something happened last first."""
    with output():
        folder = pending_sources.data_folder()
        rows = sorted(_rows(folder), key=lambda row: (-(row.log.last_at or 0), row.session))
        if as_json:
            for row in rows:
                print_json({
                    "session": row.session, "name": row.name, "platform": _platform(row.session),
                    "entries": row.log.entries, "lastActivity": row.log.last_at, "open": row.open,
                    "parked": row.parked, "silentTurns": row.log.silent, "failedTurns": row.log.failed,
                    "active": row.active,
                })  # fmt: skip
            return
        print_table(_HEADS, [_cells(row) for row in rows], "there is no session yet")


def _cells(row: _Row) -> list[str]:
    last = "" if row.log.last_at is None else f"{span(now_ms() - row.log.last_at)} ago"
    counts = (("parked", row.parked), ("silent", row.log.silent), ("failed", row.log.failed))
    besides = ["active"] if row.active else []
    besides += [f"{count} {word}" for word, count in counts if count]
    return [
        row.session, row.name, _platform(row.session), str(row.log.entries), last, str(row.open), ", ".join(besides)
    ]  # fmt: skip


def _rows(folder: Path) -> Iterator[_Row]:
    try:
        journal = read_journal(folder)
        found = {path.name for path in (folder / "runtimes").iterdir()} | set(journal)
    except OSError as error:
        fail(f"the data folder {folder} cannot be read ({error.strerror}); check its owner and rights", 2)
    sessions = sorted(SessionId(name) for name in found if is_session_id(name))
    names = {str(session): str(name) for session, name in pending_sources.rows(folder, _NAMES, ())}
    parked = {str(session): int(str(count)) for session, count in pending_sources.rows(folder, _PARKED, ())}
    active = {str(key).split(":")[1] for (key,) in pending_sources.rows(folder, _LIVE, (str(now_ms()),))}
    waiting = _open(folder, sessions)
    for session in _watched(sessions):
        log = _tally(folder, session, journal.get(session, []))
        yield _Row(session, names.get(session, ""), log, waiting[session], parked.get(session, 0), session in active)


def _tally(folder: Path, session: SessionId, records: list[Record]) -> Tally:
    path = folder / "runtimes" / session / "events.jsonl"
    try:
        with View(path, records) as log:
            return tally(log.read_at, log.size)
    except OSError as error:
        fail(f"{path} cannot be read ({error.strerror}); check its owner, rights and disk", 1)


def _open(folder: Path, sessions: Iterable[SessionId]) -> Counter[SessionId]:
    """How many confirmations are open, by the session that they were asked in."""
    asking = [session for session in sessions if (folder / "runtimes" / session / "pending").is_dir()]
    records, _ = pending_sources.read(folder, asking)
    return Counter(record.session_id for record in records if record.is_open)


def _watched(sessions: list[SessionId]) -> Iterable[SessionId]:
    """The sessions, with a bar that moves on a terminal if there are many."""
    shown = console if console.is_terminal else Console(stderr=True)
    if len(sessions) < LONG or not shown.is_terminal:
        return sessions
    return track(sessions, "reading", console=shown, transient=True)


def _platform(session: SessionId) -> str:
    return platform_of(session) or _ELSEWHERE[prefix_of(session)]
