"""A healthy house with a channel on each loopback platform, and a look at it."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bots.doctor.checkup import checks
from bots.doctor.disk import Room, room_of
from bots.doctor.examination import examined
from bots.doctor.verdict import Finding
from bots.sandbox.discord import DiscordSandbox
from bots.sandbox.discord.model import Channel
from bots.sandbox.runtime import RuntimeSandbox
from bots.sandbox.telegram import Chat, Person, TelegramSandbox
from bots.settings import load
from core.ids import discord_session, telegram_session
from tests.builders import said
from tests.conftest import House


@pytest.fixture
async def discord() -> AsyncIterator[DiscordSandbox]:
    async with DiscordSandbox() as discord:
        yield discord


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramSandbox]:
    async with TelegramSandbox() as telegram:
        yield telegram


@pytest.fixture
async def runtime() -> AsyncIterator[RuntimeSandbox]:
    async with RuntimeSandbox() as runtime:
        yield runtime


@dataclass
class Patient:
    """Somebody's house. `look` gives what each check finds, by its name."""

    discord: DiscordSandbox
    telegram: TelegramSandbox
    data: Path
    channel: Channel
    group: Chat
    anna: Person
    environment: dict[str, str] = field(default_factory=dict[str, str])

    async def look(
        self,
        *,
        room: Callable[[Path], Room] = room_of,
        patience: float = 2.0,
        limit: float = 4.0,
        listened_for: float = 0.05,
        **environment: str,
    ) -> dict[str, Finding]:
        settings = load(self.environment | environment, None)
        dotenv = self.data.parent / ".env"
        async with checks(settings, dotenv=dotenv, room=room, patience=patience, listened_for=listened_for) as looks:
            return {finding.check: finding for finding in await examined(looks, limit)}


@pytest.fixture
async def patient(
    tmp_path: Path, discord: DiscordSandbox, telegram: TelegramSandbox, runtime: RuntimeSandbox
) -> Patient:
    channel = discord.guild("Film club").text_channel("general")
    anna = telegram.user("Anna")
    group = telegram.supergroup("Film club", [anna])
    await anna.say(anna.private_chat, "hello")
    house = House(tmp_path / "data")
    await house.open()
    for session in (discord_session(channel.id), telegram_session(group.id)):
        await house.sessions.of(session).append([said()])
    await house.close()
    assert channel.guild is not None
    environment = {
        "DISCORD_TOKEN": discord.token,
        "DISCORD_API_URL": discord.api_url,
        "DISCORD_GATEWAY_URL": discord.gateway_url,
        "DISCORD_ALLOW": f"guild:{channel.guild.id}",
        "TELEGRAM_TOKEN": telegram.token,
        "TELEGRAM_API_URL": telegram.api_url,
        "TELEGRAM_ALLOW": f"{group.id},dm",
        "ISHIKI_DATA_DIR": str(house.folder),
        "ISHIKI_ADMINS": f"discord:{discord.world.owner.id},telegram:{anna.id}",
        "ISHIKI_RUNTIME_URL": runtime.url,
        "ISHIKI_RUNTIME_TOKEN": runtime.token,
        "ISHIKI_HTTP_PORT": "0",
    }
    return Patient(discord, telegram, house.folder, channel, group, anna, environment)
