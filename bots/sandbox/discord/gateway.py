"""The gateway: who may connect, identify and resume (Gateway, Connection Lifecycle and Close Event Codes)."""

import asyncio
import json
from typing import cast

from aiohttp import ClientConnectionResetError, WSCloseCode, WSMessage, WSMsgType, web

from bots.sandbox.discord import payloads
from bots.sandbox.discord.model import PRIVILEGED, Event, Intent, JsonObject
from bots.sandbox.discord.sessions import Connection, Session
from bots.sandbox.discord.world import World

HEARTBEAT, IDENTIFY, PRESENCE, VOICE, RESUME = 1, 2, 3, 4, 6
RECONNECT, REQUEST_MEMBERS, INVALID_SESSION, HELLO, HEARTBEAT_ACK = 7, 8, 9, 10, 11

UNKNOWN_OPCODE, DECODE_ERROR, NOT_AUTHENTICATED, AUTHENTICATION_FAILED, ALREADY_AUTHENTICATED = range(4001, 4006)
INVALID_SEQUENCE, SESSION_TIMED_OUT, INVALID_VERSION, INVALID_INTENTS, DISALLOWED_INTENTS = 4007, 4009, 4012, 4013, 4014
ENDING = (AUTHENTICATION_FAILED, INVALID_SEQUENCE, SESSION_TIMED_OUT, *range(4010, 4015))
"""Codes after which a session cannot be resumed."""

MAX_PAYLOAD = 4096
"""Bytes a client may send at once (Gateway, Sending Events)."""


