"""What is served from the first moment on: the two health pages at once, all else as soon as the API is built.

The framework of the API takes as long to import and to build as a chat platform's library, and nobody asks for it in
the moment of a start; so that is done beside what is being connected, in a thread.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from bots.web.guard import Access, Guard
from bots.web.health import alive, readiness
from core.health import Health

SOON: Final = 1.0
"""Seconds after which the API is built though nobody has asked for it: then both platforms are usually connected."""


class Front:
    """The ASGI app before the API, and then the API itself. ``build`` is called once, in a thread."""

    def __init__(
        self,
        build: Callable[[], ASGIApp],
        health: Sequence[Health],
        data: Path,
        access: Access,
        *,
        soon: float = SOON,
    ) -> None:
        self._build = build
        self._soon = soon
        self._building: asyncio.Task[ASGIApp] | None = None
        self._pages: Mapping[str, Callable[[], Awaitable[Response]]] = {
            "/healthz": alive,
            "/readyz": partial(readiness, health, data),
        }
        self._health = Guard(self._tell, access)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        page = scope["type"] == "http" and scope["method"] == "GET" and scope["path"] in self._pages
        await (self._health if page else await self._api())(scope, receive, send)

    async def prepare(self) -> None:
        """Have the API built soon, so that the first who asks for it does not wait. Ends only with what that raises."""
        await asyncio.sleep(self._soon)
        await self._api()
        await asyncio.get_running_loop().create_future()

    async def _api(self) -> ASGIApp:
        self._building = self._building or asyncio.create_task(asyncio.to_thread(self._build), name="api")
        return await asyncio.shield(self._building)

    async def _tell(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._pages[scope["path"]]()
        await response(scope, receive, send)
