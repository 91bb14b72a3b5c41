"""Rows of the log put into history.db, and taken out again: what holds of a message is decided here.

A message is shown in its highest revision, the later line where two are equal, and not at all once it was taken back,
wherever in the log that stands (log-format 10.1). So the order in which pieces of a log come does not matter.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from core.archive.rows import Batch, Told
from core.archive.words import indexed, session_word
from core.ids import SessionId
from core.sessions.receipts import Receipt

NAME: Final = "archive"
"""Under which its receipts are kept."""
SAME_MS: Final = 21
"""Bits of an id for messages of one millisecond; the others are its time. Newest first is then by id."""
_DERIVED: Final = ("messages", "message_meta", "retracted", "action_history", "usage")


class _Shown(NamedTuple):
    number: int
    revision: int
    content: str


class _New(NamedTuple):
    number: int
    session: SessionId
    told: Told


class Piece(NamedTuple):
    """What some lines of one session make, and the receipt for them; ``more``: its log goes on.

    ``afresh``: everything that came from that log goes first, as it is read from the beginning.
    """

    batch: Batch
    receipt: Receipt | None
    lines: int = 0
    afresh: bool = False
    more: bool = False


def put(database: sqlite3.Connection, pieces: Sequence[Piece]) -> None:
    """Add rows, and the receipts for them, in one transaction."""
    batches = [piece.batch for piece in pieces]
    with database:
        for piece in pieces:
            if piece.afresh:
                remove_session(database, piece.batch.session)
        _put_messages(database, batches)
        database.executemany(
            'INSERT INTO usage (session_id, send_at, model, input, output, "write", hit, elapsed_ms, tool_calls) '
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            ((batch.session, *used) for batch in batches for used in batch.used),
        )
        database.executemany(
            "INSERT OR IGNORE INTO action_history (session_id, task_hash, end_at, objective, tool_results, reply) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            ((batch.session, *turn) for batch in batches for turn in batch.turns),
        )
        database.executemany(
            "INSERT INTO session (session_id, created_at, last_at) VALUES (?, ?, ?) "
            "ON CONFLICT (session_id) DO UPDATE SET last_at = max(last_at, excluded.last_at), "
            "created_at = CASE created_at WHEN 0 THEN excluded.created_at "
            "ELSE min(created_at, excluded.created_at) END",
            ((batch.session, batch.first_at, batch.last_at) for batch in batches if batch.last_at),
        )
        database.executemany(
            "INSERT OR REPLACE INTO cursor (name, session_id, value) VALUES (?, ?, ?)",
            ((NAME, piece.batch.session, str(piece.receipt)) for piece in pieces if piece.receipt is not None),
        )


def remove_session(database: sqlite3.Connection, session: SessionId) -> None:
    """Take out everything that came from a session's log. Within the caller's transaction."""
    shown = database.execute(
        "SELECT id, content FROM messages WHERE session_id = ? AND hidden = 0 ORDER BY id", (session,)
    )
    _unindex(database, [(number, session, content) for number, content in shown])
    for table in _DERIVED:
        database.execute(f"DELETE FROM {table} WHERE session_id = ?", (session,))  # noqa: S608 - names of ours


def _put_messages(database: sqlite3.Connection, batches: Sequence[Batch]) -> None:
    said = [(batch.session, told) for batch in batches for told in batch.told]
    if not said:
        return
    known = _known(database, said)
    shown, retracted = _standing(database, said)
    numbers = _Numbers(database, {told.sent_at for _, told in said if isinstance(told, Told)})
    added: list[_New] = []
    hidden: dict[int, tuple[SessionId, str]] = {}
    gone: list[tuple[SessionId, str]] = []

    def hide(key: tuple[SessionId, str]) -> None:
        if (before := shown.pop(key, None)) is not None:
            hidden[before.number] = (key[0], before.content)

    for session, told in said:
        if not isinstance(told, Told):
            retracted.add((session, told))
            gone.append((session, told))
            hide((session, told))
            continue
        if (session, told.entry_id) in known:
            continue
        known.add((session, told.entry_id))
        number = numbers.take(told.sent_at)
        added.append(_New(number, session, told))
        key = (session, told.message_id)
        if not told.message_id:
            continue
        if key in retracted or (key in shown and shown[key].revision > told.revision):
            hidden[number] = (session, told.content)
        else:
            hide(key)
            shown[key] = _Shown(number, told.revision, told.content)
    database.executemany("INSERT OR IGNORE INTO retracted (session_id, message_id) VALUES (?, ?)", gone)
    _write(database, sorted(added), hidden)


def _write(database: sqlite3.Connection, added: list[_New], hidden: dict[int, tuple[SessionId, str]]) -> None:
    """In the order of their ids: the index makes a piece of its own of every step back."""
    fresh = {new.number for new in added}
    older = sorted((number, session, text) for number, (session, text) in hidden.items() if number not in fresh)
    _unindex(database, older)
    database.executemany("UPDATE messages SET hidden = 1 WHERE id = ?", ((number,) for number, _, _ in older))
    database.executemany(
        "INSERT INTO messages (id, session_id, send_at, role, content, sender, entry_id, message_id, revision, hidden) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (number, session, told.sent_at * 1_000_000, told.role, told.content, told.sender, told.entry_id,
             told.message_id, told.revision, number in hidden)
            for number, session, told in added
        ),
    )  # fmt: skip
    database.executemany(
        "INSERT INTO messages_fts5 (rowid, content, pairs, session) VALUES (?, ?, ?, ?)",
        (
            (number, *indexed(told.content), session_word(session))
            for number, session, told in added
            if number not in hidden
        ),
    )
    database.executemany(
        "INSERT INTO message_meta (session_id, start_at) VALUES (?, ?) ON CONFLICT (session_id) DO NOTHING",
        {session: (session, told.sent_at * 1_000_000) for _, session, told in reversed(added)}.values(),
    )


def _unindex(database: sqlite3.Connection, rows: Iterable[tuple[int, SessionId, str]]) -> None:
    """The index holds no text, so it is told the same words again."""
    database.executemany(
        "INSERT INTO messages_fts5 (messages_fts5, rowid, content, pairs, session) VALUES ('delete', ?, ?, ?, ?)",
        ((number, *indexed(content), session_word(session)) for number, session, content in rows),
    )


def _known(database: sqlite3.Connection, said: Sequence[tuple[SessionId, object]]) -> set[tuple[SessionId, str]]:
    """Which of these lines are there already."""
    asked = [(session, told.entry_id) for session, told in said if isinstance(told, Told)]
    rows = database.execute(
        "SELECT m.session_id, m.entry_id FROM json_each(?) AS j CROSS JOIN messages AS m ON "
        "m.session_id = json_extract(j.value, '$[0]') AND m.entry_id = json_extract(j.value, '$[1]') "
        "AND m.entry_id <> ''",
        (json.dumps(asked),),
    )
    return {(SessionId(session), str(entry)) for session, entry in rows}


def _standing(
    database: sqlite3.Connection, said: Sequence[tuple[SessionId, object]]
) -> tuple[dict[tuple[SessionId, str], _Shown], set[tuple[SessionId, str]]]:
    """What is shown of these messages, and which of them were taken back."""
    keys = {(session, told.message_id if isinstance(told, Told) else told) for session, told in said}
    asked = (json.dumps([key for key in keys if key[1]]),)
    messages = database.execute(
        "SELECT m.session_id, m.message_id, m.id, m.revision, m.content "
        "FROM json_each(?) AS j CROSS JOIN messages AS m ON m.session_id = json_extract(j.value, '$[0]') "
        "AND m.message_id = json_extract(j.value, '$[1]') "
        "AND m.message_id <> '' WHERE m.hidden = 0",
        asked,
    )
    shown = {(SessionId(session), str(message)): _Shown(*rest) for session, message, *rest in messages}
    gone = database.execute(
        "SELECT r.session_id, r.message_id FROM json_each(?) AS j CROSS JOIN retracted AS r ON "
        "r.session_id = json_extract(j.value, '$[0]') AND r.message_id = json_extract(j.value, '$[1]')",
        asked,
    )
    return shown, {(SessionId(session), str(message)) for session, message in gone}


class _Numbers:
    """Gives ids to new messages: in order of time, and of coming within a millisecond."""

    def __init__(self, database: sqlite3.Connection, moments: Iterable[int]) -> None:
        self._database = database
        self._next: dict[int, int] = {}
        rows = database.execute(
            "SELECT j.value, (SELECT max(id) FROM messages WHERE id >= j.value << 21 AND id < (j.value + 1) << 21) "
            "FROM json_each(?) AS j",
            (json.dumps(sorted(moments)),),
        )
        self._next = {ms: ms << SAME_MS if last is None else last + 1 for ms, last in rows}

    def take(self, ms: int) -> int:
        number = self._next.get(ms)
        if number is None:
            self._next |= _Numbers(self._database, [ms])._next
            number = self._next[ms]
        if number >= (ms + 1) << SAME_MS:  # two million in one millisecond
            return self.take(ms + 1)
        self._next[ms] = number + 1
        return number
