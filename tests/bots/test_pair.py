"""`ishiki pair`, as somebody at a terminal or a script uses it, while nobody holds the folder."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bots.cli import app
from core.archive.store import Store
from core.errors import FolderUnusable
from core.ids import MessageId, SessionId, UserId
from core.pairing.book import Book
from core.pairing.codes import Knock, OpenCode

HERE = SessionId("tg-5001")
HOSTILE = "\x1b[2J[bold]Anna"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ISHIKI_DATA_DIR", "kept")
    (tmp_path / "kept" / "runtimes").mkdir(parents=True)
    return tmp_path / "kept"


@pytest.fixture
def run() -> Run:
    def invoke(*words: str) -> tuple[int, str, str]:
        result = CliRunner().invoke(app, words)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout, result.stderr

    return invoke


def a_code(data: Path) -> OpenCode:
    """An open code for Anna's direct chat, as `ishiki run` left it."""

    async def write() -> OpenCode:
        (data / ".store").mkdir(exist_ok=True)
        store = Store.open(data / ".store" / "history.db")
        book = await Book.load(store)
        code = book.offer(Knock("telegram", HERE, HOSTILE, UserId("5001"), HOSTILE, MessageId("7")))
        assert code is not None
        await book.keep(code)
        await store.close()
        return code

    return asyncio.run(write())


def test_a_folder_in_which_nobody_asks_lists_nothing(data: Path, run: Run):
    assert run("pair") == (0, "", "")
    a_code(data)
    assert run("pair", "--json")[1].count("\n") == 1


def test_an_open_code_is_listed_admitted_and_revoked(data: Path, run: Run):
    code = a_code(data)
    row = json.loads(run("pair", "--json")[1])
    assert (row["code"], row["session"], row["user"]["id"]) == (code.code, HERE, "5001")
    assert row["expiresAt"] - row["createdAt"] == 3_600_000
    exit_code, output, errors = run("pair")
    assert (exit_code, errors) == (0, "")
    assert "\x1b" not in output
    assert "[bold]Anna (5001)" in output
    assert run("pair", f"{code.code[:4]} {code.code[4:].lower()}")[:2] == (
        0,
        f"{HERE} is let in; `ishiki run` hears it from its next start\n",
    )
    listed = [json.loads(line) for line in run("pair", "--json")[1].splitlines()]
    assert [(row["session"], "pairedAt" in row) for row in listed] == [(HERE, True)]
    assert run("pair", "--revoke", HERE, "--json")[:2] == (0, f'{{"session":"{HERE}","paired":false}}\n')
    exit_code, _, errors = run("pair", "--revoke", HERE)
    assert exit_code == 1
    assert "not paired" in errors
    assert run("pair") == (0, "", "")


def test_wrong_codes_are_told_so_and_limited_over_commands(data: Path, run: Run):
    code = a_code(data)
    for _ in range(5):
        exit_code, output, errors = run("pair", "AAAAAAAA")
        assert (exit_code, output, errors.count("\n")) == (1, "", 1)
        assert "no open code" in errors
    exit_code, _, errors = run("pair", code.code)
    assert exit_code == 1
    assert "try again in" in errors


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--revoke", "../x"), "no session id"),
        (("--revoke", "cli-00000000-0000-4000-8000-000000000001"), "not a chat"),
        (("ABCDEFGH", "--revoke", HERE), "either"),
    ],
)
def test_wrong_usage_is_told_in_a_sentence(data: Path, run: Run, words: tuple[str, ...], told: str):
    exit_code, output, errors = run("pair", *words)
    assert (exit_code, output, errors.count("\n")) == (2, "", 1)
    assert told in errors


def test_a_folder_that_is_none_is_named(data: Path, run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ISHIKI_DATA_DIR", "nothing")
    for words in (("pair",), ("sessions",)):
        exit_code, _, errors = run(*words)
        assert exit_code == 2
        assert "ISHIKI_DATA_DIR" in errors
    for words in (("pair", "AAAAAAAA"), ("deliver", "retry")):
        with pytest.raises(FolderUnusable, match="ISHIKI_DATA_DIR"):
            run(*words)
