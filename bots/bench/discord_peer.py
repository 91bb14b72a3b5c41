"""A Discord that says all it has to say as fast as the socket takes it: the frames are made and packed before.

``python -m bots.bench.discord_peer MESSAGES BLASTS``: its first line is the port. ``TOKEN`` on standard input sends the
next blast to the connection that identified with that token; connections are told the same.
"""

import asyncio
import json
import sys
import zlib
from collections.abc import Iterator
from typing import Any

from aiohttp import web

from bots.bench.peer import say
from bots.bench.said import discord_bot, discord_guild, discord_message

HEARTBEAT_MS = 3_600_000
"""No heartbeat during a run: its answer would have to be packed into the stream that is ready."""


class Discord:
    """One websocket for each token."""

    def __init__(self, messages: int, blasts: int) -> None:
        self._port = 0
        self._packer = zlib.compressobj()
        self._sequence = 0
        self._greeting: tuple[bytes, bytes] | None = None
        self._messages, self._blasts = messages, blasts
        self._ready: list[bytes] = []
        self._left: dict[str, Iterator[bytes]] = {}
        self._sockets: dict[str, web.WebSocketResponse] = {}
        self._transports: dict[str, asyncio.WriteTransport] = {}

    async def serve(self) -> int:
        """Listen, and have everything ready. Returns the port."""
        app = web.Application()
        app.router.add_get("/api/users/@me", self._me)
        app.router.add_get("/api/oauth2/applications/@me", self._application)
        app.router.add_get("/gateway/", self._gateway)
        app.router.add_get("/api/{rest:.*}", self._nothing)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._port = int(self._runner.addresses[0][1])
        hello = _frame(self._pack({"op": 10, "d": {"heartbeat_interval": HEARTBEAT_MS}}))
        ready = {
            "v": 10,
            "user": discord_bot(),
            "guilds": [{"id": discord_guild()["id"], "unavailable": True}],
            "session_id": "bench",
            "resume_gateway_url": f"ws://127.0.0.1:{self._port}/gateway/",
            "application": {"id": discord_bot()["id"], "flags": 0},
        }
        self._greeting = (hello, self._event("READY", ready) + self._event("GUILD_CREATE", discord_guild()))
        for blast in range(self._blasts):
            start = blast * self._messages
            numbers = range(start, start + self._messages)
            self._ready.append(b"".join(self._event("MESSAGE_CREATE", discord_message(n)) for n in numbers))
        return self._port

    def blast(self, token: str) -> None:
        self._transports[token].write(next(self._left[token]))

    async def _me(self, _request: web.Request) -> web.Response:
        return _json(discord_bot())

    async def _application(self, _request: web.Request) -> web.Response:
        about = {"id": discord_bot()["id"], "name": "Ishiki", "description": "", "icon": None, "verify_key": "0" * 64}
        about |= {"bot_public": False, "bot_require_code_grant": False, "owner": discord_bot(), "flags": 0}
        return _json(about)

    async def _nothing(self, _request: web.Request) -> web.Response:
        return _json([])

    async def _gateway(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(compress=False)
        await socket.prepare(request)
        transport = request.transport
        assert transport is not None
        assert self._greeting is not None
        transport.write(self._greeting[0])
        async for message in socket:
            said = json.loads(message.data)
            if said["op"] == 2:
                token = said["d"]["token"]
                self._left[token], self._transports[token] = iter(self._ready), transport
                transport.write(self._greeting[1])
        return socket

    def _event(self, kind: str, payload: dict[str, Any]) -> bytes:
        self._sequence += 1
        return _frame(self._pack({"t": kind, "s": self._sequence, "op": 0, "d": payload}))

    def _pack(self, payload: dict[str, Any]) -> bytes:
        text = json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()
        return self._packer.compress(text) + self._packer.flush(zlib.Z_SYNC_FLUSH)


def _json(value: object) -> web.Response:
    return web.Response(body=json.dumps(value), headers={"Content-Type": "application/json"})  # no charset beside it


def _frame(payload: bytes) -> bytes:
    """One unmasked binary frame (RFC 6455, 5.2)."""
    size = len(payload)
    if size < 126:
        return bytes((0x82, size)) + payload
    if size < 1 << 16:
        return b"\x82\x7e" + size.to_bytes(2, "big") + payload
    return b"\x82\x7f" + size.to_bytes(8, "big") + payload


async def main() -> None:
    discord = Discord(int(sys.argv[1]), int(sys.argv[2]))
    say(await discord.serve())
    while line := await asyncio.to_thread(sys.stdin.readline):
        discord.blast(line.strip())


if __name__ == "__main__":
    asyncio.run(main())
