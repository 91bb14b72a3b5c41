"""`ishiki log`, as somebody at a terminal or a script uses it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bots.logs import app
from core.codec import encode
from core.entries import custom_message
from core.log.records import Record, pack
from tests.builders import SESSION, a_message

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "tests" / "samples"
SAMPLE = str(SAMPLES / "sample-session.jsonl")
BROKEN = str(SAMPLES / "broken.jsonl")
TURN = "e061c676-0701-4e5c-b2c8-565cf9462c91"
COMMAND = [sys.executable, "-c", "from bots.cli import main; main()", "log"]

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with one good and one broken session; no .env is read."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ISHIKI_DATA_DIR", "kept")
    for session, sample in (("dc-1", SAMPLE), ("tg--2", BROKEN)):
        path = tmp_path / "kept" / "runtimes" / session / "events.jsonl"
        path.parent.mkdir(parents=True)
        shutil.copy(sample, path)
    (tmp_path / "kept" / "runtimes" / "lost+found").mkdir()
    return tmp_path / "kept"


@pytest.fixture
def run() -> Run:
    def invoke(*words: str) -> tuple[int, str, str]:
        result = CliRunner().invoke(app, words)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout, result.stderr

    return invoke


def objects(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


# --- stats --------------------------------------------------------------------------------------------------------


def test_stats_count_as_the_recipes_of_the_format_do(run: Run):
    code, out, err = run("stats", SAMPLE, "--json")
    (found,) = objects(out)
    assert (code, err) == (0, "")
    assert found["types"] == {"message": 6, "event": 2, "ishiki.images": 1}
    assert found["messages"] == {"ishiki.message.created": 2, "ishiki.attachment": 1, "assistant": 2, "tool": 1}
    assert found["file"] == SAMPLE


def test_stats_of_all_sessions_name_the_bad_line_of_one(run: Run, data: Path):
    code, out, err = run("stats")
    assert (code, err) == (0, "")
    assert "== dc-1" in out
    assert "== tg--2" in out
    assert "1 bad line: 5" in out
    assert "lost+found" not in out
    assert [found["session"] for found in objects(run("stats", "--json")[1])] == ["dc-1", "tg--2"]


def test_a_session_and_a_file_may_be_named_together(run: Run, data: Path):
    _, out, _ = run("stats", "tg--2", SAMPLE, "--json")
    assert [found.get("session") or found.get("file") for found in objects(out)] == ["tg--2", SAMPLE]


# --- timeline -----------------------------------------------------------------------------------------------------


def test_a_timeline_tells_when_who_and_what(run: Run):
    code, out, err = run("timeline", SAMPLE)
    assert (code, err) == (0, "")
    assert [line[21:] for line in out.splitlines()] == [
        "阿岚: [image]",
        "📎 a file (image/*)",
        f"▶ turn {TURN} begins",
        'assistant: → read {"url":"asset://0190f9f3-3ff8-7000-8000-000000000001?view=meta"}',
        'tool: ← read "image/png, 68 bytes"',
        "the model saw 1 images and let go of 1",
        "assistant: done",
        f"■ turn {TURN} is done",
        "阿岚: 晚安",
    ]


def test_the_timeline_of_a_turn_has_its_lines_and_no_others(run: Run):
    code, out, _ = run("timeline", SAMPLE, "--turn", TURN, "--json")
    found = objects(out)
    assert code == 0
    assert [(line["line"], line["type"], line["kind"]) for line in found] == [
        (3, "event", "turn.start"), (4, "message", "assistant"), (5, "message", "tool"), (6, "ishiki.images", None),
        (7, "message", "assistant"), (8, "event", "turn.done"),
    ]  # fmt: skip
    assert {line["turnId"] for line in found} == {TURN}


def test_a_turn_that_no_log_holds_is_told(run: Run):
    code, out, err = run("timeline", SAMPLE, "--turn", "nope")
    assert (code, out) == (1, "")
    assert err == "ishiki: no log holds a turn 'nope'; `ishiki log timeline` shows the turns\n"


def test_every_kind_of_line_has_something_to_read(run: Run):
    code, out, err = run("timeline", str(SAMPLES / "format-lines.jsonl"))
    assert (code, err) == (0, "")
    for words in (
        "Film club (anonymous-admin, edit 1 of 812, forwarded from Programme, answering 小林): @ishiki Friday, not Th",
        "✗ message 900000000000001001 was retracted (found out by comparing)",
        "📎 page.png (image/png, 48211 bytes)",
        "failed (RuntimeUnavailable: the runtime answered 503)",
        "was ended (stopped by 阿岚)",
        "(thinks) she sent a picture",
        "user: host note: warm-up",
        "2 messages were folded; 1982 tokens are free",
        "summary: ## 人物与关系",
        "a script stored 2 values and deleted 1",
    ):
        assert words in out


def test_a_bad_line_is_named_and_the_others_are_shown(run: Run):
    code, out, err = run("timeline", BROKEN)
    assert code == 0
    assert len(out.splitlines()) == 8
    assert "line 5 is skipped: JSON is malformed" in err


HOSTILE = "a\x1b[2J\x9b31m\u202egnp.exe\u2066\x07\r\n2026-01-01 00:00:00  admin: [bold red]obey[/]"


def test_what_people_wrote_cannot_move_the_terminal_or_forge_an_entry(run: Run, tmp_path: Path):
    path = tmp_path / "hostile.jsonl"
    message = a_message(1, HOSTILE, user={"id": "1", "name": HOSTILE})
    path.write_bytes(encode(custom_message(message, now=1)) + b"\n")
    for words in (
        ("timeline",),
        ("tail",),
        ("timeline", "--json"),
        ("tail", "--json"),
        ("stats",),
        ("check", "--json"),
    ):
        _, out, err = run(*words, str(path))
        assert not set(out + err) & set("\x1b\x9b\x07\r\u202e\u2066")
    first, second = run("timeline", str(path))[1].splitlines()
    assert first.endswith("[bold red]obey[/]: a[2J31mgnp.exe")
    assert second == "    2026-01-01 00:00:00  admin: [bold red]obey[/]"
    (line,) = objects(run("tail", "--json", str(path))[1])
    assert line == json.loads(path.read_bytes()), "escaped, and the same to a program"


# --- tail ---------------------------------------------------------------------------------------------------------


def test_tail_shows_the_last_lines_and_with_json_the_lines_themselves(run: Run):
    lines = (SAMPLES / "sample-session.jsonl").read_text().splitlines()
    assert run("tail", "-n", "2", "--json", SAMPLE)[1].splitlines() == lines[-2:]
    assert run("tail", "--json", SAMPLE)[1].splitlines() == lines
    assert run("tail", "-n", "0", SAMPLE) == (0, "", "")
    assert "阿岚: 晚安" in run("tail", "-n", "1", SAMPLE)[1]


def test_tail_of_a_huge_log_answers_at_once(run: Run, tmp_path: Path):
    path = tmp_path / "huge.jsonl"
    line = (SAMPLES / "sample-session.jsonl").read_bytes().splitlines()[-1] + b"\n"
    with path.open("wb") as file:
        file.truncate(2_000_000_000)  # a hole: reading it all would take seconds, and a line of 2 GB
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + line * 20)
    code, out, _ = run("tail", "-n", "3", str(path))
    assert (code, len(out.splitlines())) == (0, 3)


def test_tail_goes_on_with_new_lines_also_of_new_sessions(data: Path, tmp_path: Path):
    line = encode(custom_message(a_message(1, "good morning"), now=1)) + b"\n"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [*COMMAND, "tail", "-f", "-n", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True
    ) as following:
        assert following.stdout is not None
        shown = [following.stdout.readline() for _ in range(4)]
        with (data / "runtimes" / "dc-1" / "events.jsonl").open("ab") as file:
            file.write(line[:50])
            file.flush()
            file.write(line[50:])
        shown += [following.stdout.readline() for _ in range(2)]
        new = data / "runtimes" / "dc-77"
        new.mkdir()
        (new / "events.jsonl").write_bytes(line)
        shown += [following.stdout.readline() for _ in range(2)]
        following.terminate()
    assert [word[:8] for word in shown[::2]] == ["== dc-1\n", "== tg--2", "== dc-1\n", "== dc-77"]
    assert all("good morning" in word for word in shown[5::2])


# --- check --------------------------------------------------------------------------------------------------------


def test_check_finds_nothing_in_a_good_file_and_says_so(run: Run):
    assert run("check", SAMPLE) == (0, "1 log checked, nothing found\n", "")
    assert run("check", "--json", SAMPLE) == (0, "", "")


def test_check_names_the_bad_line_and_ends_with_code_1(run: Run):
    code, out, _ = run("check", BROKEN)
    assert code == 1
    assert "line 5: json: not JSON" in out
    (found,) = objects(run("check", "--json", BROKEN)[1])
    assert (found["file"], found["line"], found["rule"]) == (BROKEN, 5, "json")


def test_check_of_a_session_looks_at_its_sidecars_and_of_a_bare_file_does_not(run: Run, data: Path):
    code, out, _ = run("check", "dc-1", "--json")
    assert code == 1
    assert {found["rule"] for found in objects(out)} == {"sidecar"}
    assert run("check", str(data / "runtimes" / "dc-1" / "events.jsonl"))[0] == 0


def test_what_only_the_journal_holds_is_seen_and_nothing_is_written(run: Run, data: Path):
    line = encode(custom_message(a_message(1, "from the journal"), now=1)) + b"\n"
    (data / ".store").mkdir()
    record = Record(session=SESSION, offset=0, content=line, sidecars={})
    (data / ".store" / "journal").write_bytes(pack([record], b"12345678"))
    assert "from the journal" in run("tail", SESSION)[1]
    assert run("check", SESSION)[0] == 0
    assert SESSION in run("stats")[1]
    assert not (data / "runtimes" / SESSION).exists()


# --- wrong use ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["stats", "timeline", "tail", "check", "repair"])
def test_wrong_use_ends_with_code_2_and_one_sentence(run: Run, data: Path, command: str):
    for target, words in (
        ("dc-404", "there is no session dc-404"),
        ("nowhere.jsonl", "neither a session id nor a file"),
        (str(data), "is a folder"),
        ("/dev/null", "no regular file"),
        ("dc-1/../..", "neither a session id nor a file"),
        ("\x1b[2Jx", "[2Jx is neither"),
    ):
        code, out, err = run(command, target)
        assert (code, out) == (2, "")
        assert words in err
        assert len(err.splitlines()) == 1
        assert "\x1b" not in err


def test_without_a_data_folder_the_setting_is_named(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ISHIKI_DATA_DIR", raising=False)
    code, _, err = run("stats")
    assert code == 2
    assert "data is no data folder; set ISHIKI_DATA_DIR" in err


def test_a_log_that_cannot_be_read_is_named_and_the_others_go_on(run: Run, data: Path):
    path = data / "runtimes" / "dc-1" / "events.jsonl"
    path.unlink()
    path.mkdir()
    code, out, err = run("stats")
    assert code == 1
    assert err == "ishiki: dc-1 cannot be read (it is no regular file); check its owner, rights and disk\n"
    assert "== tg--2" in out


def test_a_binary_file_is_no_traceback(run: Run, tmp_path: Path):
    path = tmp_path / "noise"
    path.write_bytes(bytes(range(256)) * 40)
    assert run("check", str(path))[0] == 1
    for command in ("stats", "timeline", "tail"):
        assert run(command, str(path))[0] == 0


def test_an_empty_file_is_an_empty_log(run: Run, tmp_path: Path):
    (tmp_path / "empty").write_bytes(b"")
    for command in ("stats", "timeline", "tail", "check"):
        assert run(command, str(tmp_path / "empty"))[0] == 0


def test_a_reader_that_goes_away_ends_the_command_in_peace(tmp_path: Path):
    path = tmp_path / "long.jsonl"
    path.write_bytes((SAMPLES / "sample-session.jsonl").read_bytes() * 3000)
    with subprocess.Popen(
        [*COMMAND, "timeline", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 0
