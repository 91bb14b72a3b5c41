"""A gateway session, and a socket that reads it.

A session is a numbered list of dispatches; a connection is a place in it. What a session would have been told is
written to its list whether or not a socket is open, so resuming is nothing but reading on.
"""

import asyncio
import json
import secrets
import zlib
from collections.abc import Callable

from aiohttp import ClientConnectionResetError, web

from bots.sandbox.discord.model import Event, Intent

DISPATCH = 0

MAX_BACKLOG = 100_000
"""Dispatches kept for a session that does not acknowledge; one that missed more must identify anew."""


class Session:
    """What one identified client is told. Outlives its sockets."""

    def __init__(self, intents: Intent, on_dispatch: Callable[[], None]) -> None:
        self.id = secrets.token_hex(16)
        self.intents = intents
        self.sequence = 0
        self._first = 1
        self._backlog: list[str] = []
        self._on_dispatch = on_dispatch
        self.connection: Connection | None = None

    def dispatch(self, name: str, data: object) -> None:
        self.sequence += 1
        frame = {"t": name, "s": self.sequence, "op": DISPATCH, "d": data}
        self._backlog.append(json.dumps(frame, separators=(",", ":")))
        if len(self._backlog) > MAX_BACKLOG:
            self.acknowledge(self._first)
        if self.connection is not None:
            self.connection.awake.set()
        self._on_dispatch()

    def tell(self, event: Event) -> None:
        """Dispatch an event if its intents are held, without user input if Message Content is not."""
        if event.intents and not event.intents & self.intents:
            return
        hides = event.redacted is not None and Intent.MESSAGE_CONTENT not in self.intents
        self.dispatch(event.name, event.redacted if hides else event.data)

    def acknowledge(self, sequence: int) -> None:
        """Forget what the client has."""
        done = max(0, sequence + 1 - self._first)
        del self._backlog[:done]
        self._first += done

    def can_resume(self, sequence: int) -> bool:
        return sequence + 1 >= self._first

    def after(self, sequence: int) -> list[str]:
        return self._backlog[sequence + 1 - self._first :]


class Connection:
    """One socket, reading one session from `sent` on."""

    def __init__(self, socket: web.WebSocketResponse, request: web.Request, on_sent: Callable[[], None]) -> None:
        self.socket = socket
        self.session: Session | None = None
        self.sent = 0
        self.awake = asyncio.Event()
        self.our_code: int | None = None
        self.their_code: int | None = None
        self._request = request
        self._on_sent = on_sent
        self._sending = asyncio.Lock()
        self._deflate = zlib.compressobj() if request.query.get("compress") == "zlib-stream" else None

    async def send(self, op: int, data: object) -> None:
        await self._send(json.dumps({"t": None, "s": None, "op": op, "d": data}))

    async def pump(self) -> None:
        """Send the session's dispatches as they come, until cancelled or cut."""
        try:
            while True:
                await self.awake.wait()
                self.awake.clear()
                await self._send_waiting()
                self._on_sent()
        except ClientConnectionResetError:
            return  # the reading side sees the end too, and clears up

    async def close(self, code: int, reason: str) -> None:
        """Close from the server's side."""
        self.our_code = code
        await self.socket.close(code=code, message=reason.encode())

    def abort(self) -> None:
        """Cut the line as a broken cable would: no close frame."""
        if self._request.transport is not None:
            self._request.transport.abort()

    async def _send_waiting(self) -> None:
        session = self.session
        if session is None:
            return
        for frame in session.after(self.sent):
            if self.session is not session:
                return  # invalidated meanwhile
            self.sent += 1
            await self._send(frame)

    async def _send(self, text: str) -> None:
        async with self._sending:
            if self._deflate is None:
                await self.socket.send_str(text)
            else:
                data = self._deflate.compress(text.encode()) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
                await self.socket.send_bytes(data)
