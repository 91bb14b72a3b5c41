"""The logs, and the journal that they are made durable by."""

import time
from collections.abc import Callable
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
    looked = 0
    bad: list[str] = []
    closed: list[str] = []
    torn: list[str] = []
    for session in sessions:
        if clock() > ends:
            break
        looked += 1
        found = _stats(folder, session, journal.get(session, []))
        if found is None:
            closed.append(session)
        elif found.bad_lines:
            bad.append(session)
        elif found.torn_tail and not at_work:
            torn.append(session)
    if closed:
        return fail(
            f"{counted(len(closed), 'log')} cannot be read: {listed(closed)}", "check their owner, rights and disk"
        )
    if bad:
        return fail(
            f"{counted(len(bad), 'log')} with lines that cannot be read: {listed(bad)}",
            "`ishiki log check` shows them; stop `ishiki run`, and `ishiki log repair` removes them and keeps a backup",
        )
    if torn:
        return warn(
            f"{counted(len(torn), 'log')} whose last write was cut short: {listed(torn)}",
            "nothing that was acknowledged is lost; the next write closes it off",
        )
    if looked < len(sessions):
        return ok(f"the newest {looked} of {len(sessions)} logs can be read; `ishiki log check` looks at all")
    return ok(f"{counted(looked, 'log')} can be read, every line" if looked else "there are no logs yet")


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


def _stats(folder: Path, session: SessionId, records: list[Record]) -> scan.Stats | None:
    """What a log holds; None where it cannot be read."""
    try:
        with View(folder / "runtimes" / session / "events.jsonl", records) as log:
            return scan.stats(log.read_at, log.size)
    except OSError:
        return None
