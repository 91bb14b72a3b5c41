"""Killed at random moments under load, over and over: what was said stands in the log once, in order.

`TORTURE_KILLS` is how many kills there are in all, `TORTURE_SEED` where the chance begins.
"""

import asyncio
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bots.sandbox.discord import DiscordSandbox
from bots.sandbox.runtime import RuntimeSandbox
from bots.sandbox.telegram import TelegramSandbox
from tests.torture.askers import Askers
from tests.torture.crowds import Crowds
from tests.torture.forks import Child, Forks
from tests.torture.trial import Trial, talkative

KILLS = int(os.environ.get("TORTURE_KILLS", "50"))
SEED = int(os.environ.get("TORTURE_SEED", str(time.time_ns() % 1_000_000)))
A_ROUND = 50
"""Kills of one data folder; then a new one begins."""


class Fate:
    """Decides when the program dies: some ms after its start, or after its first words, or when one of the others was
    asked so many times more."""

    def __init__(self, trial: Trial, chance: random.Random) -> None:
        self._trial = trial
        self._chance = chance

    async def strike(self, child: Child) -> None:
        """Kill it, some time."""
        discord, telegram, runtime = self._trial.discord, self._trial.telegram, self._trial.runtime
        match self._chance.randrange(6):
            case 0:
                await asyncio.sleep(self._chance.random() * 0.5)
            case 1 | 2:
                await self._until(lambda: self._trial.has_said("discord_connected"), 2.0)
                await asyncio.sleep(self._chance.random() * 0.5)
            case 3:
                await self._until_more(lambda: len(discord.calls), 40)
            case 4:
                await self._until_more(
                    lambda: sum(len(telegram.calls(name)) for name in ("getUpdates", "sendMessage")), 30
                )
            case _:
                await self._until_more(lambda: len(runtime.calls), 60)
        child.kill()
        await child.wait()
        discord.gateway.sessions.clear()  # nobody is left to resume them

    async def _until_more(self, count: Callable[[], int], most: int) -> None:
        wanted = count() + self._chance.randrange(1, most)
        await self._until(lambda: self._trial.has_said("started") or count() >= wanted, 2.0)
        await self._until(lambda: count() >= wanted, 0.7)

    async def _until(self, holds: Callable[[], object], within: float) -> None:
        ends = time.monotonic() + within
        while not holds() and time.monotonic() < ends:  # noqa: ASYNC110 - it holds in another process
            await asyncio.sleep(0.002)


@pytest.mark.timeout(0)
async def test_what_was_said_stands_in_the_log_once_however_often_the_program_is_killed(tmp_path: Path) -> None:
    async with Forks() as forks:
        for number in range(0, KILLS, A_ROUND):
            folder = tmp_path / f"round-{number}"
            folder.mkdir()
            seed = SEED + number
            try:
                await a_round(folder, forks, random.Random(seed), min(A_ROUND, KILLS - number))
            except BaseException as error:
                (folder / "output").write_bytes(forks.output)
                error.add_note(f"again: TORTURE_SEED={seed} TORTURE_KILLS={A_ROUND}; data and output in {folder}")
                raise


async def a_round(folder: Path, forks: Forks, chance: random.Random, kills: int) -> None:
    async with (
        DiscordSandbox(requests_per_second=10_000) as discord,
        TelegramSandbox() as telegram,
        RuntimeSandbox(talkative(chance)) as runtime,
    ):
        trial = Trial(folder, forks, discord, telegram, runtime)
        crowds, askers, fate = Crowds(trial, chance), Askers(trial, chance), Fate(trial, chance)
        child = await trial.start()
        await trial.until_ready(child)
        await crowds.open()
        await trial.until_told()
        places = crowds.places()
        async with askers.pressing():
            async with crowds.acting(per_second=120), askers.asking(places):
                for _ in range(kills):
                    await fate.strike(child)
                    child = await trial.start()
            await trial.until_told()
        await trial.stop(child)
        assert not list(trial.differences())
        await trial.check()
        print(f"{kills} kills: {trial.summary()}", flush=True)  # noqa: T201 - how far a long run is
