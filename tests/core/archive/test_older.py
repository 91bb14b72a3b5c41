"""A database of an older program opens: what it has is found, duplicates go, leftovers stay."""

import sqlite3
from contextlib import closing
from pathlib import Path

from core.archive.schema import migrate
from core.archive.search import search
from core.archive.store import Store

OLDER = """
CREATE TABLE session (session_id TEXT PRIMARY KEY, name TEXT, model TEXT, role TEXT);
INSERT INTO session VALUES ('cli-a', 'mine', NULL, 'a poet');
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, send_at INTEGER, role TEXT, content TEXT);
INSERT INTO messages (session_id, send_at, role, content) VALUES
    ('cli-a', 1700000000000000000, 'user', '早上好'), ('cli-a', 1600000000000000000, 'assistant', '早 morning');
CREATE VIRTUAL TABLE messages_fts5 USING fts5(content, content='messages', content_rowid='id');
CREATE TRIGGER messages_ai AFTER INSERT ON messages BEGIN
    INSERT INTO messages_fts5 (rowid, content) VALUES (new.id, new.content); END;
CREATE TABLE action_history (id INTEGER PRIMARY KEY, session_id TEXT, end_at INTEGER, objective TEXT);
INSERT INTO action_history (session_id, end_at, objective) VALUES ('cli-a', 1, 'x'), ('cli-a', 2, 'y');
CREATE TABLE file_history (id INTEGER PRIMARY KEY, dir TEXT, name TEXT, content BLOB, session_id TEXT, task_id TEXT,
    changed_at INTEGER);
CREATE INDEX file_history_old ON file_history (dir, name, task_id, session_id);
INSERT INTO file_history (dir, name, content, session_id, task_id, changed_at) VALUES
    ('/d', 'f', 'first', 'cli-a', 't1', 1), ('/d', 'f', 'second', 'cli-a', 't1', 2), ('/d', 'f', 'a', 'cli-a', '', 3),
    ('/d', 'f', 'b', 'cli-a', '', 4);
CREATE TABLE usage (session_id TEXT, send_at INTEGER, model TEXT, input INTEGER, output INTEGER);
INSERT INTO usage VALUES ('cli-a', 1700000000, 'openai@gpt-5', 3, 4);
CREATE TABLE note (id INTEGER, text TEXT);
INSERT INTO note VALUES (1, 'left over');
CREATE VIRTUAL TABLE note_fts5 USING fts5(text);
CREATE TABLE state (key TEXT, value TEXT);
"""


def make(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(OLDER)


async def test_an_older_database_opens_and_is_searched(tmp_path: Path) -> None:
    make(tmp_path / "history.db")
    store = Store.open(tmp_path / "history.db")
    hits = await store.run(lambda database: search(database, "早"))
    assert [hit.content for hit in hits] == ["早上好", "早 morning"]
    session = "SELECT name, model, reasoning, role, title, last_at FROM session"
    assert await store.run(lambda database: database.execute(session).fetchall()) == [
        ("mine", "auto", "medium", "a poet", "", 0)
    ]
    kept = "SELECT content FROM file_history ORDER BY id"
    assert await store.run(lambda database: database.execute(kept).fetchall()) == [("first",), ("a",), ("b",)]
    assert await store.run(lambda database: database.execute("SELECT text FROM note").fetchall()) == [("left over",)]
    counts = "SELECT (SELECT count(*) FROM action_history), (SELECT sum(elapsed_ms) FROM usage)"
    assert await store.run(lambda database: database.execute(counts).fetchall()) == [(2, 0)]
    await store.close()


def test_both_ways_lead_to_the_same_columns(tmp_path: Path) -> None:
    make(tmp_path / "older.db")
    columns: list[dict[str, set[str]]] = []
    for name in ("older", "new"):
        with closing(sqlite3.connect(tmp_path / f"{name}.db")) as database:
            migrate(database)
            migrate(database)
            tables = ("session", "messages", "message_meta", "action_history", "file_history", "usage")
            columns.append(
                {table: {str(row[1]) for row in database.execute(f"PRAGMA table_info({table})")} for table in tables}
            )
    assert columns[0] == columns[1]


def test_a_kill_while_it_is_opened_leaves_it_as_it_was_or_done(tmp_path: Path) -> None:
    make(tmp_path / "older.db")
    with closing(sqlite3.connect(tmp_path / "older.db")) as database:
        steps = 0

        def stop() -> bool:
            nonlocal steps
            steps += 1
            return steps > 40

        database.set_progress_handler(stop, 50)
        try:
            migrate(database)
        except sqlite3.OperationalError:
            database.set_progress_handler(None, 0)
        migrate(database)
        assert [hit.content for hit in search(database, "早上好")] == ["早上好"]
