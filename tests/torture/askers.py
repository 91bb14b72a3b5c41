"""A program that asks people for leave over the API, and the people who press buttons, whatever dies meanwhile."""

import asyncio
import random
import uuid
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import httpx

from bots.sandbox.discord.model import Message as DiscordMessage
from bots.sandbox.telegram.chats import Message as TelegramMessage
from core.ids import SessionId
from tests.torture.book import Json
from tests.torture.trial import OPERATOR, Trial, running

MOST_OPEN = 3


class Presser(Protocol):
    """Somebody on either platform."""

    @property
    def id(self) -> object: ...

    async def press_unanswered(self, message: Any, button: str) -> object: ...


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked, of whom, and what they answer as often as they see it."""

    session: SessionId
    tool: str
    who: Presser
    button: str


class Askers:
    """What they asked is decided as it was answered, once: `Trial.differences` says where not."""

    def __init__(self, trial: Trial, chance: random.Random) -> None:
        self._trial = trial
        self._chance = chance
        self._asked: dict[str, Asked] = {}
        trial.more_differences.append(self.differences)

    @asynccontextmanager
    async def asking(self, places: Sequence[tuple[SessionId, Presser]]) -> AsyncGenerator[None]:
        """Ask in these places meanwhile, who stands beside them."""
        async with running(self._ask_on(places), "askers"):
            yield

    @asynccontextmanager
    async def pressing(self) -> AsyncGenerator[None]:
        """The people asked press their buttons meanwhile."""
        async with running(self._press_on(), "pressers"):
            yield

    async def _ask_on(self, places: Sequence[tuple[SessionId, Presser]]) -> None:
        """Ask again and again, a few things at once."""
        while True:
            await asyncio.sleep(self._chance.random() * 0.4)
            if len(self._open()) < MOST_OPEN:
                session, who = self._chance.choice(places)
                tool = f"tool_{uuid.uuid4().hex}"
                asked = Asked(session, tool, who, self._chance.choice(("Yes", "No")))
                self._asked[await self._ask(asked)] = asked

    async def _press_on(self) -> None:
        """Press where there are buttons: a press is lost with the program that was told of it, and one after the
        decision closes a prompt that a kill left behind before its file named it."""
        while True:
            for asked in list(self._asked.values()):
                for message in self._shown(asked):
                    if _has_buttons(message):
                        await asked.who.press_unanswered(message, asked.button)
            await asyncio.sleep(0.1)

    def differences(self) -> Iterator[str]:
        """What is not decided as it was answered, told otherwise the second time, or shown too often."""
        told: dict[str, list[Json]] = {}
        for call in self._trial.runtime.calls:
            if call.path == "/resolve" and call.status == 204:
                told.setdefault(call.body["taskHash"], []).append(call.body)
        for task, asked in self._asked.items():
            bodies = told.get(task, [])
            wanted = "approved" if asked.button == "Yes" else "denied"
            if not bodies or any(body["status"] != wanted or body != bodies[0] for body in bodies):
                yield f"{asked.session}: {asked.tool} is not {wanted}, but {bodies}"
            shown = self._shown(asked)
            # Telegram has no nonce: one that a kill cut off between sending and noting is asked once more.
            if len(shown) > 1 + any(isinstance(message, TelegramMessage) for message in shown):
                yield f"{asked.session}: {asked.tool} is asked {len(shown)} times"
            if any(_has_buttons(message) for message in shown):
                yield f"{asked.session}: {asked.tool} still has its buttons"

    def _open(self) -> dict[str, Asked]:
        return {task: asked for task, asked in self._asked.items() if task not in self._trial.runtime.decisions}

    def _shown(self, asked: Asked) -> list[DiscordMessage | TelegramMessage]:
        return [message for message, text in self._trial.spoken(asked.session) if asked.tool in text]

    async def _ask(self, asked: Asked) -> str:
        """Until it is taken on; the same key asks once."""
        headers = {"Authorization": f"Bearer {OPERATOR}", "Idempotency-Key": asked.tool}
        # A turn that nobody knows has no cause, which somebody might take back, and the request with it.
        turn = str(uuid.uuid4())
        body = {"tool": asked.tool, "requester": str(asked.who.id), "choices": ["yes", "no"], "turnId": turn}
        url = f"http://127.0.0.1:{self._trial.operator.port}/v1/session/{asked.session}/confirm"
        async with httpx.AsyncClient(trust_env=False, headers=headers) as client:
            while True:
                try:
                    response = await client.post(url, json=body)
                except httpx.HTTPError:
                    await asyncio.sleep(0.05)
                    continue
                assert response.status_code == 202, response.text
                return response.json()["task_hash"]


def _has_buttons(message: DiscordMessage | TelegramMessage) -> bool:
    return bool(message.components if isinstance(message, DiscordMessage) else message.buttons)
