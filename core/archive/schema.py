"""The tables of history.db, by version (sessions.md section 2). A column more is a migration, never a new meaning."""

import sqlite3
from typing import Final

from core.archive.older import adopt, index_messages
from core.archive.words import TOKENIZER

ARCHIVED: Final = 5
"""The version from which on messages are kept here. Their ids are in order of time: newest first needs no sorting."""

MIGRATIONS: Final = (
    """
    CREATE TABLE IF NOT EXISTS cursor (
        name TEXT NOT NULL, session_id TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (name, session_id)
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS outbox (
        key TEXT PRIMARY KEY, session_id TEXT NOT NULL, state TEXT NOT NULL, record TEXT NOT NULL,
        updated_at INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS parked (
        id INTEGER PRIMARY KEY, platform TEXT NOT NULL, reason TEXT NOT NULL, raw TEXT NOT NULL, at INTEGER NOT NULL
    );
    """,
    """
    CREATE TABLE IF NOT EXISTS session (
        session_id TEXT PRIMARY KEY, self_id TEXT NOT NULL DEFAULT '', name TEXT NOT NULL DEFAULT '',
        model TEXT NOT NULL DEFAULT 'auto', reasoning TEXT NOT NULL DEFAULT 'medium', role TEXT NOT NULL DEFAULT '',
        rule TEXT NOT NULL DEFAULT '', chat_id TEXT NOT NULL DEFAULT '', guild_id TEXT NOT NULL DEFAULT '',
        channel_id TEXT NOT NULL DEFAULT '', user_id TEXT NOT NULL DEFAULT '', business_id TEXT NOT NULL DEFAULT '',
        successor TEXT NOT NULL DEFAULT '', origin TEXT NOT NULL DEFAULT '',
        created_at INTEGER NOT NULL DEFAULT 0, last_at INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX IF NOT EXISTS session_self_id ON session (self_id) WHERE self_id <> '';
    CREATE INDEX IF NOT EXISTS session_chat_id ON session (chat_id) WHERE chat_id <> '';
    CREATE INDEX IF NOT EXISTS session_channel_id ON session (channel_id) WHERE channel_id <> '';
    CREATE INDEX IF NOT EXISTS session_name ON session (name) WHERE name <> '';
    CREATE TABLE IF NOT EXISTS decision (
        task_hash TEXT PRIMARY KEY, session_id TEXT NOT NULL, status TEXT NOT NULL, decided_at INTEGER NOT NULL,
        record TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS decision_decided_at ON decision (decided_at);
    CREATE TABLE IF NOT EXISTS allow_rule (
        session_id TEXT NOT NULL, tool TEXT NOT NULL, args_hash TEXT NOT NULL, granted_by TEXT NOT NULL,
        granted_at INTEGER NOT NULL, PRIMARY KEY (session_id, tool, args_hash, granted_by)
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE IF NOT EXISTS horizon (
        platform TEXT PRIMARY KEY, since INTEGER NOT NULL, complete INTEGER NOT NULL
    ) WITHOUT ROWID;
    """,
    """
    ALTER TABLE session ADD COLUMN title TEXT NOT NULL DEFAULT '';
    CREATE TABLE IF NOT EXISTS live (key TEXT PRIMARY KEY, expires_at INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS pairing (
        code TEXT PRIMARY KEY, platform TEXT NOT NULL, session_id TEXT NOT NULL UNIQUE, title TEXT NOT NULL,
        user_id TEXT NOT NULL, user_name TEXT NOT NULL, created_at INTEGER NOT NULL, expires_at INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS paired (
        session_id TEXT PRIMARY KEY, platform TEXT NOT NULL, paired_at INTEGER NOT NULL
    ) WITHOUT ROWID;
    """,
    f"""
    CREATE TABLE IF NOT EXISTS messages (
        id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, send_at INTEGER NOT NULL, role TEXT NOT NULL,
        content TEXT NOT NULL, sender TEXT NOT NULL DEFAULT '', entry_id TEXT NOT NULL DEFAULT '',
        message_id TEXT NOT NULL DEFAULT '', revision INTEGER NOT NULL DEFAULT 0, hidden INTEGER NOT NULL DEFAULT 0
    );
    CREATE UNIQUE INDEX IF NOT EXISTS messages_entry ON messages (session_id, entry_id) WHERE entry_id <> '';
    CREATE INDEX IF NOT EXISTS messages_send_at ON messages (session_id, send_at);
    CREATE INDEX IF NOT EXISTS messages_message ON messages (session_id, message_id) WHERE message_id <> '';
    CREATE TABLE IF NOT EXISTS retracted (
        session_id TEXT NOT NULL, message_id TEXT NOT NULL, PRIMARY KEY (session_id, message_id)
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS message_meta (session_id TEXT PRIMARY KEY, start_at INTEGER NOT NULL DEFAULT 0);
    CREATE VIRTUAL TABLE messages_fts5 USING fts5(
        content, pairs, session, content='', columnsize=0, tokenize="{TOKENIZER}"
    );
    CREATE TABLE IF NOT EXISTS action_history (
        id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, task_hash TEXT NOT NULL, end_at INTEGER NOT NULL,
        model TEXT NOT NULL DEFAULT '', reasoning TEXT NOT NULL DEFAULT '', objective TEXT NOT NULL DEFAULT '',
        tool_results TEXT NOT NULL DEFAULT '[]', reply TEXT NOT NULL DEFAULT ''
    );
    CREATE UNIQUE INDEX IF NOT EXISTS action_task ON action_history (session_id, task_hash) WHERE task_hash <> '';
    CREATE INDEX IF NOT EXISTS action_session_end ON action_history (session_id, end_at);
    CREATE INDEX IF NOT EXISTS action_end ON action_history (end_at);
    CREATE TABLE IF NOT EXISTS file_history (
        id INTEGER PRIMARY KEY, dir TEXT NOT NULL, name TEXT NOT NULL, action TEXT NOT NULL, content BLOB,
        hash TEXT NOT NULL DEFAULT '', size INTEGER NOT NULL DEFAULT 0, truncated INTEGER NOT NULL DEFAULT 0,
        trash_path TEXT NOT NULL DEFAULT '', session_id TEXT NOT NULL DEFAULT '', task_id TEXT NOT NULL DEFAULT '',
        tool TEXT NOT NULL DEFAULT '', changed_at INTEGER NOT NULL
    );
    CREATE UNIQUE INDEX IF NOT EXISTS file_task ON file_history (dir, name, task_id, session_id) WHERE task_id <> '';
    CREATE INDEX IF NOT EXISTS file_path ON file_history (dir, name, changed_at);
    CREATE INDEX IF NOT EXISTS file_folder ON file_history (dir, changed_at);
    CREATE INDEX IF NOT EXISTS file_session ON file_history (session_id, changed_at);
    CREATE INDEX IF NOT EXISTS file_changed ON file_history (changed_at);
    CREATE TABLE IF NOT EXISTS usage (
        session_id TEXT NOT NULL DEFAULT '', send_at INTEGER NOT NULL, model TEXT NOT NULL DEFAULT '',
        input INTEGER NOT NULL DEFAULT 0, output INTEGER NOT NULL DEFAULT 0, "write" INTEGER NOT NULL DEFAULT 0,
        hit INTEGER NOT NULL DEFAULT 0, elapsed_ms INTEGER NOT NULL DEFAULT 0, tool_calls TEXT NOT NULL DEFAULT '[]'
    );
    CREATE INDEX IF NOT EXISTS usage_send_at ON usage (send_at);
    CREATE INDEX IF NOT EXISTS usage_session ON usage (session_id);
    """,
)


def migrate(database: sqlite3.Connection) -> None:
    """Bring a database to the newest version; tables that are not ours are left alone."""
    version: int = database.execute("PRAGMA user_version").fetchone()[0]
    for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
        database.execute("BEGIN IMMEDIATE")
        with database:
            if number == 1:
                adopt(database)
            for statement in script.split(";"):
                database.execute(statement)
            if number == ARCHIVED:
                index_messages(database)
            database.execute(f"PRAGMA user_version = {number}")
