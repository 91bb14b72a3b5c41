"""The people of both platforms together."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from core.ids import SessionId
from tests.torture.askers import Presser
from tests.torture.discord_crowd import DiscordCrowd
from tests.torture.telegram_crowd import TelegramCrowd
from tests.torture.trial import Trial, running


class Crowds:
    """Both crowds of a trial; what they do is chosen by ``chance``."""

    def __init__(self, trial: Trial, chance: random.Random) -> None:
        self._chance = chance
        heard = lambda: trial.has_said("discord_caught_up")  # noqa: E731 - nobody else asks
        self.on_discord = DiscordCrowd(trial.discord, trial.book, chance, heard=heard)
        self.on_telegram = TelegramCrowd(trial.telegram, trial.book, chance)

    async def open(self) -> None:
        """What has to be heard before anything goes wrong."""
        await self.on_discord.open()
        await self.on_telegram.open()

    def places(self) -> list[tuple[SessionId, Presser]]:
        """Where somebody may be asked, and who."""
        return [*self.on_discord.places(), *self.on_telegram.places()]

    async def act(self) -> None:
        await (self.on_discord if self._chance.random() < 0.5 else self.on_telegram).act()

    @asynccontextmanager
    async def acting(self, per_second: float) -> AsyncGenerator[None]:
        """They talk meanwhile, in bursts, so much on average."""
        async with running(self._act_on(per_second), "crowds"):
            yield

    async def _act_on(self, per_second: float) -> None:
        began, done = time.monotonic(), 0
        while True:
            await asyncio.sleep(self._chance.random() * 0.1)
            while done < (time.monotonic() - began) * per_second:
                await self.act()
                done += 1
