"""The trials' own: a nursery of programs, and a world to start one in."""

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bots.sandbox.discord import DiscordSandbox
from bots.sandbox.telegram import TelegramSandbox
from tests.torture.crowds import Crowds
from tests.torture.forks import Forks
from tests.torture.slow_runtime import SlowRuntime
from tests.torture.trial import Trial


@pytest.fixture
async def forks() -> AsyncIterator[Forks]:
    async with Forks() as forks:
        yield forks


@pytest.fixture
async def runtime() -> AsyncIterator[SlowRuntime]:
    async with SlowRuntime() as runtime:
        yield runtime


@pytest.fixture
async def trial(tmp_path: Path, forks: Forks, runtime: SlowRuntime) -> AsyncIterator[Trial]:
    async with DiscordSandbox(requests_per_second=10_000) as discord, TelegramSandbox() as telegram:
        yield Trial(tmp_path, forks, discord, telegram, runtime)


@pytest.fixture
def crowds(trial: Trial) -> Crowds:
    return Crowds(trial, random.Random(4))
