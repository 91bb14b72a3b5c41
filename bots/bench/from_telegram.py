"""From Telegram's answers into the log, beside the library's own reading of the same answers."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import telegram
from telegram.request import HTTPXRequest

from bots.bench.goal import Bench, Measured, each_second
from bots.bench.house import Counter, House, house_in, rate
from bots.bench.pairs import in_turns
from bots.bench.peer import Peer
from bots.bench.said import lines_of
from bots.diagnostics import configure
from bots.telegram.connection import quieten
from bots.telegram.inbound import Inbound
from bots.telegram.updates import KINDS
from core.access import Admission, AllowRules
from core.archive.profiles import Profiles
from core.archive.titles import Titles
from core.health import Health
from core.pairing.reception import Reception

BESIDE, OURS = "7000000001:beside", "7000000001:ours"
READY_WITHIN = 30.0


def measure(bench: Bench) -> Measured:
    """Updates a second, from the moment in which they are let go until the last one is durable."""
    return asyncio.run(_measure(bench))


async def _measure(bench: Bench) -> Measured:
    configure("error", "console")
    quieten()
    count, blasts = bench.sizes.updates, bench.sizes.pairs + 1
    with Peer("bots.bench.telegram_peer", str(count), str(blasts)) as peer:
        url = f"http://127.0.0.1:{peer.ready}"
        heard, written = Counter(), Counter()
        async with house_in(bench.folder) as house, _library(url, heard), _inbound(house, url, written):
            blast = 0

            async def ours() -> float:
                nonlocal blast
                written.begin(lines_of((blast + 1) * count) - lines_of(blast * count))
                blast += 1
                return await rate(peer, OURS, written, count)

            async def beside() -> float:
                heard.begin(count)
                return await rate(peer, BESIDE, heard, count)

            pair = await in_turns(ours, beside, bench.sizes.pairs)
    return Measured(pair.ratio, f"{each_second(pair.ours)} of {each_second(pair.beside)}")


@asynccontextmanager
async def _library(url: str, heard: Counter) -> AsyncGenerator[None]:
    """The library alone: `get_updates`, and nothing done with what it gives."""

    async def ignore(_update: telegram.Update) -> None:
        heard.add()

    async def poll(bot: telegram.Bot) -> None:
        offset = None
        while True:
            for update in await bot.get_updates(offset, timeout=30, allowed_updates=list(KINDS)):
                await ignore(update)
                offset = update.update_id + 1

    request = HTTPXRequest(connection_pool_size=1, read_timeout=None)
    async with telegram.Bot(BESIDE, base_url=f"{url}/bot", get_updates_request=request) as bot:
        running = asyncio.create_task(poll(bot))
        try:
            yield
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


@asynccontextmanager
async def _inbound(house: House, url: str, written: Counter) -> AsyncGenerator[None]:
    health = Health("telegram")
    inbound = Inbound(
        OURS,
        api_url=url,
        reception=Reception(Admission(AllowRules.parse("*")), titles=Titles(Profiles(house.store))),
        sessions=house.sessions,
        health=health,
        store=house.store,
        answers=house.answers,
        lineage=house.lineage,
    )
    house.sessions.listen(written.on_append)
    running = asyncio.create_task(inbound.run(), name="telegram")
    try:
        async with asyncio.timeout(READY_WITHIN):
            while not health.ready:  # noqa: ASYNC110 - a plain value
                await asyncio.sleep(0.02)
        yield
    finally:
        await inbound.stop()
        await asyncio.gather(running, return_exceptions=True)
