"""What the terminal shows of a data folder, read without its lock. Everything here blocks."""

import os
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from bots import pending_sources
from core.confirmations.record import Record
from core.content import for_terminal
from core.ids import SessionId, is_session_id

_NAMES = "SELECT session_id, coalesce(nullif(name, ''), title) FROM session"


class Row(NamedTuple):
    """A session in the menu. ``last_at`` is in ms, 0 where nothing was ever said; ``name`` is fit for a terminal."""

    session: SessionId
    name: str
    last_at: int
    open: int


class House:
    """A data folder as it is now. Raises `OSError` where it cannot be read any more."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._runtimes = folder / "runtimes"

    def rows(self) -> dict[SessionId, Row]:
        """Every session that has a folder, with how many confirmations its chat shows or waits to show."""
        sessions = [SessionId(name) for name in os.listdir(self._runtimes) if is_session_id(name)]  # noqa: PTH208 - names alone
        names = self._names()
        waiting = Counter(record.deliver_to for record in self.asked(sessions))
        return {
            session: Row(session, self._name(session, names), self._last(session), waiting[session])
            for session in sessions
        }

    def asked(self, sessions: Iterable[SessionId] | None = None) -> list[Record]:
        """What is open, in the order in which it was asked. A file that cannot be read is left to ``ishiki doctor``."""
        if sessions is None:
            sessions = [SessionId(name) for name in os.listdir(self._runtimes) if is_session_id(name)]  # noqa: PTH208
        asking = [session for session in sessions if os.path.isdir(self._runtimes / session / "pending")]  # noqa: PTH112
        records, _ = pending_sources.read(self.folder, asking, tell=lambda _sentence: None)
        return [record for record in records if record.is_open]

    def _name(self, session: SessionId, names: Mapping[str, str]) -> str:
        return for_terminal(names.get(session, "")) or short(session)

    def _names(self) -> dict[str, str]:
        with suppress(sqlite3.Error):  # ids say enough where the database does not
            return {str(session): str(name) for session, name in pending_sources.query(self.folder, _NAMES, ())}
        return {}

    def _last(self, session: SessionId) -> int:
        with suppress(OSError):
            return os.stat(f"{self._runtimes}/{session}/events.jsonl").st_mtime_ns // 1_000_000  # noqa: PTH116
        return 0


def short(session: SessionId) -> str:
    """An id that fits a row: a UUID by its first eight digits."""
    prefix, _, rest = session.partition("-")
    return f"{prefix}-{rest[:8]}" if len(rest) == 36 else session
