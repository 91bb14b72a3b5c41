"""``ishiki sessions``: what there is, and where somebody is needed. Read-only, without the lock."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from rich.console import Console
from rich.progress import track

from bots import pending_sources
from bots.printing import console, fail, output, print_json, print_table, span
from core.clock import now_ms
from core.codec import decode
from core.confirmations.record import Record as ConfirmationRecord
from core.entries import AnyEntry
from core.errors import InvalidEntry
from core.ids import SessionId, TurnId, is_session_id, platform_of, prefix_of
from core.log.lines import backward
from core.log.records import Record
from core.log.tally import Tally, tally
from core.log.view import View, read_journal
from core.sessions.interrupted import Interrupted, interrupted

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
    cut_off: Interrupted | None


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
                    "active": row.active, "interrupted": row.cut_off.turn if row.cut_off else None,
                    "resumable": row.cut_off.resumable if row.cut_off else (),
                })  # fmt: skip
            return
        print_table(_HEADS, [_cells(row) for row in rows], "there is no session yet")


def _cells(row: _Row) -> list[str]:
    last = "" if row.log.last_at is None else f"{span(now_ms() - row.log.last_at)} ago"
    counts = (("parked", row.parked), ("silent", row.log.silent), ("failed", row.log.failed))
    besides = ["active"] if row.active else []
    besides += ["interrupted"] if row.cut_off is not None else []
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
    alive = {_turn(str(key)) for (key,) in pending_sources.rows(folder, _LIVE, (str(now_ms()),))}
    active = {session for session, _ in alive}
    records = _open(folder, sessions)
    waiting = Counter(record.session_id for record in records)
    for session in _watched(sessions):
        try:
            with _opened(folder, session, journal.get(session, [])) as log:
                found = tally(log.read_at, log.size)
                cut_off = interrupted(session, _newest_first(log), alive, records) if found.turned else None
        except OSError as error:
            path = folder / "runtimes" / session / "events.jsonl"
            fail(f"{path} cannot be read ({error.strerror}); check its owner, rights and disk", 1)
        name, aside = names.get(session, ""), parked.get(session, 0)
        yield _Row(session, name, found, waiting[session], aside, session in active, cut_off)


def _opened(folder: Path, session: SessionId, records: list[Record]) -> View:
    return View(folder / "runtimes" / session / "events.jsonl", records)


def _turn(key: str) -> tuple[SessionId, TurnId]:
    """Of a key of ``live`` (sessions.md 3.2)."""
    _, session, turn = key.split(":")
    return SessionId(session), TurnId(turn)


def _newest_first(log: View) -> Iterator[AnyEntry]:
    for line in backward(log.read_at, log.size):
        with suppress(InvalidEntry):
            yield decode(line.raw)


def _open(folder: Path, sessions: Iterable[SessionId]) -> list[ConfirmationRecord]:
    """The confirmations that are open."""
    asking = [session for session in sessions if (folder / "runtimes" / session / "pending").is_dir()]
    records, _ = pending_sources.read(folder, asking)
    return [record for record in records if record.is_open]


def _watched(sessions: list[SessionId]) -> Iterable[SessionId]:
    """The sessions, with a bar that moves on a terminal if there are many."""
    shown = console if console.is_terminal else Console(stderr=True)
    if len(sessions) < LONG or not shown.is_terminal:
        return sessions
    return track(sessions, "reading", console=shown, transient=True)


def _platform(session: SessionId) -> str:
    return platform_of(session) or _ELSEWHERE[prefix_of(session)]
