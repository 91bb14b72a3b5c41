"""One data folder, one program that is killed again and again, and the platforms that go on meanwhile."""

import asyncio
import random
import signal
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from bots.sandbox.discord import DiscordSandbox
from bots.sandbox.discord.model import Channel
from bots.sandbox.discord.model import Message as DiscordMessage
from bots.sandbox.runtime import RuntimeSandbox, Turn
from bots.sandbox.telegram import TelegramSandbox
from bots.sandbox.telegram.chats import Message as TelegramMessage
from core.ids import SessionId, platform_of
from tests.flows.operators import Operator
from tests.torture.book import Book, Json, lines_of
from tests.torture.forks import Child, Forks
from tests.torture.ledger import owed_turns, runtime_differences, speech_differences

QUIET_WITHIN = 45.0
OPERATOR = "the operator's own"


class Trial:
    """The platforms, the runtime and the folder; `start` the program on them."""

    def __init__(
        self, folder: Path, forks: Forks, discord: DiscordSandbox, telegram: TelegramSandbox, runtime: RuntimeSandbox
    ) -> None:
        self.forks = forks
        self.discord = discord
        self.telegram = telegram
        self.runtime = runtime
        self.book = Book()
        self.more_differences: list[Callable[[], Iterator[str]]] = []
        self.started_at = 0
        """Where the output of the newest child begins."""
        self.operator = Operator(folder, discord, telegram)
        self.environment = self.operator.environment | {
            "ISHIKI_HTTP_TOKEN": OPERATOR,
            "ISHIKI_RUNTIME_URL": runtime.url,
            "ISHIKI_RUNTIME_TOKEN": runtime.token,
        }

    @property
    def data(self) -> Path:
        return self.operator.data

    async def start(self, *arguments: str) -> Child:
        """`ishiki run`, or another command."""
        self.started_at = len(self.forks.output)
        return await self.forks.start(
            *(arguments or ("run",)), folder=self.operator.folder, environment=self.environment
        )

    def has_said(self, words: str) -> bool:
        """Whether the newest child has printed that."""
        return self.forks.has_said(words, self.started_at)

    async def stop(self, child: Child) -> None:
        """By SIGTERM, which ends it with 0 within 10 seconds and leaves an empty journal."""
        child.send(signal.SIGTERM)
        code = await child.wait()
        assert code == 0, f"exit {code}: {self.forks.said()[-3000:]}"
        assert (self.data / ".store" / "journal").stat().st_size == 0

    async def check(self) -> None:
        """`ishiki log check` finds nothing, and nothing has tripped so far."""
        before = len(self.forks.output)
        child = await self.start("log", "check")
        code = await child.wait(60)
        assert code == 0, self.forks.output[before:].decode()
        assert "Traceback" not in self.forks.said(), _around(self.forks.said(), "Traceback")

    async def readiness(self) -> tuple[int, dict[str, str]]:
        """What `/readyz` says: status, and the problems. 0 while nobody answers."""
        async with httpx.AsyncClient(trust_env=False) as client:
            try:
                response = await client.get(f"http://127.0.0.1:{self.operator.port}/readyz")
            except httpx.HTTPError:
                return 0, {}
        return response.status_code, response.json()["problems"]

    async def until_ready(self, child: Child, within: float = 20.0) -> None:
        async with asyncio.timeout(within):
            while (await self.readiness())[0] != 200:
                assert await child.poll() is None, self.forks.said()[-3000:]
                await asyncio.sleep(0.02)

    async def until_it_holds_the_folder(self, child: Child) -> None:
        """The moment from which on it has something to leave in order."""
        lock = self.data / "ishiki.lock"
        async with asyncio.timeout(20):
            while f"process {child.pid} " not in lock.read_text():  # noqa: ASYNC110 - a process of its own
                await asyncio.sleep(0.001)

    async def until_told(self, within: float = QUIET_WITHIN) -> None:
        """Until logs, runtime and platforms agree on all that was said. Fails with what they do not agree on."""
        differences = ["not looked at yet"]
        try:
            async with asyncio.timeout(within):
                while differences := list(self.differences()):  # noqa: ASYNC110 - files of another process
                    await asyncio.sleep(0.3)
        except TimeoutError:
            told = "\n".join(differences[:40])
            raise AssertionError(f"{len(differences)} differences after {within} s:\n{told}") from None

    def differences(self) -> Iterator[str]:
        """In which ways anything differs from what was said."""
        yield from self.book.differences(self.data)
        for more in self.more_differences:
            yield from more()
        logs = {session: lines_of(self.data, session) for session in self.book.said}
        yield from runtime_differences(self.runtime, logs)
        for session, lines in logs.items():
            for difference in (
                *owed_turns(lines, self.book.said[session]),
                *speech_differences(lines, self._standing(session), knows_nonces=platform_of(session) == "discord"),
            ):
                yield f"{session}: {difference}"

    def summary(self) -> str:
        """How much there was, in words."""
        said = [message for messages in self.book.said.values() for message in messages.values()]
        calls = Counter(call.path for call in self.runtime.calls if call.status < 300)
        return (
            f"{len(said)} messages, {sum(len(one.versions) - 1 for one in said)} edits, "
            f"{sum(one.gone for one in said)} taken back, {calls['/wake']} turns, "
            f"{len(self.runtime.decisions)} decisions"
        )

    def _standing(self, session: SessionId) -> dict[str, str]:
        """The bot's answers that stand in a chat, text by message id."""
        return {str(one.id): text for one, text in self.spoken(session) if text.startswith(("reply", "more"))}

    def spoken(self, session: SessionId) -> Iterator[tuple[DiscordMessage | TelegramMessage, str]]:
        """All that the bot says in a chat now, with its text."""
        place = self.book.places.get(session)
        if isinstance(place, Channel):
            said = self.discord.history(place)
            yield from ((message, message.content) for message in said if message.author is self.discord.bot)
        elif place is not None:
            yield from ((message, message.text) for message in self.telegram.history(place) if message.by_bot)


@asynccontextmanager
async def running(work: Coroutine[Any, Any, None], name: str) -> AsyncGenerator[None]:
    """Something that goes on meanwhile; what it raises is raised at the end."""
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def talkative(chance: random.Random) -> Callable[[Turn], Awaitable[Json]]:
    """An agent who mostly answers, sometimes at length."""

    async def think(turn: Turn) -> Json:
        await asyncio.sleep(chance.random() * 0.1)
        if chance.random() < 0.1:
            return {}
        parts = 4 if chance.random() < 0.3 else 0
        texts = [f"reply {turn.turn_id}", *(f"more {number} {turn.turn_id} " + "x " * 900 for number in range(parts))]
        return {"reply": "\n\n".join(texts)}

    return think


def _around(text: str, words: str) -> str:
    """What stands before and behind the first of these words."""
    place = text.find(words)
    return text[max(0, place - 1000) : place + 4000]
