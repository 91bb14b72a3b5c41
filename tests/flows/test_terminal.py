"""``ishiki tui`` in a real terminal, beside the real program: tmux types, and tells what stands on the screen."""

import asyncio
import shutil
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bots.sandbox.discord import DiscordSandbox
from bots.sandbox.runtime import RuntimeSandbox, Turn
from bots.sandbox.telegram import TelegramSandbox
from core.ids import discord_session
from tests.conftest import Until
from tests.flows.operators import Operator

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux; `make test-system` installs it")


class Tmux:
    """One terminal of 100 columns and 30 lines."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    async def ask(self, *words: str) -> str:
        tmux = await asyncio.create_subprocess_exec(
            "tmux", "-S", str(self._socket), "-f", "/dev/null", *words, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await tmux.communicate()
        return output.decode()

    async def type(self, *keys: str) -> None:
        await self.ask("send-keys", *keys)

    async def shows(self, words: str) -> str:
        """The screen, as soon as these words stand on it."""
        screen = ""
        try:
            async with asyncio.timeout(30):
                while words not in (screen := await self.ask("capture-pane", "-p")):  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.2)
        except TimeoutError:
            raise AssertionError(f"{words!r} is not on the screen:\n{screen}") from None
        return screen


@asynccontextmanager
async def a_terminal(folder: Path, command: str) -> AsyncGenerator[Tmux]:
    tmux = Tmux(folder / "tmux")
    await tmux.ask("new-session", "-d", "-x", "100", "-y", "30", f"{command}; echo ended with $?; sleep 60")
    try:
        yield tmux
    finally:
        await tmux.ask("kill-server")


async def test_a_person_reads_answers_and_talks_in_a_terminal(
    tmp_path: Path, discord: DiscordSandbox, telegram: TelegramSandbox, until: Until
) -> None:
    async def think(turn: Turn) -> dict[str, object]:
        return {"reply": f"heard by {turn.rule}"}

    operator = Operator(tmp_path, discord, telegram)
    channel, mona = discord.guild("Film club").text_channel("映画"), discord.user("Mona")
    here = discord_session(channel.id)
    command = (
        f"cd {tmp_path} && PYTHONPATH={ROOT} ISHIKI_DATA_DIR={operator.data} "
        f"{sys.executable} -c 'from bots.cli import main; main()' tui"
    )
    async with (
        RuntimeSandbox(think) as runtime,
        operator.running(ISHIKI_RUNTIME_URL=runtime.url, ISHIKI_RUNTIME_TOKEN=runtime.token),
        a_terminal(tmp_path, command) as tmux,
    ):
        asked = await mona.say(channel, "is it 月曜日? [bold]now[/bold]")
        await until(lambda: operator.kinds(here) == ["ishiki.message.created"])
        await tmux.shows(here)
        await tmux.type("Enter")
        await tmux.shows("is it 月曜日? [bold]now[/bold]")
        await mona.edit(asked, "is it 火曜日?")
        screen = await tmux.shows("火曜日")
        assert "月曜日" not in screen
        await mona.delete(asked)
        screen = await tmux.shows("✗ retracted")
        assert "火曜日" not in screen
        await tmux.type("Escape")
        await tmux.shows("New session")
        await tmux.type("n")
        await tmux.shows("say something")
        await tmux.type("-l", "hello from here")
        await tmux.type("Enter")
        await tmux.shows("heard by")
        await tmux.type("C-c")
        await tmux.shows("ended with 0")


async def test_without_a_terminal_it_says_what_to_use_instead(tmp_path: Path) -> None:
    ended = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "from bots.cli import main; main()", "tui",
        cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, errors = await ended.communicate()
    assert (ended.returncode, output) == (2, b"")
    assert errors.count(b"\n") == 1
    assert b"ishiki sessions" in errors
