"""Following a session over HTTP while the program is killed and started again."""

import asyncio
import random
from pathlib import Path

import httpx

from bots.sandbox.discord import DiscordSandbox
from bots.sandbox.telegram import TelegramSandbox
from core.ids import discord_session
from tests.bots.web.serving import Reader
from tests.conftest import Until
from tests.flows.operators import Operator

SAID = 120


async def test_a_reader_sees_each_entry_once_over_kills_and_restarts(
    tmp_path: Path, discord: DiscordSandbox, telegram: TelegramSandbox, until: Until
) -> None:
    operator, chance = Operator(tmp_path, discord, telegram), random.Random(5)
    channel, mona = discord.guild("Film club").text_channel("general"), discord.user("Mona")
    session = discord_session(channel.id)
    seen: list[str] = []

    async def talk() -> None:
        for number in range(SAID):
            await mona.say(channel, f"message {number}")
            await asyncio.sleep(0.05)

    async def listen(seconds: float) -> None:
        """For so long, in connections that break at any moment."""
        base = f"http://127.0.0.1:{operator.port}/v1/session/{session}"
        end = asyncio.get_running_loop().time() + seconds
        async with httpx.AsyncClient(trust_env=False, base_url=base, timeout=10) as client:
            while asyncio.get_running_loop().time() < end:
                reader = Reader(client, "/stream?after=", {"Last-Event-ID": seen[-1]} if seen else {})
                await asyncio.wait({reader.task}, timeout=chance.uniform(0.05, 0.6))
                await reader.hang_up()
                seen.extend(event.number or "" for event in reader.of("entry"))

    async with operator.running():
        await mona.say(channel, "the first")
        await until(lambda: operator.lines(session))
    talking = asyncio.create_task(talk())
    for _ in range(3):
        async with operator.running() as process:
            listening = asyncio.create_task(listen(2.0))
            await asyncio.sleep(chance.uniform(0.5, 1.5))
            await operator.kill(process)
            await asyncio.gather(listening, return_exceptions=True)
    await talking
    async with operator.running():
        async with asyncio.timeout(30):
            while len(operator.lines(session)) < SAID + 1 or len(seen) < SAID + 1:
                await listen(0.5)
    assert seen == [line["id"] for line in operator.lines(session)]
