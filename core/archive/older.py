"""A history.db of an older program of the same family: its tables lack columns of ours and may hold duplicates.

What it has stays, but for second versions of a file (sessions.md 2.4). Leftover tables are neither read nor deleted.
"""

import sqlite3
from typing import Final

from core.archive.words import indexed, session_word
from core.ids import SessionId

_TEXT: Final = "TEXT NOT NULL DEFAULT ''"
_NUMBER: Final = "INTEGER NOT NULL DEFAULT 0"

_COLUMNS: Final = {
    "session": {
        "self_id": _TEXT, "name": _TEXT, "model": "TEXT NOT NULL DEFAULT 'auto'",
        "reasoning": "TEXT NOT NULL DEFAULT 'medium'", "role": _TEXT, "rule": _TEXT, "chat_id": _TEXT,
        "guild_id": _TEXT, "channel_id": _TEXT, "user_id": _TEXT, "business_id": _TEXT, "successor": _TEXT,
        "origin": _TEXT, "created_at": _NUMBER, "last_at": _NUMBER,
    },
    "messages": {
        "send_at": _NUMBER, "role": _TEXT, "content": _TEXT, "sender": _TEXT, "entry_id": _TEXT, "message_id": _TEXT,
        "revision": _NUMBER, "hidden": _NUMBER,
    },
    "message_meta": {"start_at": _NUMBER},
    "action_history": {
        "task_hash": _TEXT, "end_at": _NUMBER, "model": _TEXT, "reasoning": _TEXT, "objective": _TEXT,
        "tool_results": "TEXT NOT NULL DEFAULT '[]'", "reply": _TEXT,
    },
    "file_history": {
        "action": _TEXT, "content": "BLOB", "hash": _TEXT, "size": _NUMBER, "truncated": _NUMBER, "trash_path": _TEXT,
        "session_id": _TEXT, "task_id": _TEXT, "tool": _TEXT, "changed_at": _NUMBER,
    },
    "usage": {
        "session_id": _TEXT, "model": _TEXT, "input": _NUMBER, "output": _NUMBER, "write": _NUMBER, "hit": _NUMBER,
        "elapsed_ms": _NUMBER, "tool_calls": "TEXT NOT NULL DEFAULT '[]'",
    },
}  # fmt: skip


def adopt(database: sqlite3.Connection) -> None:
    """Make ready what an older program left, before the first of our migrations. Again, or with nothing there: no harm.

    Within the caller's transaction.
    """
    for table, wanted in _COLUMNS.items():
        if present := _columns(database, table):
            _complete(database, table, present, wanted)
    if _columns(database, "session"):  # ours is its primary key
        database.execute("CREATE UNIQUE INDEX IF NOT EXISTS session_id_once ON session (session_id)")
    if _columns(database, "file_history"):
        _keep_first_versions(database)
    if _columns(database, "action_history"):
        database.execute(
            "DELETE FROM action_history WHERE task_hash <> '' AND id NOT IN "
            "(SELECT min(id) FROM action_history GROUP BY session_id, task_hash)"
        )
    if _columns(database, "messages"):
        _number_by_time(database)


def index_messages(database: sqlite3.Connection) -> None:
    """Make searchable what is in ``messages`` when its index is made."""
    rows = database.execute("SELECT id, session_id, content FROM messages WHERE hidden = 0 ORDER BY id")
    database.executemany(
        "INSERT INTO messages_fts5 (rowid, content, pairs, session) VALUES (?, ?, ?, ?)",
        ((number, *indexed(content), session_word(SessionId(session))) for number, session, content in rows),
    )


def _columns(database: sqlite3.Connection, table: str) -> set[str]:
    return {str(row[1]) for row in database.execute(f"PRAGMA table_info({table})")}


def _complete(database: sqlite3.Connection, table: str, present: set[str], wanted: dict[str, str]) -> None:
    for column, declared in wanted.items():
        if column not in present:
            database.execute(f'ALTER TABLE {table} ADD COLUMN "{column}" {declared}')
        elif "DEFAULT" in declared:
            default = declared.rpartition(" ")[2]
            statement = f'UPDATE {table} SET "{column}" = {default} WHERE "{column}" IS NULL'  # noqa: S608 - names of ours
            database.execute(statement)


def _keep_first_versions(database: sqlite3.Connection) -> None:
    """Per task the version that it first saw. The old index goes first: it may forbid what is to be put right."""
    for index in [str(row[1]) for row in database.execute("PRAGMA index_list(file_history)") if row[3] == "c"]:
        database.execute(f'DROP INDEX "{index}"')
    database.execute(
        "DELETE FROM file_history WHERE task_id <> '' AND id NOT IN "
        "(SELECT min(id) FROM file_history GROUP BY dir, name, task_id, session_id)"
    )


def _number_by_time(database: sqlite3.Connection) -> None:
    """Ids in order of time, as ours are; without an index of another make, and what kept that up to date."""
    triggers = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'messages'"
    for (trigger,) in database.execute(triggers).fetchall():
        database.execute(f'DROP TRIGGER "{trigger}"')
    database.execute("DROP TABLE IF EXISTS messages_fts5")
    database.execute(
        "UPDATE OR IGNORE messages SET id = (max(0, min(send_at / 1000000, 4398046511103)) << 21) + (id & 2097151)"
    )
