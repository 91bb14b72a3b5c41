"""`ishiki sessions`, as somebody at a terminal or a script uses it."""

import asyncio
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bots.cli import app
from core.archive.profiles import Profiles
from core.archive.store import Store
from core.clock import now_ms
from core.codec import encode
from core.confirmations.folder import Folder
from core.entries import TurnDone, TurnStart, turn_event
from core.ids import SessionId, TurnId, new_uuid
from tests.builders import SESSION, a_confirmation, a_task

OTHER = SessionId("tg--100")
OWN = SessionId("cli-00000000-0000-4000-8000-000000000001")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ISHIKI_DATA_DIR", "kept")
    for session in (SESSION, OTHER, OWN):
        (tmp_path / "kept" / "runtimes" / session).mkdir(parents=True)
    return tmp_path / "kept"


@pytest.fixture
def run() -> Run:
    def invoke(*words: str) -> tuple[int, str, str]:
        result = CliRunner().invoke(app, words)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout, result.stderr

    return invoke


def a_turn(data: Path, session: SessionId, at: int) -> None:
    turn = TurnId(new_uuid())
    lines = [turn_event(TurnStart(turn_id=turn), now=at), turn_event(TurnDone(turn_id=turn), now=at)]
    (data / "runtimes" / session / "events.jsonl").write_bytes(b"".join(encode(line) + b"\n" for line in lines))


def in_database(data: Path) -> None:
    async def write() -> None:
        (data / ".store").mkdir(exist_ok=True)
        store = Store.open(data / ".store" / "history.db")
        await Profiles(store).entitle(SESSION, "#films\x1b[2J [bold](Film club)")
        await Profiles(store).entitle(OTHER, "A group")
        await Profiles(store).set(OTHER, name="By hand")
        await store.put_outbox(f"deliver:{OTHER}:e1", OTHER, "parked", "422")
        await store.put_outbox(f"speech:{OTHER}", OTHER, "sent", "{}")

        def live(database: sqlite3.Connection) -> None:
            with database:
                database.execute("INSERT INTO live VALUES (?, ?)", (f"action:{OWN}:t", now_ms() + 60_000))
                database.execute("INSERT INTO live VALUES (?, ?)", (f"action:{OTHER}:t", 1))

        await store.run(live)
        await store.close()

    asyncio.run(write())


def test_each_session_is_a_row_with_what_somebody_has_to_look_at(data: Path, run: Run):
    a_turn(data, SESSION, 1_793_600_000_000)
    a_turn(data, OTHER, 1_793_700_000_000)
    Folder(lambda session: data / "runtimes" / session).write(a_confirmation())
    in_database(data)
    code, output, errors = run("sessions", "--json")
    assert (code, errors) == (0, "")
    rows = [json.loads(line) for line in output.splitlines()]
    assert [row["session"] for row in rows] == [OTHER, SESSION, OWN]
    nothing: dict[str, object] = {
        "open": 0, "parked": 0, "silentTurns": 0, "failedTurns": 0, "active": False, "interrupted": None,
        "resumable": [],
    }  # fmt: skip
    assert rows[0] == nothing | {
        "session": OTHER, "name": "By hand", "platform": "telegram", "entries": 2, "lastActivity": 1_793_700_000_000,
        "parked": 1, "silentTurns": 1,
    }  # fmt: skip
    assert (rows[1]["open"], rows[1]["platform"]) == (1, "discord")
    assert (rows[2]["platform"], rows[2]["entries"], rows[2]["lastActivity"]) == ("terminal", 0, None)
    assert [row["active"] for row in rows] == [False, False, True]
    code, output, _ = run("sessions")
    assert code == 0
    assert "\x1b" not in output
    assert "#films[2J [bold](Film club)" in output


def test_a_folder_without_database_and_with_the_database_of_an_older_version_is_read_as_it_is(data: Path, run: Run):
    assert run("sessions", "--json")[1].count("\n") == 3
    in_database(data)
    store = Store.open(data / ".store" / "history.db")

    async def older() -> None:
        await store.run(lambda database: database.execute("ALTER TABLE session DROP COLUMN title"))
        await store.run(lambda database: database.execute("DROP TABLE live"))
        await store.close()

    asyncio.run(older())
    assert run("sessions", "--json")[1].count("\n") == 3


def test_a_turn_that_was_cut_off_is_named_with_what_of_it_waits_for_an_answer(data: Path, run: Run):
    turn = TurnId(new_uuid())
    log = data / "runtimes" / SESSION / "events.jsonl"
    log.write_bytes(encode(turn_event(TurnStart(turn_id=turn), now=5)) + b"\n")
    Folder(lambda session: data / "runtimes" / session).write(a_confirmation(a_task(1), turn_id=turn))
    rows = {row["session"]: row for row in map(json.loads, run("sessions", "--json")[1].splitlines())}
    assert (rows[SESSION]["interrupted"], rows[SESSION]["resumable"]) == (turn, [a_task(1)])
    assert (rows[OTHER]["interrupted"], rows[OTHER]["resumable"]) == (None, [])
    assert "interrupted" in run("sessions")[1]


def test_a_look_changes_nothing_in_the_folder(data: Path, run: Run):
    before = {path: path.stat().st_mtime_ns for path in data.rglob("*")}
    assert run("sessions")[0] == 0
    assert {path: path.stat().st_mtime_ns for path in data.rglob("*")} == before
