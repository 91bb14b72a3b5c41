"""Serves our API inside the program's own loop."""

import asyncio
import errno
import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bots.web.connection import Connection
from bots.web.errors import error_response
from bots.web.events import ENDING
from core.errors import AddressTaken

FINISH_WITHIN: Final = 2
"""Seconds that requests under way get when we stop; the server's own ticks come on top, under a second."""


class WebServer:
    """Listens from `start` to `stop`. Port 0 takes any free one; `address` then says which."""

    def __init__(self, app: ASGIApp, host: str = "127.0.0.1", port: int = 17989) -> None:
        self._host = host.strip("[]")
        self._port = port
        self._ending: asyncio.Future[None] | None = None
        config = uvicorn.Config(
            self._ended_by_a_stop(app),
            http=Connection,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=FINISH_WITHIN,
        )
        self._server = _Server(config)
        self._serving: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        """``http://127.0.0.1:17989``"""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    async def start(self) -> None:
        """Done when requests are answered. Raises `AddressTaken`."""
        listener = await self._bind()
        self._ending = asyncio.get_running_loop().create_future()
        self._port = listener.getsockname()[1]
        self._serving = asyncio.create_task(self._server.serve([listener]), name="web")
        started = asyncio.create_task(self._server.listening.wait())
        await asyncio.wait({self._serving, started}, return_when=asyncio.FIRST_COMPLETED)
        if self._serving.done():
            started.cancel()
            self._serving.result()

    async def stop(self) -> None:
        """Take no more requests, end streams, and finish what else is under way for `FINISH_WITHIN` seconds.

        Again is no error.
        """
        if self._serving is not None:
            if self._ending is not None and not self._ending.done():
                self._ending.set_result(None)
            self._server.should_exit = True
            await self._serving

    async def _bind(self) -> socket.socket:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            family, kind, protocol, _, place = found[0]
            listener = socket.socket(family, kind, protocol)
            try:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(place)
                listener.listen()
            except OSError:
                listener.close()
                raise
        except OSError as error:
            raise AddressTaken(self._explain(error)) from error
        listener.setblocking(False)
        return listener

    def _explain(self, error: OSError) -> str:
        place = f"{self._host}:{self._port}"
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            return f"cannot listen on {place}: no address of this machine; set ISHIKI_HTTP_HOST to one, e.g. 127.0.0.1"
        if error.errno == errno.EADDRINUSE:
            return f"cannot listen on {place}: another program does; stop it, or set ISHIKI_HTTP_PORT to a free port"
        reason = os.strerror(error.errno) if error.errno else type(error).__name__
        return f"cannot listen on {place} ({reason}); set ISHIKI_HTTP_HOST and ISHIKI_HTTP_PORT to others"

    def _ended_by_a_stop(self, app: ASGIApp) -> ASGIApp:
        """Only the stopping server cancels a request: the caller is told so, and it is no error of the program."""

        async def run(scope: Scope, receive: Receive, send: Send) -> None:
            started = False
            scope[ENDING] = self._ending

            async def note(message: Message) -> None:
                nonlocal started
                started = True
                await send(message)

            try:
                await app(scope, receive, note)
            except asyncio.CancelledError:
                if not started:
                    message = "the gateway is stopping; ask again later, with the same Idempotency-Key"
                    await error_response(503, "stopping", message)(scope, receive, send)

        return run


class _Server(uvicorn.Server):
    """Signals are the program's own business."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()
