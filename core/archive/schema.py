"""The tables of history.db, by version (sessions.md section 2). A column more is a migration, never a new meaning."""

import sqlite3
from typing import Final

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
)


def migrate(database: sqlite3.Connection) -> None:
    """Bring a database to the newest version; tables that are not ours are left alone."""
    version: int = database.execute("PRAGMA user_version").fetchone()[0]
    for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
        database.executescript(f"BEGIN; {script} PRAGMA user_version = {number}; COMMIT;")
