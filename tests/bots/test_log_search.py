"""``ishiki log search`` in a process of its own, as an operator types it."""

import json
import os
import subprocess
import sys
from pathlib import Path

from core.archive.archive import Archive
from tests.builders import SESSION, said
from tests.conftest import House


def ishiki(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from bots.cli import main; main()", "log", "search", *arguments]
    environment = os.environ | {"ISHIKI_DATA_DIR": str(folder)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=60)


async def test_it_finds_what_was_said_while_somebody_holds_the_folder(house: House) -> None:
    archive = Archive(house.store, house.sessions)
    archive.start()
    await house.sessions.of(SESSION).append([said(1, "天气很好\x1b[31m"), said(2, "the film")])
    await archive.level()
    found = ishiki(house.folder, "天气", "--json")
    assert found.returncode == 0, found.stderr
    (line,) = found.stdout.splitlines()
    hit = json.loads(line)
    assert (hit["session_id"], hit["sender"], hit["message_id"]) == (SESSION, "Mona", "1")
    table = ishiki(house.folder, "气", "--session", SESSION, "--range", "1y")
    assert "天气很好" in table.stdout
    assert "\x1b" not in table.stdout
    assert "nothing found" in ishiki(house.folder, "nowhere").stdout
    await archive.stop()


async def test_wrong_words_get_a_sentence_that_helps(house: House) -> None:
    await house.sessions.of(SESSION).append([said(1, "x")])
    for arguments, words in (
        (("?!",), "give a word"),
        (("x", "--range", "2d"), "1d, 7d, 1m, 1y"),
        (("x", "-n", "99"), "1 to 32"),
        (("x", "--session", "../x"), "no session id"),
    ):
        ended = ishiki(house.folder, *arguments)
        assert (ended.returncode, words in ended.stderr) == (2, True), ended.stderr
        assert "Traceback" not in ended.stderr


async def test_without_a_database_it_says_what_makes_one(house: House) -> None:
    await house.sessions.of(SESSION).append([said(1, "x")])
    await house.close()
    for path in (house.folder / ".store").glob("history.db*"):
        path.unlink()
    ended = ishiki(house.folder, "x")
    assert ended.returncode == 1
    assert "`ishiki run` makes it from the logs" in ended.stderr
    await house.open()
