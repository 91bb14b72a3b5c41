"""`ishiki tui` in a real terminal, beside a real `ishiki run`."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.ids import SessionId
from tests.builders import a_confirmation, said
from tests.conftest import House

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-c", "from bots.cli import main; main()"]
pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Screen:
    """A terminal of tmux, with a server of its own."""

    def __init__(self, folder: Path, data: Path) -> None:
        self._socket = str(folder / "tmux")
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT), "ISHIKI_DATA_DIR": str(data),
            "LANG": "C.UTF-8", "TERM": "xterm-256color", "ISHIKI_HTTP_PORT": "0",
        }  # fmt: skip
        self._folder = folder

    def start(self, size: tuple[int, int], *command: str) -> None:
        wide, high = map(str, size)
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", wide, "-y", high, *command)

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-u", "-S", self._socket, *words]
        done = subprocess.run(
            command, env=self.environment, cwd=self._folder, capture_output=True, text=True, check=True
        )
        return done.stdout

    def beside(self, *words: str) -> subprocess.Popen[bytes]:
        """The command, without a terminal."""
        return subprocess.Popen([*COMMAND, *words], env=self.environment, cwd=self._folder, stderr=subprocess.PIPE)

    def type(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def sees(self, *words: str) -> str:
        until = time.monotonic() + 30
        while True:
            shown = self.tmux("capture-pane", "-p")
            if all(word in shown for word in words):
                return shown
            assert time.monotonic() < until, f"{words} not in\n{shown}"
            time.sleep(0.1)


@pytest.fixture
def screen(tmp_path: Path, house: House) -> Iterator[Screen]:
    screen = Screen(tmp_path, house.folder)
    yield screen
    subprocess.run(["tmux", "-S", str(tmp_path / "tmux"), "kill-server"], capture_output=True, check=False)


async def test_one_talks_answers_and_leaves_the_terminal_as_it_was(house: House, screen: Screen):
    chat = SessionId("dc-900000000000000002")
    await house.sessions.of(chat).append([said(1, "こんにちは 👋")])
    await house.close()
    (house.folder / "runtimes" / chat / "pending").mkdir()
    record = a_confirmation()
    (house.folder / "runtimes" / chat / "pending" / f"{record.task_hash}.json").write_text(
        json.dumps(record.document())
    )
    running = screen.beside("run")
    try:
        assert running.stderr is not None
        while b"started" not in running.stderr.readline():
            assert running.poll() is None
        screen.start((80, 24), "sh", "-c", 'echo before; "$@"; echo "ended $?"; exec sleep 600', "sh", *COMMAND, "tui")
        screen.sees("Mona: こんにちは 👋", "May I use write_file?", "q Quit")
        screen.type("c")
        screen.sees("[1] Yes   [2] No")
        screen.type("1")
        screen.sees("write_file: approved (Yes) by operator")
        screen.type("n")
        screen.sees("Nothing was said here yet", "Terminal  Discord")
        screen.type("-l", "hello 你好")
        screen.type("Enter")
        screen.sees("you: hello 你好")
        screen.tmux("resize-window", "-x", "60", "-y", "20")
        assert all(len(line) <= 60 for line in screen.sees("you: hello 你好").splitlines())
        screen.type("C-c")
        assert "ishiki" not in screen.sees("before", "ended 0")
    finally:
        running.terminate()
        assert running.wait(15) == 0
        if running.stderr is not None:
            running.stderr.close()
        await house.open()
    (session,) = (path for path in (house.folder / "runtimes").iterdir() if path.name.startswith("cli-"))
    (line,) = (session / "events.jsonl").read_text().splitlines()
    assert json.loads(line)["data"]["content"] == "hello 你好"
