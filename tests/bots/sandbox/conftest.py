from collections.abc import AsyncIterator

import pytest

from bots.sandbox.discord import DiscordSandbox
from bots.sandbox.discord.model import Channel
from bots.sandbox.discord.people import Person
from tests.bots.sandbox.discord_client import Listener, running


@pytest.fixture
async def sandbox() -> AsyncIterator[DiscordSandbox]:
    async with DiscordSandbox() as discord:
        yield discord


@pytest.fixture
def channel(sandbox: DiscordSandbox) -> Channel:
    return sandbox.guild("Film club").text_channel("general")


@pytest.fixture
def mona(sandbox: DiscordSandbox, channel: Channel) -> Person:
    return sandbox.user("Mona")


@pytest.fixture
async def client(sandbox: DiscordSandbox, channel: Channel, mona: Person) -> AsyncIterator[Listener]:
    """discord.py, logged in; the channel and Mona were there before."""
    async with running(sandbox, Listener()) as listener:
        yield listener
