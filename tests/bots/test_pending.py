"""`ishiki pending` and `ishiki answer`, as somebody at a terminal or a script uses them."""

import asyncio
import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bots.cli import app
from core.archive.decisions import Decisions
from core.archive.store import Store
from core.clock import now_ms
from core.confirmations.folder import Folder
from core.confirmations.record import Person, Question, Record, Shown, Trouble
from core.ids import MessageId, SessionId, TaskHash
from core.sessions.directory import FolderLock
from tests.builders import MONA, OPERATOR, SESSION, a_confirmation, a_task, an_ask

ROOT = Path(__file__).parents[2]
OTHER = SessionId("tg--100")
COMMAND = [sys.executable, "-c", "from bots.cli import main; main()"]
RED_OR_BLUE = Question(question="Which colour?", detail="of the door", options=("red", "blue", "2"))
SIZES = Question(question="Which sizes?", options=("small", "large", "a, b"), multi_select=True)
WHY = Question(question="Why?")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with two sessions and no database; no .env is read."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ISHIKI_DATA_DIR", "kept")
    for session in (SESSION, OTHER):
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


def a_denial(task: TaskHash) -> Record:
    return a_confirmation(task, status="denied", choice="no", by=MONA, decided_at=2)


def put(data: Path, *records: Record) -> list[TaskHash]:
    folder = Folder(lambda session: data / "runtimes" / session)
    for record in records:
        folder.write(record)
    return [record.task_hash for record in records]


def on_disk(data: Path, task: TaskHash, session: SessionId = SESSION) -> Record:
    return Record.model_validate_json((data / "runtimes" / session / "pending" / f"{task}.json").read_bytes())


def in_database(data: Path, *rules: tuple[str, str, str, str, int], filed: Record | None = None) -> None:
    async def write() -> None:
        (data / ".store").mkdir(exist_ok=True)
        store = Store.open(data / ".store" / "history.db")
        decisions = Decisions(store)
        for session, tool, args_hash, by, at in rules:
            await decisions.grant(SessionId(session), tool, args_hash, by, at)
        if filed is not None:
            text = filed.model_dump_json(exclude_defaults=True)
            await decisions.put_decision(filed.task_hash, filed.session_id, filed.status, filed.decided_at or 0, text)
        await store.close()

    asyncio.run(write())


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.stat().st_size)
        for path in folder.rglob("*")
        if path.is_file()
    }


# --- pending ------------------------------------------------------------------------------------------------------


def test_nothing_asked_is_nothing_printed(run: Run, data: Path):
    assert run("pending") == (0, "", "")
    assert run("pending", "--json") == (0, "", "")
    assert run("pending", "--rules") == (0, "", "")
    assert not (data / ".store").exists()
    assert not (data / "ishiki.lock").exists()


