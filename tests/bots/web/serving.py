"""The app on a real socket, and a reader of its events."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx
from starlette.types import ASGIApp

from bots.web.server import WebServer


class Event(NamedTuple):
    """One event as a browser would see it; ``number`` is its id, None where it has none of its own."""

    kind: str
    data: str
    number: str | None

    @property
    def json(self) -> Any:
        return json.loads(self.data)


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncGenerator[httpx.AsyncClient]:
    """A client of a server over real sockets."""
    server = WebServer(app, "127.0.0.1", 0)
    await server.start()
    try:
        async with httpx.AsyncClient(base_url=server.address, trust_env=False, timeout=20) as client:
            yield client
    finally:
        await server.stop()


async def events_of(response: httpx.Response) -> AsyncIterator[Event]:
    """Parse as the standard says (WHATWG HTML 9.2.6), comments left out."""
    fields: dict[str, list[str]] = {}
    async for line in _lines(response):
        if line:
            name, _, value = line.partition(":")
            fields.setdefault(name, []).append(value.removeprefix(" "))
        else:
            if "data" in fields:
                number = fields["id"][-1] if "id" in fields else None
                yield Event(fields.get("event", ["message"])[-1], "\n".join(fields["data"]), number)
            fields = {}


async def _lines(response: httpx.Response) -> AsyncIterator[str]:
    """Cut at LF only: the library also cuts at U+2028, which stands in JSON unescaped."""
    kept = b""
    async for chunk in response.aiter_bytes():
        *lines, kept = (kept + chunk).split(b"\n")
        for line in lines:
            yield line.decode()


class Reader:
    """Follows a stream in a task, and keeps what it saw."""

    def __init__(self, client: httpx.AsyncClient, path: str, headers: dict[str, str] | None = None) -> None:
        self.events: list[Event] = []
        self.opened = asyncio.Event()
        self.task = asyncio.create_task(self._read(client, path, headers or {}))

    async def _read(self, client: httpx.AsyncClient, path: str, headers: dict[str, str]) -> None:
        async with client.stream("GET", path, headers=headers) as response:
            assert response.status_code == 200, (await response.aread(), response.status_code)
            assert response.headers["content-type"].startswith("text/event-stream")
            self.opened.set()
            async for event in events_of(response):
                self.events.append(event)

    def of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.kind == kind]

    async def hang_up(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
