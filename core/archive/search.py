"""Looking for a word in everything that was said, newest first (sessions.md 2.2). Reads beside whoever writes."""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, NamedTuple

from core.archive.schema import ARCHIVED
from core.archive.shelf import SAME_MS
from core.archive.words import phrase, session_word
from core.clock import now_ms
from core.errors import StoreUnavailable
from core.ids import SessionId

Range = Literal["1d", "7d", "1m", "1y"]
DAYS: Final[dict[str, int]] = {"1d": 1, "7d": 7, "1m": 30, "1y": 365}
USUAL: Final = 8
MOST: Final = 32
MAPPED: Final = 4 << 30
"""Bytes of the file that are read in place: a search touches some hundred pages, and a call for each takes longer."""
MOST_INSIDE: Final = 50
"""For those who ask from within the program."""


class Hit(NamedTuple):
    """A message that holds the words. ``sent_at`` in ms. Sender and content come from a chat: they are hostile."""

    session_id: SessionId
    entry_id: str
    message_id: str
    sent_at: int
    role: str
    sender: str
    content: str


def search(
    database: sqlite3.Connection,
    words: str,
    *,
    session: SessionId | None = None,
    within: Range | None = None,
    most: int = USUAL,
    now: int | None = None,
) -> list[Hit]:
    """The newest messages that hold these words next to each other, of one session or of all. Blocks.

    Raises `InvalidRequest` where there is no word in them.
    """
    wanted = phrase(words)
    if session is not None:
        wanted += f" AND session : {session_word(session)}"
    since = 0 if within is None else (now_ms() if now is None else now) - DAYS[within] * 86_400_000
    rows = database.execute(
        "SELECT m.session_id, m.entry_id, m.message_id, m.send_at / 1000000, m.role, m.sender, m.content "
        "FROM messages_fts5 AS f CROSS JOIN messages AS m ON m.id = f.rowid "
        "WHERE f.messages_fts5 MATCH ? AND f.rowid >= ? AND (? IS NULL OR m.session_id = ?) "
        "ORDER BY f.rowid DESC LIMIT ?",
        (wanted, max(since, 0) << SAME_MS, session, session, min(most, MOST_INSIDE)),
    )
    return [Hit(SessionId(one), *rest) for one, *rest in rows]


@contextmanager
def reading(path: Path) -> Generator[sqlite3.Connection]:
    """history.db opened to be read, whoever holds the data folder. Raises `StoreUnavailable`."""
    cure = "`ishiki run` makes it from the logs"
    if not path.is_file():
        raise StoreUnavailable(f"there is no {path} to search; {cure}")
    try:
        # Read-write, as a reader of a WAL after a crash has to put that right; no statement changes anything.
        database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)
        try:
            database.execute("PRAGMA query_only = ON")
            database.execute(f"PRAGMA mmap_size = {MAPPED}")
            version: int = database.execute("PRAGMA user_version").fetchone()[0]
            if version < ARCHIVED:
                raise StoreUnavailable(f"{path} is of an older version, without an index; {cure}")
            yield database
        finally:
            database.close()
    except sqlite3.Error as error:
        raise StoreUnavailable(f"{path} cannot be read ({error}); check its rights and the disk; {cure}") from error
