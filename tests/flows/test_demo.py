"""``ishiki demo`` as a newcomer runs it, and what the format page's recipes say of its logs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ISHIKI = [sys.executable, "-c", "from bots.cli import main; main()"]
BAD_LINES = (
    "awk 'NF { print NR \"\\t\" $0 }' \"$1\" | while IFS=$'\\t' read -r n line; do "
    'printf %s "$line" | jq -e . >/dev/null 2>&1 || echo "bad line: $n"; done'
)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a demo that has ended, and what it printed."""
    folder = tmp_path_factory.mktemp("newcomer")
    (folder / ".env").write_text("ISHIKI_NONSENSE=the demo does not read this\n")
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "DISCORD_TOKEN": "not for the demo"}
    ended = subprocess.run(
        [*ISHIKI, "demo"], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    return folder / "demo-data", ended.stdout


def logs(data: Path) -> list[Path]:
    return sorted(data.glob("runtimes/*/events.jsonl"))


def test_the_demo_shows_both_platforms_and_says_where_it_writes(played: tuple[Path, str]) -> None:
    data, shown = played
    assert "writes to demo-data" in shown
    for expected in ("Discord", "Telegram", "(revision 1)", "ishiki.message.deleted", "image/*", "Ishiki answers"):
        assert expected in shown
    assert shown.count("Approved by Jiro") == 2
    assert len(logs(data)) == 3
    assert (data / ".store" / "journal").stat().st_size == 0


def test_the_demo_goes_to_the_folder_that_the_environment_names(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "ISHIKI_DATA_DIR": "elsewhere"}
    for _ in range(2):  # a second run finds the logs of the first, and mixes nothing up
        ended = subprocess.run(
            [*ISHIKI, "demo"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert ended.returncode == 0, ended.stderr
    assert not (tmp_path / "demo-data").exists()
    assert len(logs(tmp_path / "elsewhere")) == 6


def test_the_logs_of_the_demo_keep_every_rule(played: tuple[Path, str]) -> None:
    data, _ = played
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "ISHIKI_DATA_DIR": str(data)}
    checked = subprocess.run([*ISHIKI, "log", "check"], env=environment, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.skipif(not shutil.which("jq"), reason="needs the Debian package jq")
def test_jq_counts_what_the_demo_did(played: tuple[Path, str]) -> None:
    data, _ = played
    discord = next(path for path in logs(data) if path.parent.name.startswith("dc-"))
    query = 'select(.type=="message") | .data.type // .data.role'
    found = subprocess.run(["jq", "-r", query, discord], capture_output=True, text=True, check=True).stdout.split()
    assert found == [
        "ishiki.message.created",
        "ishiki.message.created",
        "ishiki.message.created",
        "ishiki.message.deleted",
        "ishiki.message.created",
        "ishiki.attachment",
        "assistant",
        "tool",
        "ishiki.message.created",
        "assistant",
        "tool",
    ]
    events = subprocess.run(
        ["jq", "-r", 'select(.type=="event") | .data.type', *logs(data)], capture_output=True, text=True, check=True
    ).stdout.split()
    assert events.count("turn.start") == events.count("turn.done") >= 2


@pytest.mark.skipif(not shutil.which("jq"), reason="needs the Debian package jq")
@pytest.mark.skipif(not shutil.which("awk"), reason="needs the Debian package gawk")
def test_awk_and_jq_name_the_bad_line_that_our_check_names(played: tuple[Path, str]) -> None:
    data, _ = played
    broken = ROOT / "tests" / "samples" / "broken.jsonl"
    for path, expected in ((broken, "bad line: 5\n"), *((path, "") for path in logs(data))):
        found = subprocess.run(["bash", "-c", BAD_LINES, "bash", path], capture_output=True, text=True, check=True)
        assert found.stdout == expected
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    checked = subprocess.run(
        [*ISHIKI, "log", "check", str(broken)], env=environment, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 1
    assert re.findall(r"line (\d+)", checked.stdout)[0] == "5"
