"""A runtime that takes its time."""

import asyncio

from aiohttp import web

from bots.sandbox.runtime import RuntimeSandbox
from tests.torture.book import Json


class SlowRuntime(RuntimeSandbox):
    """``delay`` seconds pass before it looks at a call; of what is delivered it takes ``entries_per_second``."""

    delay = 0.0
    entries_per_second = 0.0

    async def _take(self, request: web.Request) -> tuple[Json, web.Response | None]:
        await asyncio.sleep(self.delay)
        body, refused = await super()._take(request)
        if self.entries_per_second and request.path == "/deliver":
            async with self._working:
                await asyncio.sleep(len(body["entries"]) / self.entries_per_second)
        return body, refused

    async def __aenter__(self) -> "SlowRuntime":
        self._working = asyncio.Lock()
        return await super().__aenter__()
