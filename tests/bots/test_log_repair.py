"""`ishiki log repair`, as an operator uses it."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from core.codec import encode
from core.entries import custom_message
from core.log.records import Record, pack
from core.sessions.directory import FolderLock
from tests.builders import SESSION, a_message

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "tests" / "samples"
BROKEN = (SAMPLES / "broken.jsonl").read_bytes()
SOUND = (SAMPLES / "sample-session.jsonl").read_bytes()
WITHOUT = b"".join(line for number, line in enumerate(BROKEN.splitlines(keepends=True), 1) if number != 5)

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with one sound and one broken session."""
    for session, content in (("dc-1", SOUND), ("tg--2", BROKEN)):
        path = tmp_path / "kept" / "runtimes" / session / "events.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    return tmp_path / "kept"


@pytest.fixture
def run(data: Path) -> Run:
    """The whole program, as its own process: it owns the folder, and says things through its diagnostics."""

    def invoke(*words: str) -> tuple[int, str, str]:
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "ISHIKI_DATA_DIR": str(data)}
        command = [sys.executable, "-c", "from bots.cli import main; main()", "log", "repair", *words]
        ran = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=data.parent, check=False)
        return ran.returncode, ran.stdout, ran.stderr

    return invoke


def log_of(data: Path, session: str) -> Path:
    return data / "runtimes" / session / "events.jsonl"


def backups(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.backup-*"))


def test_all_sessions_are_repaired_and_the_report_says_what_went_and_where_it_lies(run: Run, data: Path):
    code, out, err = run()
    (backup,) = backups(log_of(data, "tg--2"))
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "dc-1: nothing to repair",
        "tg--2: line 5 is removed: no JSON, 617 bytes from byte 1798",
        f"tg--2: 1 line removed; as it was: {backup}",
    ]
    assert log_of(data, "tg--2").read_bytes() == WITHOUT
    assert backup.read_bytes() == BROKEN
    assert log_of(data, "dc-1").read_bytes() == SOUND
    assert backups(log_of(data, "dc-1")) == []
    assert run("tg--2") == (0, "tg--2: nothing to repair\n", "")


def test_the_report_for_programs_names_number_place_and_length_and_nothing_of_the_content(run: Run, data: Path):
    code, out, err = run("--json")
    sound, repaired = map(json.loads, out.splitlines())
    assert (code, err) == (0, "")
    assert sound == {"session": "dc-1", "removed": 0, "bytes": 0, "lines": [], "backup": None}
    (backup,) = backups(log_of(data, "tg--2"))
    assert repaired == {
        "session": "tg--2", "removed": 1, "bytes": 617, "backup": str(backup),
        "lines": [{"line": 5, "offset": 1798, "length": 617, "torn": False}],
    }  # fmt: skip
    assert "kettle" not in out


def test_one_session_that_is_named_is_repaired_and_no_other(run: Run, data: Path):
    log_of(data, "dc-1").write_bytes(BROKEN)
    assert run("dc-1")[0] == 0
    assert log_of(data, "dc-1").read_bytes() == WITHOUT
    assert log_of(data, "tg--2").read_bytes() == BROKEN


def test_a_bare_file_is_repaired_with_its_backup_beside_it(run: Run, tmp_path: Path):
    path = tmp_path / "copy.jsonl"
    path.write_bytes(BROKEN + b'{"torn')
    code, out, _ = run(str(path))
    assert code == 0
    assert "line 10 is removed: torn tail, 6 bytes from byte 4036" in out
    assert path.read_bytes() == WITHOUT
    assert [backup.read_bytes() for backup in backups(path)] == [BROKEN + b'{"torn']


