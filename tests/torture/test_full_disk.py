"""The disk is full: nothing is confirmed, it says so, and it goes on by itself when there is room; nothing is lost."""

import asyncio
import random

from tests.torture.crowds import Crowds
from tests.torture.forks import Child
from tests.torture.slow_runtime import SlowRuntime
from tests.torture.trial import Trial, talkative


async def until_red(trial: Trial, child: Child) -> None:
    """Until it says that the disk is the trouble."""
    async with asyncio.timeout(10):
        while True:
            status, problems = await trial.readiness()
            assert await child.poll() is None, trial.forks.said()[-3000:]
            if status == 503 and "disk" in problems:
                return
            await asyncio.sleep(0.05)


async def test_what_comes_while_it_is_full_is_taken_in_when_there_is_room(
    trial: Trial, crowds: Crowds, runtime: SlowRuntime
) -> None:
    runtime.think = talkative(random.Random(1))
    child = await trial.start()
    await trial.until_ready(child)
    await crowds.open()
    async with crowds.acting(per_second=60):
        for _ in range(3):
            await asyncio.sleep(0.5)
            child.limit_files(0)
            await until_red(trial, child)
            waiting = trial.telegram.pending_updates()
            await asyncio.sleep(0.7)
            assert trial.telegram.pending_updates() > waiting
            child.limit_files(-1)
            await trial.until_ready(child)
    assert trial.forks.has_said("telegram_updates_wait", 0)
    await trial.until_told()
    await trial.stop(child)
    await trial.check()


async def test_killed_and_started_again_while_it_is_full(trial: Trial, crowds: Crowds, runtime: SlowRuntime) -> None:
    runtime.think = talkative(random.Random(1))
    child = await trial.start()
    await trial.until_ready(child)
    await crowds.open()
    async with crowds.acting(per_second=30):
        for _ in range(3):
            await asyncio.sleep(0.3)
            child.limit_files(0)
            await asyncio.sleep(0.3)
            child.kill()
            await child.wait()
            trial.discord.gateway.sessions.clear()
            child = await trial.start()
            child.limit_files(0)
            await asyncio.sleep(1.0)
            # Either it waits, or it ends with the cure; an operator, or systemd, starts it again.
            if await child.poll() is None:
                child.limit_files(-1)
            else:
                assert child.code == 1, trial.forks.said()[-3000:]
                child = await trial.start()
            await trial.until_ready(child, within=40)
    await trial.until_told()
    await trial.stop(child)
    await trial.check()