def test_a_pipe_gets_what_is_asked_with_tabs_oldest_first(run: Run, data: Path):
    now = now_ms()
    shown = Shown(
        platform="telegram", channel_id="-100", thread_id=None, message_ids=(MessageId("5"),), question=0, posted_at=1
    )
    put(
        data,
        a_confirmation(a_task(1), at=now - 150_000, expires_at=now + 7_300_000, approvers="admins"),
        an_ask(RED_OR_BLUE, WHY, task=a_task(2), at=now - 400_000, session_id=OTHER, prompt=shown),
        a_confirmation(a_task(3), at=now, approvers="anyone", error=Trouble(message="the bot is blocked", at=now)),
    )
    code, out, err = run("pending")
    rows = [line.split("\t") for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert [row[0] for row in rows] == [a_task(2), a_task(1), a_task(3)]
    assert rows[0][1:6] == [OTHER, "ask", "(1/2) Which colour?", "Mona (11), admins", "6 min"]
    assert rows[0][7] == "telegram -100"
    assert rows[1][3:] == ['write_file {"path": "notes.md"}', "admins", "2 min", "2 h", "not shown yet"]
    assert rows[2][4] == "anyone there"
    assert rows[2][7] == "not shown: the bot is blocked"


def test_one_session_is_asked_for_by_its_id(run: Run, data: Path):
    put(data, a_confirmation(a_task(1)), a_confirmation(a_task(2), session_id=OTHER))
    code, out, _ = run("pending", OTHER, "--json")
    assert code == 0
    assert [json.loads(line)["task_hash"] for line in out.splitlines()] == [a_task(2)]


def test_json_is_the_record_as_in_its_file(run: Run, data: Path):
    (task,) = put(data, a_confirmation(text="May\u001b[31m I?"))
    _, out, _ = run("pending", "--json")
    assert json.loads(out) == json.loads((data / "runtimes" / SESSION / "pending" / f"{task}.json").read_text())
    assert "\u001b" not in out


def test_what_is_decided_or_over_is_not_open(run: Run, data: Path):
    put(
        data,
        a_denial(a_task(1)),
        a_confirmation(a_task(2), expires_at=5_000),
    )
    assert run("pending", "--json") == (0, "", "")


@pytest.mark.parametrize("session", ["nonsense", "../kept", "dc-1"])
def test_a_session_that_is_none_is_wrong_usage(run: Run, data: Path, session: str):
    code, out, err = run("pending", session)
    assert (code, out) == (2, "")
    assert err.startswith("ishiki: ")
    assert err.count("\n") == 1


def test_no_data_folder_is_wrong_usage_and_none_is_made(run: Run, data: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ISHIKI_DATA_DIR", "elsewhere")
    for words in (("pending",), ("answer", a_task(1), "yes")):
        code, out, err = run(*words)
        assert (code, out) == (2, "")
        assert "set ISHIKI_DATA_DIR" in err
    assert not Path("elsewhere").exists()


def test_reading_changes_nothing_and_works_while_somebody_holds_the_folder(run: Run, data: Path):
    put(data, a_confirmation(a_task(1)))
    in_database(data, (SESSION, "t", "a", "discord:11", 1))
    lock = FolderLock(data)
    store = Store.open(data / ".store" / "history.db")
    try:
        before = contents(data)
        assert run("pending", "--json")[0] == 0
        assert json.loads(run("pending", "--rules", "--json")[1])["tool"] == "t"
        assert contents(data) == before
    finally:
        asyncio.run(store.close())
        lock.release()


def test_rules_are_read_without_leaving_anything_beside_the_database(run: Run, data: Path):
    in_database(data, (SESSION, "t", "a", "discord:11", 1))
    before = contents(data)
    assert run("pending", "--rules")[0] == 0
    assert contents(data) == before


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_shown(run: Run, data: Path):
    put(data, a_confirmation(a_task(1)))
    folder = data / "runtimes" / SESSION / "pending"
    (folder / f"{a_task(2)}.json").write_text("{")
    (folder / f"{a_task(3)}.json").write_text((folder / f"{a_task(1)}.json").read_text())
    (folder / f".{a_task(4)}.json.abcd").write_text("{")
    code, out, err = run("pending")
    assert code == 1
    assert [line.split("\t")[0] for line in out.splitlines()] == [a_task(1)]
    assert err.count("cannot be read; `ishiki run` sets it aside") == 2
    assert (folder / f"{a_task(2)}.json").exists()


def test_what_comes_from_a_chat_cannot_move_the_terminal_or_be_markup(data: Path):
    nasty = "\x1b[2J[red]x[/red]\u202e\tTAB\nLINE"
    mona = Person(platform="discord", id="11", name=nasty)
    put(data, a_confirmation(a_task(1), tool=nasty, args=nasty, requester=mona))
    main, other = pty.openpty()
    environment = os.environ | {
        "ISHIKI_DATA_DIR": str(data),
        "COLUMNS": "200",
        "TERM": "xterm",
        "PYTHONPATH": str(ROOT),
    }
    ended = subprocess.run([*COMMAND, "pending"], stdout=other, stderr=subprocess.PIPE, env=environment, check=False)
    os.close(other)
    shown = os.read(main, 100_000).decode()
    os.close(main)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert "\x1b[2J" not in shown
    assert "\u202e" not in shown
    assert "[red]x[/red]" in shown
    assert "00000000 " not in shown.split("\n")[0]
    assert "what is asked" in shown


# --- rules --------------------------------------------------------------------------------------------------------


def test_rules_are_numbered_and_ended_by_their_number(run: Run, data: Path):
    in_database(data, (SESSION, "write", "a" * 64, "discord:11", 2), (OTHER, "read", "b" * 64, "admin cli:operator", 1))
    code, out, _ = run("pending", "--rules")
    assert code == 0
    rows = [line.split("\t") for line in out.splitlines()]
    assert [row[:5] for row in rows] == [
        ["1", OTHER, "read", "b" * 64, "admin cli:operator"],
        ["2", SESSION, "write", "a" * 64, "discord:11"],
    ]
    assert [line.split("\t")[0] for line in run("pending", SESSION, "--rules")[1].splitlines()] == ["2"]

    code, out, err = run("pending", "--revoke", "1")
    assert (code, err) == (0, "")
    assert f"1\t{OTHER}\tread\t" in out
    left = [json.loads(line) for line in run("pending", "--rules", "--json")[1].splitlines()]
    assert [(rule["number"], rule["tool"]) for rule in left] == [(1, "write")]


def test_a_number_that_is_none_or_of_another_session_ends_nothing(run: Run, data: Path):
    in_database(data, (SESSION, "write", "a" * 64, "discord:11", 2))
    assert run("pending", "--revoke", "2")[0] == 1
    assert run("pending", OTHER, "--revoke", "1")[0] == 1
    assert run("pending", "--revoke", "0")[0] == 2
    assert len(run("pending", "--rules")[1].splitlines()) == 1


# --- answer -------------------------------------------------------------------------------------------------------


def test_a_beginning_of_the_hash_is_enough(run: Run, data: Path):
    task = TaskHash("7d0f2b34-9a51-4f8e-9c11-0c2f5e6a7b80")
    put(data, a_confirmation(task), a_confirmation(a_task(1)))
    code, out, err = run("answer", "7D0F2B34", "YES")
    assert (code, err) == (0, "")
    assert out == f"{task} is approved; `ishiki run` hands it on at its next start\n"
    decided = on_disk(data, task)
    assert (decided.status, decided.choice, decided.by) == ("approved", "yes", OPERATOR)


@pytest.mark.parametrize(
    ("task", "code"),
    [
        ("0000000", 2),
        ("", 2),
        ("zzzzzzzz", 2),
        ("../../etc", 2),
        ("00000000-0000-4000-8000-0000000000012", 2),
        ("00000000-0000-4000-8000", 2),  # two begin so
        ("00000000-0000-4000-8000-000000000009", 1),
        ("ffffffff", 1),
    ],
)  # fmt: skip
def test_a_hash_that_names_none_or_several(run: Run, data: Path, task: str, code: int):
    put(data, a_confirmation(a_task(1)), a_confirmation(a_task(2)))
    found, out, err = run("answer", task, "yes")
    assert (found, out) == (code, "")
    assert err.startswith("ishiki: ")
    assert err.count("\n") == 1


def test_a_wrong_word_lists_those_that_fit(run: Run, data: Path):
    (task,) = put(data, a_confirmation(choices=("yes", "turn", "no")))
    for words in (("always",), ("yes", "no"), ("",)):
        code, _, err = run("answer", task, *words)
        assert (code, err) == (2, "ishiki: that is no choice here; give one of yes, turn, no\n")
    assert on_disk(data, task).is_open


def test_without_a_choice_it_shows_what_can_be_answered(run: Run, data: Path):
    first, second = put(data, a_confirmation(a_task(1)), an_ask(RED_OR_BLUE, SIZES, WHY, task=a_task(2)))
    code, out, err = run("answer", first)
    assert (code, err) == (2, "ishiki: no answer was given; give one of yes, no\n")
    assert "May I use write_file?" in out
    assert '"path": "notes.md"' in out
    code, out, err = run("answer", second)
    assert (code, err) == (2, "ishiki: no answer was given; give 3 answers, one for each question, or stop alone\n")
    assert "(1/3) Which colour?\n    of the door\n    one of these\n      1  red\n" in out


def test_questions_are_answered_by_number_word_or_in_ones_own_words(run: Run, data: Path):
    (task,) = put(data, an_ask(RED_OR_BLUE, RED_OR_BLUE, SIZES, SIZES, WHY))
    assert run("answer", task, "1", "2", "2, small,1", "a, b", "-1 is\tmine")[0] == 0
    assert [answer.answer for answer in on_disk(data, task).answers] == [
        "red", "2", ("small", "large"), ("a, b",), "-1 is\tmine",
    ]  # fmt: skip
    assert on_disk(data, task).status == "answered"


@pytest.mark.parametrize(
    "words",
    [
        ("\udcff", "x"),
        ("1", "\udcff"),
        ("1",),
        ("1", "1", "1"),
        ("4", "x"),
        ("0", "x"),
        ("green", "x"),
        ("1", " "),
        ("²", "x"),
    ],
)
def test_answers_that_fit_no_question_are_wrong_usage(run: Run, data: Path, words: tuple[str, ...]):
    (task,) = put(data, an_ask(RED_OR_BLUE, WHY))
    code, out, err = run("answer", task, *words)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert on_disk(data, task).is_open


def test_stop_ends_a_question(run: Run, data: Path):
    (task,) = put(data, an_ask(RED_OR_BLUE, WHY))
    assert run("answer", task, "stop")[0] == 0
    assert on_disk(data, task).status == "stopped"


def test_what_is_decided_expired_or_filed_is_told(run: Run, data: Path):
    put(data, a_denial(a_task(1)), a_confirmation(a_task(2), expires_at=5_000))
    in_database(data, filed=a_denial(TaskHash("7d0f2b34-9a51-4f8e-9c11-0c2f5e6a7b80")))
    tail = "; `ishiki pending` lists what is open\n"
    assert run("answer", a_task(1), "yes") == (1, "", f"ishiki: that is decided already: denied by Mona{tail}")
    assert run("answer", a_task(2), "yes") == (1, "", f"ishiki: that has expired, which counts as a no{tail}")
    assert run("answer", "7d0f2b34", "yes") == (1, "", f"ishiki: that is decided already: denied by Mona{tail}")


def test_a_folder_that_is_held_by_nobody_who_listens_is_code_2(data: Path):
    (task,) = put(data, a_confirmation())
    lock = FolderLock(data)
    environment = os.environ | {"ISHIKI_DATA_DIR": str(data), "PYTHONPATH": str(ROOT)}
    try:
        ended = subprocess.run(
            [*COMMAND, "answer", task, "yes"], capture_output=True, text=True, env=environment, check=False
        )
    finally:
        lock.release()
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("ishiki: whoever holds the data folder")
    assert ended.stderr.count("\n") == 1
    assert on_disk(data, task).is_open


def test_an_answer_is_printed_as_json_where_that_is_wanted(run: Run, data: Path):
    (task,) = put(data, a_confirmation(a_task(1)))
    code, out, err = run("answer", "--json", task, "no")
    assert (code, err) == (0, "")
    assert (json.loads(out)["task_hash"], json.loads(out)["status"]) == (task, "denied")
    code, out, err = run("answer", "--json", put(data, a_confirmation(a_task(2)))[0])
    assert (code, out) == (2, "")
    assert "give one of yes, no" in err


def test_too_few_and_too_many_answers_are_told_apart(run: Run, data: Path):
    put(data, an_ask(WHY, RED_OR_BLUE, task=a_task(1)))
    assert "1 answer given, which is too few; give 2 answers" in run("answer", a_task(1), "so")[2]
    assert "3 answers given, which is too many; give 2 answers" in run("answer", a_task(1), "so", "red", "blue")[2]
