"""The real discord.py, pointed at the stand-in, remembering every event in order."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import discord
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

from bots.sandbox.discord import DiscordSandbox

T = TypeVar("T")

INTENTS = discord.Intents(
    guilds=True, guild_messages=True, guild_reactions=True, dm_messages=True, message_content=True
)


class Listener(discord.Client):
    """A client without a message cache. `seen` are the events as discord.py dispatched them."""

    def __init__(self, intents: discord.Intents = INTENTS) -> None:
        super().__init__(intents=intents, max_messages=None, guild_ready_timeout=0.1)
        self.seen: list[tuple[str, tuple[Any, ...]]] = []
        self._pulse = asyncio.Event()

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Do not sleep five seconds before a second IDENTIFY."""

    def dispatch(self, event: str, /, *args: object, **kwargs: object) -> None:
        super().dispatch(event, *args, **kwargs)
        self.seen.append((event, args))
        self.changed()

    def changed(self) -> None:
        """Let everybody who waits look again."""
        self._pulse.set()
        self._pulse = asyncio.Event()

    def all(self, event: str) -> list[Any]:
        """The first argument of each event of that name."""
        return [args[0] if args else None for name, args in self.seen if name == event]

    @property
    def messages(self) -> list[discord.Message]:
        return self.all("message")

    async def until(self, look: Callable[[], T | None], within: float = 10.0) -> T:
        """The first truthy value of `look`, which is asked again after each event."""
        async with asyncio.timeout(within):
            while True:
                pulse = self._pulse
                if found := look():
                    return found
                await pulse.wait()

    async def events(self, name: str, count: int = 1) -> list[Any]:
        """The first arguments of the events of that name, once there are so many."""
        return await self.until(lambda: self.all(name) if len(self.all(name)) >= count else None)

    async def heard(self, content: str) -> discord.Message:
        """The newest message with that text, once it has come."""
        return await self.until(lambda: next((m for m in reversed(self.messages) if m.content == content), None))


@asynccontextmanager
async def pointed_at(sandbox: DiscordSandbox) -> AsyncGenerator[None]:
    """Redirect discord.py, which keeps its addresses in class attributes."""
    before = Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY
    Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY = sandbox.api_url, yarl.URL(sandbox.gateway_url)
    try:
        yield
    finally:
        Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY = before


@asynccontextmanager
async def running(sandbox: DiscordSandbox, client: Listener) -> AsyncGenerator[Listener]:
    """Log a client in and wait until it is ready; log it out in the end."""
    async with pointed_at(sandbox):
        task = asyncio.create_task(client.start(sandbox.token))
        try:
            await client.until(client.is_ready)
            yield client
        finally:
            await client.close()
            await task
