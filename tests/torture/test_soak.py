"""An hour like any other, shortened: people talk, lines are cut, the runtime is slow or away. Nothing grows.

`SOAK_MINUTES` is how long it takes.
"""

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable

import pytest

from bots.sandbox.discord import DiscordSandbox
from bots.sandbox.telegram import TelegramSandbox
from tests.torture.askers import Askers
from tests.torture.crowds import Crowds
from tests.torture.forks import Child, Size
from tests.torture.slow_runtime import SlowRuntime
from tests.torture.trial import Trial, running, talkative

MINUTES = float(os.environ.get("SOAK_MINUTES", "0.3"))
MOST_GROWTH = 10.0
"""Mebibytes between the first third and the last: what the allocator and caches of bounded size may come to."""

POOLED = 16
"""Connections and threads that a first busy moment leaves in pools of bounded size."""


async def begun(trial: Trial, crowds: Crowds) -> Child:
    child = await trial.start()
    await trial.until_ready(child)
    await crowds.open()
    await trial.until_told()
    return child


@pytest.mark.timeout(0)
async def test_nothing_grows(trial: Trial, crowds: Crowds, runtime: SlowRuntime) -> None:
    chance = random.Random(5)
    runtime.think = talkative(chance)
    child = await begun(trial, crowds)
    askers = Askers(trial, chance)
    places = crowds.places()
    sizes: list[tuple[Size, int]] = []
    async with askers.pressing():
        async with (
            crowds.acting(per_second=30),
            askers.asking(places),
            running(mischief(trial.discord, trial.telegram, runtime, chance), "mischief"),
        ):
            ends = time.monotonic() + MINUTES * 60
            while time.monotonic() < ends:
                await asyncio.sleep(MINUTES)  # a sixtieth of the time
                sizes.append((child.size(), await child.tasks()))
                runtime.calls[:] = [call for call in runtime.calls if call.path != "/deliver"]
                if len(sizes) % 6 == 0:
                    print(sizes[-1], trial.summary(), flush=True)  # noqa: T201 - how far a long run is
        runtime.recover()
        await trial.until_told(within=60)
    await trial.stop(child)
    await trial.check()
    flat(sizes)


@pytest.mark.timeout(0)
async def test_a_runtime_that_takes_a_tenth_of_what_comes_costs_no_memory(
    trial: Trial, crowds: Crowds, runtime: SlowRuntime
) -> None:
    child = await begun(trial, crowds)
    sizes: list[tuple[Size, int]] = []
    runtime.entries_per_second = 30
    async with crowds.acting(per_second=300):
        ends = time.monotonic() + max(8.0, MINUTES * 2)
        while time.monotonic() < ends:
            await asyncio.sleep(0.25)
            sizes.append((child.size(), await child.tasks()))
    told = sum(len(entries) for entries in runtime.entries.values())
    said = sum(len(messages) for messages in trial.book.said.values())
    assert told < said / 5
    runtime.entries_per_second = 0
    await trial.until_told()
    await trial.stop(child)
    await trial.check()
    flat(sizes)


def flat(sizes: list[tuple[Size, int]]) -> None:
    """The last third is not above the second."""
    third = len(sizes) // 3
    second, last = sizes[third : 2 * third], sizes[-third:]

    def mean(part: list[tuple[Size, int]], what: Callable[[tuple[Size, int]], float]) -> float:
        return sum(map(what, part)) / len(part)

    grown = mean(last, lambda one: one[0].mebibytes) - mean(second, lambda one: one[0].mebibytes)
    assert grown < MOST_GROWTH, f"{grown:.1f} MiB more: {[round(one.mebibytes) for one, _ in sizes]}"
    counted: dict[str, Callable[[tuple[Size, int]], int]] = {
        "descriptors": lambda one: one[0].descriptors,
        "threads": lambda one: one[0].threads,
        "tasks": lambda one: one[1],
    }
    for name, count in counted.items():
        most = max(map(count, second))
        assert mean(last, count) <= most + POOLED, f"{name}: {[count(one) for one in sizes]}"


async def mischief(
    discord: DiscordSandbox, telegram: TelegramSandbox, runtime: SlowRuntime, chance: random.Random
) -> None:
    """What goes wrong on any day."""

    async def cut_telegram() -> None:
        telegram.drop_connections()

    async def refuse() -> None:
        runtime.fail(chance.choice(("/deliver", "/resolve")), 503, times=5)

    async def be_slow() -> None:
        runtime.delay = 1.0
        await asyncio.sleep(3.0)
        runtime.delay = 0.0

    deeds: list[Callable[[], Awaitable[None]]] = [
        discord.drop_connections,
        discord.ask_to_reconnect,
        discord.invalidate_sessions,
        cut_telegram,
        refuse,
        be_slow,
    ]
    while True:
        await asyncio.sleep(chance.random() * 8)
        await chance.choice(deeds)()
