"""The runtime of a test or a demo: keeps what it is told, and answers when it is woken."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeVar

from aiohttp import web

Json = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """One request: its path, body and ``Idempotency-Key``; ``status`` is what was answered."""

    path: str
    body: Json
    key: str
    status: int


@dataclass(frozen=True, slots=True)
class Turn:
    """What a wake gives to go by: the entry that caused it, and everything delivered in that session before."""

    session: str
    turn_id: str
    cause: Json
    rule: str
    delivered: tuple[Json, ...]


@dataclass(slots=True)
class Fault:
    """Answer the next ``times`` calls of ``path`` with ``status`` instead of taking them."""

    path: str
    status: int
    times: int = 1
    headers: dict[str, str] = field(default_factory=dict[str, str])


Think = Callable[[Turn], Awaitable[Json]]
"""What the agent does in a turn: the body of the answer to ``/wake``."""


async def say_nothing(_turn: Turn) -> Json:
    return {}


class RuntimeSandbox:
    """`async with RuntimeSandbox(think) as runtime:` serves at ``runtime.url``; callers must show ``runtime.token``."""

    def __init__(self, think: Think = say_nothing, *, port: int = 0, token: str = "runtime-of-the-sandbox") -> None:
        self.token = token
        self.url = ""
        self.calls: list[Call] = []
        self.entries: dict[str, list[Json]] = {}
        self.decisions: dict[str, Json] = {}
        self.faults: list[Fault] = []
        self.think = think
        self._port = port
        self._runner: web.AppRunner | None = None
        self._changed = asyncio.Condition()

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=4 * 1024 * 1024)
        app.router.add_post("/deliver", self._deliver)
        app.router.add_post("/wake", self._wake)
        app.router.add_post("/resolve", self._resolve)
        app.router.add_get("/{anything:.*}", self._nothing)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.5)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def until(self, look: Callable[[], T], *, within: float = 10.0) -> T:
        """Wait until ``look`` gives something that counts as true. Raises `TimeoutError`."""
        async with asyncio.timeout(within), self._changed:
            while not (found := look()):
                await self._changed.wait()
            return found

    def fail(self, path: str, status: int, *, times: int = 1, headers: dict[str, str] | None = None) -> None:
        """Refuse the next calls of a path."""
        self.faults.append(Fault(path, status, times, headers or {}))

    def recover(self) -> None:
        """Refuse nothing any more."""
        self.faults.clear()

    def texts(self, session: str) -> list[str]:
        """The contents of the messages delivered in a session, in order."""
        found = [entry["data"].get("data", {}) for entry in self.entries.get(session, [])]
        return [fact["content"] for fact in found if "content" in fact]

    async def _deliver(self, request: web.Request) -> web.Response:
        body, refused = await self._take(request)
        if refused is not None:
            return refused
        known = self.entries.setdefault(body["sessionId"], [])
        ids = {entry["id"] for entry in known}
        known.extend(entry for entry in body["entries"] if entry["id"] not in ids)
        await self._note(request, body, 204)
        return web.Response(status=204)

    async def _wake(self, request: web.Request) -> web.Response:
        body, refused = await self._take(request)
        if refused is not None:
            return refused
        delivered = tuple(self.entries.get(body["sessionId"], []))
        cause = next(entry for entry in delivered if entry["id"] == body["cause"]["entryId"])
        await self._note(request, body, 200)
        turn = Turn(body["sessionId"], body["turnId"], cause, body["cause"]["rule"], delivered)
        return web.json_response(await self.think(turn))

    async def _resolve(self, request: web.Request) -> web.Response:
        body, refused = await self._take(request)
        if refused is not None:
            return refused
        self.decisions.setdefault(body["taskHash"], body)
        await self._note(request, body, 204)
        return web.Response(status=204)

    async def _nothing(self, request: web.Request) -> web.Response:
        """There is nothing to read here; who has no right to is not even told that."""
        return web.Response(status=405 if self._knows(request) else 401)

    def _knows(self, request: web.Request) -> bool:
        return request.headers.get("Authorization") == f"Bearer {self.token}"

    async def _take(self, request: web.Request) -> tuple[Json, web.Response | None]:
        body: Json = json.loads(await request.read())
        if not self._knows(request):
            await self._note(request, body, 401)
            return body, web.Response(status=401)
        for fault in self.faults:
            if fault.path == request.path and fault.times > 0:
                fault.times -= 1
                await self._note(request, body, fault.status)
                return body, web.Response(status=fault.status, headers=fault.headers)
        return body, None

    async def _note(self, request: web.Request, body: Json, status: int) -> None:
        async with self._changed:
            self.calls.append(Call(request.path, body, request.headers.get("Idempotency-Key", ""), status))
            self._changed.notify_all()
