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
)


def migrate(database: sqlite3.Connection) -> None:
    """Bring a database to the newest version; tables that are not ours are left alone."""
    version: int = database.execute("PRAGMA user_version").fetchone()[0]
    for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
        database.executescript(f"BEGIN; {script} PRAGMA user_version = {number}; COMMIT;")