class Closed(Exception):
    """The server ends a connection, with a code of Gateway Close Event Codes."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Gateway:
    """Serves the websocket. `url` is what READY names for resuming."""

    def __init__(self, world: World, token: str, *, heartbeat_interval: float) -> None:
        self.url = ""
        self.sessions: dict[str, Session] = {}
        self.connections: set[Connection] = set()
        self.identified = 0
        self.resumed = 0
        self._world = world
        self._token = token
        self._interval = heartbeat_interval

    def publish(self, event: Event) -> None:
        for session in self.sessions.values():
            session.tell(event)

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """One connection, from HELLO to its end."""
        socket = web.WebSocketResponse(compress=False, max_msg_size=0)
        await socket.prepare(request)
        connection = Connection(socket, request, self._world.changed)
        self.connections.add(connection)
        pump = asyncio.create_task(connection.pump(), name="gateway pump")
        try:
            await self._greet(connection, request.query.get("v"))
            await self._listen(connection)
        except Closed as closed:
            await connection.close(closed.code, str(closed))
        except ClientConnectionResetError:
            pass  # the client is gone; its session stays
        finally:
            pump.cancel()
            self.connections.discard(connection)
            self._leave(connection)
        return socket

    async def drop(self) -> None:
        """Cut every socket without a close frame; sessions stay resumable."""
        for connection in tuple(self.connections):
            connection.abort()
        await self._world.until(lambda: not self.connections, within=5.0)

    async def ask_to_reconnect(self) -> None:
        """Send RECONNECT (op 7): the client is to close and resume."""
        for connection in tuple(self.connections):
            await connection.send(RECONNECT, None)

    async def invalidate(self, *, resumable: bool) -> None:
        """Send INVALID SESSION (op 9). Unless `resumable`, the sessions are gone."""
        for connection in tuple(self.connections):
            if not resumable and connection.session is not None:
                self.sessions.pop(connection.session.id, None)
                connection.session = None
            await connection.send(INVALID_SESSION, resumable)

    async def close(self, code: int, reason: str = "") -> None:
        """Close every connection with a code."""
        for connection in tuple(self.connections):
            await connection.close(code, reason)

    async def _greet(self, connection: Connection, version: str | None) -> None:
        if version != "10":
            raise Closed(INVALID_VERSION, "Invalid API version.")
        await connection.send(HELLO, {"heartbeat_interval": int(self._interval * 1000), "_trace": []})

    async def _listen(self, connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        patience = self._interval * 2
        deadline = loop.time() + patience
        while True:
            try:
                message: WSMessage = await connection.socket.receive(timeout=max(0.0, deadline - loop.time()))
            except TimeoutError:
                raise Closed(SESSION_TIMED_OUT, "Session timed out.") from None
            if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                connection.their_code = message.data if message.type is WSMsgType.CLOSE else None
                return
            op, data = _decode(message.data)
            if op == HEARTBEAT:
                deadline = loop.time() + patience
                if connection.session is not None and isinstance(data, int):
                    connection.session.acknowledge(min(data, connection.sent))
                await connection.send(HEARTBEAT_ACK, None)
            elif op == IDENTIFY:
                self._identify(connection, _object(data))
            elif op == RESUME:
                await self._resume(connection, _object(data))
            elif op in (PRESENCE, VOICE, REQUEST_MEMBERS):
                if connection.session is None:
                    raise Closed(NOT_AUTHENTICATED, "Not authenticated.")
                if op == REQUEST_MEMBERS:
                    self._send_members(connection.session, _object(data))
            else:
                raise Closed(UNKNOWN_OPCODE, "Unknown opcode.")

    def _identify(self, connection: Connection, data: JsonObject) -> None:
        if connection.session is not None:
            raise Closed(ALREADY_AUTHENTICATED, "Already authenticated.")
        if data.get("token") != self._token:
            raise Closed(AUTHENTICATION_FAILED, "Authentication failed.")
        asked = data.get("intents")
        if not isinstance(asked, int) or asked < 0 or asked >> 26:
            raise Closed(INVALID_INTENTS, "Invalid intent(s).")
        intents = Intent(asked)
        if intents & PRIVILEGED & ~self._world.granted:
            raise Closed(DISALLOWED_INTENTS, "Disallowed intent(s).")
        session = Session(intents, self._world.changed)
        self.sessions[session.id] = session
        self._join(connection, session, 0)
        self.identified += 1
        bot, guilds = self._world.bot, self._world.guilds.values()
        session.dispatch("READY", self._ready(session, data.get("shard") or [0, 1]))
        if Intent.GUILDS in intents:
            for guild in guilds:
                shown = Intent.GUILD_PRESENCES in intents
                session.dispatch("GUILD_CREATE", payloads.gateway_guild(guild, bot, with_members=shown))

    async def _resume(self, connection: Connection, data: JsonObject) -> None:
        if connection.session is not None:
            raise Closed(ALREADY_AUTHENTICATED, "Already authenticated.")
        if data.get("token") != self._token:
            raise Closed(AUTHENTICATION_FAILED, "Authentication failed.")
        session = self.sessions.get(str(data.get("session_id")))
        sequence = data.get("seq")
        if session is None or not isinstance(sequence, int) or not session.can_resume(sequence):
            await connection.send(INVALID_SESSION, data=False)
            return
        if sequence > session.sequence:
            raise Closed(INVALID_SEQUENCE, "Invalid seq.")
        if session.connection is not None:
            session.connection.session = None
            session.connection.abort()
        self._join(connection, session, sequence)
        self.resumed += 1
        session.dispatch("RESUMED", {"_trace": []})

    def _join(self, connection: Connection, session: Session, sequence: int) -> None:
        connection.sent = sequence
        connection.session = session
        session.connection = connection

    def _leave(self, connection: Connection) -> None:
        """The socket has ended. The session too, if the client logged out by closing with 1000 or 1001, or if we closed
        with a code after which it must identify anew.
        """
        session = connection.session
        if session is not None:
            session.connection = None
            ours, theirs = connection.our_code, connection.their_code
            if ours in ENDING if ours is not None else theirs in (WSCloseCode.OK, WSCloseCode.GOING_AWAY):
                self.sessions.pop(session.id, None)
        self._world.changed()

    def _ready(self, session: Session, shard: object) -> JsonObject:
        return {
            "v": 10,
            "user": payloads.own_user(self._world.bot),
            "user_settings": {},
            "guilds": [{"id": guild, "unavailable": True} for guild in self._world.guilds],
            "session_id": session.id,
            "session_type": "normal",
            "resume_gateway_url": self.url,
            "shard": shard,
            "application": {"id": self._world.bot.id, "flags": payloads.application_flags(self._world.granted)},
            "private_channels": [],
            "relationships": [],
            "presences": [],
            "guild_join_requests": [],
            "geo_ordered_rtc_regions": [],
            "_trace": [],
        }

    def _send_members(self, session: Session, data: JsonObject) -> None:
        """Answer REQUEST_GUILD_MEMBERS with one GUILD_MEMBERS_CHUNK."""
        guild = self._world.guilds.get(str(data.get("guild_id")))
        if guild is None:
            return
        asked = data.get("user_ids")
        ids = [asked] if isinstance(asked, str | int) else cast("list[object]", asked or [])
        query = str(data.get("query") or "")
        wanted = {str(item) for item in ids} or {user.id for user in guild.members.values()}
        found = [user for user in guild.members.values() if user.id in wanted and user.username.startswith(query)]
        chunk: JsonObject = {
            "guild_id": guild.id,
            "members": [payloads.member(guild, user) for user in found],
            "chunk_index": 0,
            "chunk_count": 1,
            "not_found": sorted(wanted - guild.members.keys()),
        }
        if data.get("nonce") is not None:
            chunk["nonce"] = data["nonce"]
        session.dispatch("GUILD_MEMBERS_CHUNK", chunk)


def _decode(data: str | bytes) -> tuple[object, object]:
    if len(data) > MAX_PAYLOAD:
        raise Closed(DECODE_ERROR, "Payload too large.")
    try:
        frame: object = json.loads(data)
    except ValueError:
        raise Closed(DECODE_ERROR, "Error while decoding payload.") from None
    fields = _object(frame)
    return fields.get("op"), fields.get("d")


def _object(value: object) -> JsonObject:
    if not isinstance(value, dict):
        raise Closed(DECODE_ERROR, "Error while decoding payload.")
    return cast("JsonObject", value)
