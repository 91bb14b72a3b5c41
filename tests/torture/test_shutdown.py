"""SIGTERM, whenever it comes: exit 0 within ten seconds, and what was not confirmed is taken up by the next start."""

import asyncio
import random
import signal
import time

import pytest

from bots.sandbox.runtime import Turn
from tests.torture.book import Json, lines_of
from tests.torture.crowds import Crowds
from tests.torture.forks import Child
from tests.torture.slow_runtime import SlowRuntime
from tests.torture.trial import Trial, talkative


async def hang(_turn: Turn) -> Json:
    await asyncio.sleep(60)
    return {}


async def begun(trial: Trial, crowds: Crowds) -> Child:
    """The program, and people whom it has heard."""
    child = await trial.start()
    await trial.until_ready(child)
    await crowds.open()
    await trial.until_told()
    return child


async def until_woken(runtime: SlowRuntime, times: int = 1) -> None:
    """From now on so many times."""
    before = len(runtime.calls)
    await runtime.until(lambda: sum(call.path == "/wake" for call in runtime.calls[before:]) >= times)


def ends(trial: Trial) -> list[str]:
    """How the turns of all sessions ended."""
    lines = [line for session in trial.book.said for line in lines_of(trial.data, session)]
    kinds = [str(line["data"].get("type")) for line in lines if line["type"] == "event"]
    return [kind for kind in kinds if kind != "turn.start"]


async def goes_on(trial: Trial) -> None:
    """The next start takes up the rest, exactly once."""
    child = await trial.start()
    await trial.until_told()
    await trial.stop(child)
    await trial.check()


async def test_under_load_with_turns_open(trial: Trial, crowds: Crowds, runtime: SlowRuntime) -> None:
    child = await begun(trial, crowds)
    runtime.think = hang
    async with crowds.acting(per_second=500):
        await until_woken(runtime, times=3)
        await asyncio.sleep(1.0)
        began = time.monotonic()
        await trial.stop(child)
        assert time.monotonic() - began < 10
    assert ends(trial).count("turn.aborted") >= 3
    assert not ends(trial).count("turn.failed")
    runtime.think = talkative(random.Random(1))
    await goes_on(trial)


async def test_at_every_moment_of_a_start(trial: Trial, crowds: Crowds) -> None:
    """From when it holds the folder; before that there is nothing to be left in order."""
    child = await begun(trial, crowds)
    async with crowds.acting(per_second=100):
        for step in range(8):
            await trial.stop(child)
            child = await trial.start()
            await trial.until_it_holds_the_folder(child)
            await asyncio.sleep(0.06 * step)
        await trial.stop(child)
    await goes_on(trial)


async def test_told_again_and_again(trial: Trial, crowds: Crowds, runtime: SlowRuntime) -> None:
    child = await begun(trial, crowds)
    runtime.think = hang
    async with crowds.acting(per_second=200):
        await until_woken(runtime)
        telling = asyncio.create_task(child.wait())
        while not telling.done():
            child.send(signal.SIGTERM)
            await asyncio.sleep(0.02)
        assert await telling == 0
    assert "turn.aborted" in ends(trial)
    runtime.think = talkative(random.Random(1))
    await goes_on(trial)


@pytest.mark.parametrize("path", ["/deliver", "/wake"])
async def test_while_the_runtime_hangs(trial: Trial, crowds: Crowds, runtime: SlowRuntime, path: str) -> None:
    child = await begun(trial, crowds)
    runtime.think = hang
    runtime.delay = 60.0 if path == "/deliver" else 0.0
    async with crowds.acting(per_second=100):
        await asyncio.sleep(1.5)
        await trial.stop(child)
    runtime.delay = 0.0
    runtime.think = talkative(random.Random(1))
    await goes_on(trial)


async def test_while_the_disk_takes_nothing(trial: Trial, crowds: Crowds, runtime: SlowRuntime) -> None:
    child = await begun(trial, crowds)
    runtime.think = hang
    async with crowds.acting(per_second=100):
        await until_woken(runtime)
        child.limit_files(0)
        await asyncio.sleep(1.5)
        began = time.monotonic()
        child.send(signal.SIGTERM)
        assert await child.wait() == 0, trial.forks.said()[-3000:]
        assert time.monotonic() - began < 10
    runtime.think = talkative(random.Random(1))
    await goes_on(trial)
