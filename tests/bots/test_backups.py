"""`ishiki backup` and `ishiki restore`, as an operator uses them."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "tests" / "samples" / "sample-session.jsonl"
COMMAND = [sys.executable, "-c", "from bots.cli import main; main()"]
LOG = Path("runtimes/dc-1/events.jsonl")

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """The command in an empty folder, with a data folder of that name."""

    def invoke(*words: str, data: str = "kept", given: bytes | None = None) -> "subprocess.CompletedProcess[bytes]":
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "ISHIKI_DATA_DIR": data}
        return subprocess.run(
            [*COMMAND, *words], cwd=tmp_path, env=environment, capture_output=True, check=False, input=given
        )

    return invoke


@pytest.fixture(autouse=True)
def kept(tmp_path: Path) -> Path:
    log = tmp_path / "kept" / LOG
    log.parent.mkdir(parents=True)
    shutil.copy(SAMPLE, log)
    return tmp_path / "kept"


@pytest.mark.parametrize("name", ["house.tar", "house.tar.gz"])
def test_a_backup_becomes_a_data_folder_again(run: Run, tmp_path: Path, name: str) -> None:
    taken = run("backup", name)
    assert (taken.returncode, taken.stderr) == (0, b"")
    assert b"1 sessions, 1 files" in taken.stdout
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    restored = run("restore", name, data="new")
    assert (restored.returncode, restored.stderr) == (0, b"")
    assert (tmp_path / "new" / LOG).read_bytes() == SAMPLE.read_bytes()


def test_a_backup_goes_through_a_pipe_and_says_elsewhere_what_it_holds(run: Run, tmp_path: Path) -> None:
    taken = run("backup", "-", "--json")
    assert json.loads(taken.stderr.removeprefix(b"ishiki: "))["sessions"] == 1
    assert run("restore", "-", data="new", given=taken.stdout).returncode == 0
    assert (tmp_path / "new" / LOG).read_bytes() == SAMPLE.read_bytes()


@pytest.mark.parametrize(
    ("words", "data", "code", "sentence"),
    [
        (("backup", "there"), "kept", 2, "name a new file"),
        (("backup", "no/where"), "kept", 2, "make it first"),
        (("backup", "x.tar"), "nothing", 2, "no data folder"),
        (("restore", "nothing"), "new", 2, "is no file"),
        (("restore", "there"), "new", 1, "no backup of ishiki"),
        (("restore", "there"), "kept", 1, "holds data already"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_changes_nothing(
    run: Run, tmp_path: Path, words: tuple[str, ...], data: str, code: int, sentence: str
) -> None:
    (tmp_path / "there").write_text("somebody's")
    ended = run(*words, data=data)
    assert (ended.returncode, ended.stdout) == (code, b"")
    assert sentence in ended.stderr.decode()
    assert ended.stderr.count(b"\n") == 1
    assert (tmp_path / "there").read_text() == "somebody's"
    assert not (tmp_path / "new" / "runtimes").exists()
    assert (tmp_path / "kept" / LOG).read_bytes() == SAMPLE.read_bytes()