@pytest.mark.parametrize("way", ["all", "session", "file", "link"])
def test_while_somebody_holds_the_folder_it_is_refused_and_says_who(run: Run, data: Path, tmp_path: Path, way: str):
    (tmp_path / "link").symlink_to(log_of(data, "tg--2"))
    words = {"all": [], "session": ["tg--2"], "file": [str(log_of(data, "tg--2"))], "link": [str(tmp_path / "link")]}
    lock = FolderLock(data)
    try:
        code, out, err = run(*words[way])
    finally:
        lock.release()
    assert (code, out) == (2, "")
    assert f"is held by process {os.getpid()} on " in err
    assert len(err.splitlines()) == 1
    assert log_of(data, "tg--2").read_bytes() == BROKEN
    assert run(*words[way])[0] == 0
    assert log_of(data, "tg--2").read_bytes() == WITHOUT


def test_what_the_journal_holds_is_put_back_first(run: Run, data: Path):
    line = encode(custom_message(a_message(1, "from the journal"), now=1)) + b"\n"
    (data / ".store").mkdir()
    records = [Record(SESSION, 0, b"bad\n" + line, {}), Record("tg--2", len(BROKEN), line, {})]
    (data / ".store" / "journal").write_bytes(b"".join(pack([record], b"12345678") for record in records))
    with log_of(data, "tg--2").open("ab") as file:
        file.write(line[:30])
    code, out, _ = run(SESSION, "tg--2", "--json")
    assert code == 0
    assert [json.loads(each)["removed"] for each in out.splitlines()] == [1, 1]
    assert log_of(data, SESSION).read_bytes() == line
    assert log_of(data, "tg--2").read_bytes() == WITHOUT + line
    assert (data / ".store" / "journal").read_bytes() == b""


def test_where_the_journal_cannot_be_put_back_the_log_is_left_alone_and_the_others_go_on(run: Run, data: Path):
    """Its records name places in the file as it is."""
    log_of(data, "dc-1").unlink()
    log_of(data, "dc-1").mkdir()
    (data / ".store").mkdir()
    (data / ".store" / "journal").write_bytes(pack([Record("dc-1", 0, b"{}\n", {})], b"12345678"))
    code, out, err = run()
    assert code == 1
    assert "dc-1 is not repaired (the journal still holds lines of it that could not be put back)" in err
    assert "tg--2: 1 line removed" in out


def test_the_followers_are_sent_to_look_for_their_places(run: Run, data: Path):
    (data / ".store").mkdir()
    assert run("dc-1")[0] == 0
    assert not (data / ".store" / "history.db").exists(), "a log alone needs no database"
    line = BROKEN.splitlines(keepends=True)[0]
    first = json.loads(line)["id"]
    with sqlite3.connect(data / ".store" / "history.db") as database:
        database.execute("CREATE TABLE cursor (name TEXT, session_id TEXT, value TEXT, PRIMARY KEY (name, session_id))")
        database.execute("INSERT INTO cursor VALUES ('deliver', 'tg--2', ?)", (f"{first} {len(line)}",))
    database.close()
    assert run("tg--2")[0] == 0
    with sqlite3.connect(data / ".store" / "history.db") as database:
        assert database.execute("SELECT value FROM cursor").fetchall() == [(f"{first} 1",)]
    database.close()


def test_one_that_cannot_be_repaired_is_named_and_the_others_go_on(run: Run, data: Path):
    path = log_of(data, "dc-1")
    path.unlink()
    path.mkdir()
    code, out, err = run()
    assert code == 1
    assert err == "ishiki: dc-1 is not repaired (it is no regular file); mend that and run it again\n"
    assert "tg--2: 1 line removed" in out
    assert log_of(data, "tg--2").read_bytes() == WITHOUT


def test_what_a_killed_repair_left_is_gone_after_the_next(run: Run, data: Path):
    left = log_of(data, "tg--2").with_name(".events.jsonl.repair-0123abcd")
    shutil.copy(log_of(data, "tg--2"), left)
    assert run()[0] == 0
    assert not left.exists()


def test_without_a_data_folder_nothing_is_made(run: Run, data: Path):
    shutil.rmtree(data)
    code, _, err = run()
    assert code == 2
    assert "is no data folder" in err
    assert not data.exists()
