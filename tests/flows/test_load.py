"""Ten thousand messages through the real clients: each exactly once, in the chat's order."""

import asyncio
import json
from pathlib import Path
from typing import Any

from bots.sandbox.discord import DiscordSandbox
from bots.sandbox.telegram import TelegramSandbox
from core.ids import SessionId, discord_session, telegram_session
from tests.conftest import House
from tests.flows import discord_house, telegram_house

MANY = 10_000
WITHIN = 60.0


def contents(folder: Path, session: SessionId) -> list[str]:
    path = folder / "runtimes" / session / "events.jsonl"
    lines: list[dict[str, Any]] = [json.loads(line) for line in path.read_bytes().splitlines()]
    return [line["data"]["data"]["content"] for line in lines]


async def until_written(house: House, session: SessionId) -> None:
    """Until the log is as long as ten thousand messages, seen from its last line."""
    async with asyncio.timeout(WITHIN):
        while True:
            newest = next(house.sessions.of(session).read_back(), None)
            if newest is not None and newest.entry.data.data.content == f"message {MANY - 1}":
                return
            await asyncio.sleep(0.05)


async def test_ten_thousand_messages_on_discord_with_the_connection_cut_in_between(house: House) -> None:
    async with DiscordSandbox() as discord:
        channel = discord.guild("Film club").text_channel("general")
        mona = discord.user("Mona")
        async with discord_house.door_on(discord, house):
            for number in range(MANY):
                await mona.say(channel, f"message {number}")
                if number % 1000 == 500:
                    await asyncio.sleep(0)
                if number == MANY // 2:
                    await discord.drop_connections()
            session = discord_session(channel.id)
            await until_written(house, session)
    assert contents(house.folder, session) == [f"message {number}" for number in range(MANY)]


async def test_ten_thousand_messages_on_telegram_with_the_connection_cut_in_between(house: House) -> None:
    async with TelegramSandbox() as telegram:
        anna = telegram.user("Anna")
        group = telegram.supergroup("Film club", [anna])
        async with telegram_house.door_on(telegram, house, ready=False):
            for number in range(MANY):
                await anna.say(group, f"message {number}")
                if number % 100 == 50:
                    await asyncio.sleep(0)
                if number == MANY // 2:
                    telegram.drop_connections()
            session = telegram_session(group.id)
            await until_written(house, session)
    assert contents(house.folder, session) == [f"message {number}" for number in range(MANY)]
