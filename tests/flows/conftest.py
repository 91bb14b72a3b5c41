"""The loopback platforms, for tests of the whole program."""

from collections.abc import AsyncIterator

import pytest

from bots.sandbox.discord import DiscordSandbox
from bots.sandbox.telegram import TelegramSandbox


@pytest.fixture
async def discord() -> AsyncIterator[DiscordSandbox]:
    async with DiscordSandbox() as discord:
        yield discord


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramSandbox]:
    async with TelegramSandbox() as telegram:
        yield telegram
