"""From Discord's socket into the log, beside the same client that does nothing with what it hears."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import discord

from bots.bench.goal import Bench, Measured, each_second
from bots.bench.house import Counter, House, house_in, rate
from bots.bench.pairs import in_turns
from bots.bench.peer import Peer
from bots.bench.said import CHANNELS, discord_channel, lines_of
from bots.diagnostics import configure
from bots.discord.connection import quieten, redirect
from bots.discord.inbound import Inbound
from core.access import Admission, AllowRules
from core.archive.horizon import Horizon
from core.archive.profiles import Profiles
from core.archive.titles import Titles
from core.health import Health
from core.ids import discord_session
from core.pairing.reception import Reception

BESIDE, OURS = "beside", "ours"
READY_WITHIN = 30.0


class Idle(discord.Client):
    """The client as `bots.discord.connection` sets it up, with a handler that only counts."""

    def __init__(self, heard: Counter) -> None:
        super().__init__(
            intents=discord.Intents(guilds=True, guild_messages=True, dm_messages=True, message_content=True),
            max_messages=None,
            chunk_guilds_at_startup=False,
            member_cache_flags=discord.MemberCacheFlags.none(),
        )
        self.heard = heard

    async def on_message(self, _message: discord.Message) -> None:
        self.heard.add()


def measure(bench: Bench) -> Measured:
    """Messages a second, from the moment in which they are let go until the last one is durable."""
    return asyncio.run(_measure(bench))


async def _measure(bench: Bench) -> Measured:
    configure("error", "console")
    count, blasts = bench.sizes.messages, bench.sizes.pairs + 1
    with Peer("bots.bench.discord_peer", str(count), str(blasts)) as peer:
        address = f"127.0.0.1:{peer.ready}"
        redirect(f"http://{address}/api", f"ws://{address}/gateway/")
        quieten()
        heard, written = Counter(), Counter()
        async with house_in(bench.folder) as house, _idle(heard), _inbound(house, address, written):
            blast = 0

            async def ours() -> float:
                nonlocal blast
                lines = lines_of((blast + 1) * count) - lines_of(blast * count)
                blast += 1
                written.begin(lines)
                return await rate(peer, OURS, written, count)

            async def beside() -> float:
                heard.begin(count)
                return await rate(peer, BESIDE, heard, count)

            pair = await in_turns(ours, beside, bench.sizes.pairs)
    return Measured(pair.ratio, f"{each_second(pair.ours)} of {each_second(pair.beside)}")


@asynccontextmanager
async def _idle(heard: Counter) -> AsyncGenerator[None]:
    client = Idle(heard)
    running = asyncio.create_task(client.start(BESIDE))
    try:
        await _until(client.is_ready, running)
        yield
    finally:
        await client.close()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@asynccontextmanager
async def _inbound(house: House, address: str, written: Counter) -> AsyncGenerator[None]:
    health = Health("discord")
    inbound = Inbound(
        OURS,
        api_url=f"http://{address}/api",
        gateway_url=f"ws://{address}/gateway/",
        cdn_hosts=("cdn.discordapp.com", "media.discordapp.net"),
        reception=Reception(Admission(AllowRules.parse("*")), titles=Titles(Profiles(house.store))),
        sessions=house.sessions,
        health=health,
        horizon=Horizon(house.store, "discord"),
        answers=house.answers,
    )
    house.sessions.listen(written.on_append)
    running = asyncio.create_task(inbound.run(), name="discord")
    try:
        await _until(lambda: health.ready, running)
        async with asyncio.timeout(READY_WITHIN):  # the catch-up begins once the servers are told
            for channel in range(CHANNELS):
                await inbound.caught_up(discord_session(int(discord_channel(channel)["id"])))
        yield
    finally:
        await inbound.stop()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _until(holds: Callable[[], bool], running: "asyncio.Task[None]") -> None:
    async with asyncio.timeout(READY_WITHIN):
        while not holds() and not running.done():  # noqa: ASYNC110 - a plain value
            await asyncio.sleep(0.02)
    if running.done():
        running.result()
