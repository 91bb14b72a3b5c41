"""The Bot API over HTTP, on loopback only."""

from __future__ import annotations

import asyncio
import inspect
import json
from contextlib import suppress
from email.utils import formatdate
from typing import Any

from aiohttp import web

from bots.sandbox.telegram.arguments import Arguments, read_arguments
from bots.sandbox.telegram.errors import REASONS, ApiError
from bots.sandbox.telegram.files import StoredFile
from bots.sandbox.telegram.methods import METHODS
from bots.sandbox.telegram.webhook import deliver_to_webhook
from bots.sandbox.telegram.world import ApiCall, World

_UPLOAD_LIMIT = 52 * 2**20
_NAMES = {name.lower(): name for name in METHODS}


class ApiServer:
    """Serves one world. `port` 0 takes a free one; `url` is valid after `start`."""

    def __init__(self, world: World, port: int = 0) -> None:
        self._world = world
        self._port = port
        self._runner: web.AppRunner | None = None
        self._courier: asyncio.Task[None] | None = None
        self.url = ""

    async def start(self) -> None:
        """Listen on 127.0.0.1."""
        app = web.Application(client_max_size=_UPLOAD_LIMIT)
        app.on_response_prepare.append(self._date)
        app.router.add_route("*", "/bot{token}/{method}", self._call)
        app.router.add_get("/file/bot{token}/{path:.+}", self._download)
        app.router.add_route("*", "/{anything:.*}", self._unknown)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.5)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        self._courier = asyncio.create_task(deliver_to_webhook(self._world), name="telegram sandbox webhook")

    async def stop(self) -> None:
        """End every open call and close."""
        if self._courier is not None:
            self._courier.cancel()
            with suppress(asyncio.CancelledError):
                await self._courier
        self.drop_connections()
        if self._runner is not None:
            await self._runner.cleanup()

    def drop_connections(self) -> None:
        """Cut every open connection without an answer."""
        if self._runner is not None and self._runner.server is not None:
            for connection in self._runner.server.connections:
                if connection.transport is not None:
                    connection.transport.abort()

    async def _date(self, _request: web.Request, response: web.StreamResponse) -> None:
        response.headers["Date"] = formatdate(self._world.now(), usegmt=True)

    async def _call(self, request: web.Request) -> web.StreamResponse:
        try:
            self._check_token(request.match_info["token"])
            name = _name_of(request.match_info["method"])
            result = await self._perform(name, await read_arguments(request))
        except ApiError as error:
            return _answer(error.body(), error.error_code)
        except web.HTTPRequestEntityTooLarge:
            return _answer(ApiError(413, REASONS[413]).body(), 413)
        if self._world.faults.loses_answer(name) and request.transport is not None:
            request.transport.abort()
        if self._world.faults.garbles(name):
            return web.Response(body=b'{"ok": true, "result": ', content_type="application/json")
        return _answer({"ok": True, "result": result}, 200)

    async def _perform(self, name: str, arguments: Arguments) -> object:
        self._world.calls.append(ApiCall(name, arguments.values))
        self._world.pulse.beat()
        if delay := self._world.faults.delay(name):
            await asyncio.sleep(delay)
        if refusal := self._world.faults.refusal(name, arguments.integer("chat_id")):
            raise refusal
        result = METHODS[name](self._world, arguments)
        return await result if inspect.isawaitable(result) else result

    async def _download(self, request: web.Request) -> web.StreamResponse:
        try:
            self._check_token(request.match_info["token"])
            return await self._serve(request, self._world.files.by_path(request.match_info["path"]))
        except ApiError as error:
            return _answer(error.body(), error.error_code)

    async def _serve(self, request: web.Request, stored: StoredFile | None) -> web.StreamResponse:
        data = stored.file.data if stored is not None else None
        if stored is None or data is None:
            raise ApiError(404, REASONS[404])
        fault = self._world.faults.file_fault(stored.file.name, stored.file_path)
        if fault == "missing":
            raise ApiError(404, REASONS[404])
        if fault is None:
            return web.Response(body=data, content_type="application/octet-stream")
        response = web.StreamResponse(headers={"Content-Type": "application/octet-stream"})
        await response.prepare(request)
        with suppress(ConnectionResetError):
            if fault == "slow":
                for start in range(0, len(data), max(len(data) // 20, 1)):
                    await response.write(data[start : start + max(len(data) // 20, 1)])
                    await asyncio.sleep(0.05)
            while fault == "endless":
                await response.write(bytes(2**16))
        return response

    async def _unknown(self, _request: web.Request) -> web.StreamResponse:
        return _answer(ApiError(404, REASONS[404]).body(), 404)

    def _check_token(self, token: str) -> None:
        """What is shaped like a token but unknown gets 401, anything else 404, as on api.telegram.org."""
        if token != self._world.token:
            bot_id, colon, _ = token.partition(":")
            raise ApiError(401, REASONS[401]) if colon and bot_id.isdecimal() else ApiError(404, REASONS[404])


def _name_of(method: str) -> str:
    """The method's own spelling; the server takes any letter case."""
    if (name := _NAMES.get(method.lower())) is None:
        raise ApiError(404, REASONS[404])
    return name


def _answer(body: dict[str, Any], status: int) -> web.Response:
    return web.Response(body=json.dumps(body).encode(), status=status, content_type="application/json")
