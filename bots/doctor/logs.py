"""The logs, and the journal that they are made durable by."""

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from bots.doctor.house import holder, sessions_of
from bots.doctor.verdict import Verdict, counted, fail, listed, ok, warn
from core.ids import SessionId
from core.log import scan
from core.log.records import Record, unpack
from core.log.view import View, read_journal

LOOKED_FOR: Final = 7.0
"""Seconds after which the rest of the logs is left to `ishiki log check`."""
NEWEST: Final = 16 * 1024**2
"""Bytes of each log, so that a large one does not keep us from the others."""
_KEPT: Final = "journal.kept"


def look_at_journal(folder: Path) -> Verdict:
    """Whether the last stop was a clean one, and whether a disk gave something back damaged."""
    store = folder / ".store"
    try:
        damaged = sorted(path.name for path in store.glob("*.damaged-*"))
        if (store / _KEPT).exists() and (store / _KEPT).stat().st_size:
            waiting = listed(sorted({record.session for record in unpack((store / _KEPT).read_bytes()).records}))
            return fail(
                f"lines of {waiting or 'a session'} wait in .store/{_KEPT}, as that log cannot be written",
                "mend what stands in the place of that events.jsonl, then start `ishiki run` again",
            )
        at_work = holder(folder).there
        content = b"" if at_work or not (store / "journal").exists() else (store / "journal").read_bytes()
    except OSError as error:
        return fail(f"the journal in {store} cannot be read ({error.strerror})", "check the disk, its owner and rights")
    if damaged:
        return warn(
            f"the disk gave something back damaged; copies stand in .store: {listed(damaged)}",
            "check the disk; remove the copies when you need them no more",
        )
    if at_work:
        return ok("the journal is in use")
    return _of_journal(content)


def look_at_logs(folder: Path, clock: Callable[[], float] = time.monotonic) -> Verdict:
    """Whether every line can be read; for as long as `LOOKED_FOR` lasts, the logs first that were written last."""
    ends = clock() + LOOKED_FOR
    try:
        sessions = sessions_of(folder)
        journal = read_journal(folder)
        at_work = holder(folder).there
    except OSError as error:
        return fail(f"the logs in {folder} cannot be listed ({error.strerror})", "check its owner, rights and disk")
    logs = _Logs(at_work=at_work, is_late=lambda: clock() > ends)
    with suppress(_Late):
        for session in sessions:
            logs.look(folder, session, journal.get(session, []))
    return logs.verdict(of=len(sessions))


class _Late(Exception):
    """The time is over."""


class _Logs:
    """What was found in those that were looked into so far.

    ``at_work``: somebody writes, so that a last line may not be whole yet. ``is_late`` says when to stop.
    """

    def __init__(self, *, at_work: bool, is_late: Callable[[], bool]) -> None:
        self._at_work = at_work
        self._is_late = is_late
        self._looked = self._cut = 0
        self._closed: list[str] = []
        self._bad: list[str] = []
        self._torn: list[str] = []

    def look(self, folder: Path, session: SessionId, records: list[Record]) -> None:
        """Raises `_Late`, also in the middle of one."""
        try:
            with View(folder / "runtimes" / session / "events.jsonl", records) as log:
                start = _newest_part(log)
                found = scan.stats(partial(self._read_in_time, log, start), log.size - start)
        except OSError:
            self._closed.append(session)
        else:
            self._cut += start > 0
            if found.bad_lines:
                self._bad.append(session)
            elif found.torn_tail and not self._at_work:
                self._torn.append(session)
        self._looked += 1

    def _read_in_time(self, log: View, start: int, offset: int, count: int) -> bytes:
        if self._is_late():
            raise _Late
        return log.read_at(start + offset, count)

    def verdict(self, of: int) -> Verdict:
        """About ``of`` logs in all."""
        if self._closed:
            return fail(f"{_logs(self._closed)} cannot be read: {listed(self._closed)}", "check owner, rights and disk")
        if self._bad:
            return fail(
                f"{_logs(self._bad)} with lines that cannot be read: {listed(self._bad)}",
                "`ishiki log check` shows them; `ishiki log repair` removes them and keeps a backup",
            )
        if self._torn:
            return warn(
                f"{_logs(self._torn)} whose last write was cut short: {listed(self._torn)}",
                "nothing that was acknowledged is lost; the next write closes it off",
            )
        if self._looked < of or self._cut:
            seen = f"{self._looked} of {counted(of, 'log')} looked into, of large ones the newest part, and readable"
            return ok(f"{seen}; `ishiki log check` looks at everything")
        return ok(f"{counted(of, 'log')} can be read, every line" if of else "there are no logs yet")


def _newest_part(log: View) -> int:
    """Where the newest lines begin, at most `NEWEST` bytes of them; the end where that is within one line."""
    if log.size <= NEWEST:
        return 0
    start = log.size - NEWEST
    line_end = log.read_at(start, NEWEST).find(b"\n")
    return log.size if line_end < 0 else start + line_end + 1


def _logs(sessions: list[str]) -> str:
    return counted(len(sessions), "log")


def _of_journal(content: bytes) -> Verdict:
    """What the journal of a house holds that nobody is at work in."""
    found = unpack(content)
    if found.damaged:
        told = f"the journal is damaged ({found.damaged} bytes)"
        return fail(told, "check the disk; `ishiki run` saves what is whole")
    if content:
        return warn(
            f"the program was cut off: the journal still holds {counted(len(found.records), 'write')}",
            "start `ishiki run`, which puts them into the logs",
        )
    return ok("the journal is empty, as a clean stop leaves it")
