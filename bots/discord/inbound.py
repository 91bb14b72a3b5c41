"""The door for what happens on Discord: stay connected, let in, convert, hand over."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import aiohttp
import discord
import structlog

from bots.discord.answers import Presses
from bots.discord.catchup import CatchUp
from bots.discord.connection import Connection, quieten, redirect
from bots.discord.convert import Deletion, session_of_deletion
from bots.discord.inbox import MOST_WAITING, Inbox
from bots.discord.media import session_of
from bots.discord.outbound import Links, Outbound, direct
from bots.discord.people import Me, me_of
from bots.discord.reading import INTENT, Reader
from bots.discord.veil import Veil
from core.archive.horizon import Horizon
from core.chat.port import Chat
from core.confirmations.press import Answers
from core.errors import TokenRefused
from core.health import Health, Troubles
from core.ids import ChannelId, MessageId, SessionId, UserId, channel_of, platform_of
from core.pairing.reception import Reception
from core.sessions.directory import Sessions
from core.sessions.facts import Fact

FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 90.0
"""Discord resets the token of a bot that identifies more than 1000 times a day (Gateway, Identifying); it is fewer."""
CLOSE_WITHIN: Final = 5.0
PATIENCE: Final = 60.0
"""Seconds without a connection after which the library's own attempts, with pauses of up to 17 minutes, are ended."""

logger = structlog.get_logger()


class Limits(NamedTuple):
    """How many messages of a channel are compared in a catch-up, how many facts wait for the disk, and for how many
    seconds a connection is waited for."""

    compared: int = 200
    most_waiting: int = MOST_WAITING
    patience: float = PATIENCE


USUAL_LIMITS: Final = Limits()


class Inbound:
    """Discord, coming in. `run` until `stop`; `chat` speaks in the other direction."""

    def __init__(
        self,
        token: str,
        *,
        api_url: str,
        gateway_url: str,
        cdn_hosts: tuple[str, ...],
        reception: Reception,
        sessions: Sessions,
        health: Health,
        horizon: Horizon,
        answers: Answers,
        veil: Veil | None = None,
        limits: Limits = USUAL_LIMITS,
    ) -> None:
        self._token = token
        self._addresses = (api_url, gateway_url)
        self._patience = limits.patience
        self._unread = health.unread
        self._troubles = Troubles(health)
        self._troubles.begin("connection", "Discord is not connected yet")
        self._inbox = Inbox(sessions, self._troubles, health.unread, make_up=self._make_up, most=limits.most_waiting)
        self._links = Links(cdn_hosts)
        self._veil = veil or Veil(cdn_hosts)
        self._reader = Reader(
            reception,
            sessions,
            self._veil,
            self._links,
            troubles=self._troubles,
            unread=health.unread,
            holds=self._inbox.holds,
        )
        self._answers = answers
        self._catch_up = CatchUp(
            sessions,
            self._reader,
            self._inbox,
            horizon,
            reception.admission,
            answers.gone,
            self.on_unread,
            compared=limits.compared,
        )
        self._presses = Presses(answers, reception.admission.excludes, self._veil, self.on_unread)
        self._connection: Connection | None = None
        self._pause = FIRST_PAUSE
        self._was_connected = False
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Stay connected, and take in what happens, until `stop` or cancelled. Raises `TokenRefused`."""
        redirect(*self._addresses)
        quieten()
        while not self._stopping.is_set():
            connection = self._connection = Connection(self)
            try:
                await _stay_connected(connection, self._token, self._patience)
                problem = "Discord ended the connection; it is tried again"
            except Exception as error:  # noqa: BLE001 - whatever ends the library's client must not end the process
                problem = "" if self._stopping.is_set() else self._explain(error)
            if not self._stopping.is_set():
                self._troubles.begin("connection", problem)
                logger.warning("discord_not_connected", problem=problem, again_in=self._pause)
                await self._rest()

    async def stop(self) -> None:
        """Take nothing more in, and finish what is in the inbox. Cancelled, it gives up what the disk refuses."""
        self._stopping.set()
        connection = self._connection
        await self._catch_up.stop()
        await asyncio.gather(self._inbox.settle(), self._presses.settle())
        if connection is not None:
            await _hang_up(connection)

    def chat(self, session: SessionId) -> Chat | None:
        """The chat of a Discord session."""
        if platform_of(session) != "discord":
            return None
        return Outbound(channel_of(session), self._client, self._links)

    async def direct(self, user: UserId) -> Chat:
        """The direct chat with a person. Raises `ChatUnavailable` and `ChatRefused`."""
        return await direct(user, self._client, self._links)

    async def caught_up(self, session: SessionId) -> bool:
        """Return when it is known what happened in a session while nobody listened; whether there was a wait."""
        return await self._catch_up.caught_up(session)

    # --- what happens, called in the order of the wire ------------------------------------------------------------

    def on_message(self, message: discord.Message, *, sent_at: int | None) -> None:
        facts = self._reader.read_message(message, self._me(), sent_at=sent_at, edited=False)
        self._hand_over(session_of(message), facts)

    def on_raw_message_edit(self, message: discord.Message, *, sent_at: int | None) -> None:
        if message.edited_at is not None:
            facts = self._reader.read_message(message, self._me(), sent_at=sent_at, edited=True)
            self._hand_over(session_of(message), facts)

    def on_raw_message_delete(self, event: discord.RawMessageDeleteEvent) -> None:
        self._deleted(event, [event.message_id])

    def on_raw_bulk_message_delete(self, event: discord.RawBulkMessageDeleteEvent, order: list[int]) -> None:
        self._deleted(event, order)

    def on_interaction(self, interaction: discord.Interaction) -> None:
        if not self._stopping.is_set():
            self._presses.take(interaction)

    def on_connect(self, *, anew: bool) -> None:
        self._pause = FIRST_PAUSE
        self._troubles.end("connection")
        logger.info("discord_connected")
        self._was_connected = True
        if anew and not self._stopping.is_set():
            self._catch_up.hold()

    def on_servers(self) -> None:
        if self._connection is not None and not self._stopping.is_set():
            self._catch_up.begin(self._connection, self._me())

    def on_disconnect(self) -> None:
        self._troubles.begin("connection", "the connection to Discord is lost; it is tried again")

    def on_unread(self, kind: str, error: Exception) -> None:
        self._unread[kind] += 1
        logger.warning("discord_event_unread", kind=kind, error=type(error).__name__)

    # --- handing over ---------------------------------------------------------------------------------------------

    def _deleted(self, event: Deletion, order: Sequence[int]) -> None:
        facts = self._reader.read_deletion(event, order, self._me(), parent=self._parent(event.channel_id))
        self._hand_over(session_of_deletion(event), facts)
        self._answers.gone(session_of_deletion(event), [MessageId(str(number)) for number in order])

    def _hand_over(self, session: SessionId, facts: Sequence[Fact]) -> None:
        if facts and not self._stopping.is_set():
            self._inbox.put(session, facts)

    def _make_up(self, message: int | None) -> None:
        """What found no room in the inbox is asked for: at once, or when the connection is back."""
        self._catch_up.lose(message)
        if self._client() is not None and not self._stopping.is_set():
            self._catch_up.hold()
            self.on_servers()

    def _parent(self, channel: int) -> ChannelId | None:
        """The channel of a thread, as far as the library knows the thread."""
        known = None if self._connection is None else self._connection.get_channel(channel)
        return ChannelId(str(known.parent_id)) if isinstance(known, discord.Thread) else None

    # --- the connection -------------------------------------------------------------------------------------------

    def _me(self) -> Me:
        assert self._connection is not None
        assert self._connection.user is not None
        return me_of(self._connection.user.id)

    def _client(self) -> discord.Client | None:
        """The client, while it can be used."""
        connection = self._connection
        return None if connection is None or connection.is_closed() or connection.user is None else connection

    async def _rest(self) -> None:
        """The pause before the next attempt, cut short by `stop`."""
        pause, self._pause = self._pause, min(self._pause * 2, LONGEST_PAUSE)
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._stopping.wait()

    def _explain(self, error: Exception) -> str:
        """Why there is no connection, and the cure. Raises `TokenRefused` where trying again is no use."""
        match error:
            case discord.LoginFailure() | discord.ConnectionClosed(code=4004):
                problem = (
                    "Discord does not know this token; set DISCORD_TOKEN to the one that the developer portal gives "
                    "under your application → Bot → Reset Token"
                )
                # One that was good a moment ago may be again, and the other platform must not end with it.
                if not self._was_connected:
                    raise TokenRefused(problem) from None
            case discord.PrivilegedIntentsRequired():
                problem = f"Discord does not grant the intents that the bot needs (4014); switch on {INTENT}"
            case discord.ConnectionClosed(code=code):
                problem = f"Discord closed the connection with code {code}; it is tried again"
            case discord.RateLimited(retry_after=seconds):
                self._pause = max(self._pause, seconds)
                problem = f"Discord allows no login for another {seconds:.0f} s; it is tried again then"
            case discord.HTTPException(status=status):
                problem = f"Discord answers the login with {status}; it is tried again; check DISCORD_API_URL"
            case _Silent():
                problem = f"there was no connection to Discord for {self._patience:.0f} s; it is made anew"
            case discord.GatewayNotFound() | OSError() | aiohttp.ClientError() | TimeoutError():
                cure = "check the network, DISCORD_API_URL and DISCORD_GATEWAY_URL"
                problem = f"Discord cannot be reached ({type(error).__name__}); it is tried again; {cure}"
            case _:
                self.on_unread("gateway", error)
                problem = f"what Discord sends cannot be read ({type(error).__name__}); the connection is made anew"
        return problem


class _Silent(Exception):
    """No connection for longer than our patience."""


async def _stay_connected(connection: Connection, token: str, patience: float) -> None:
    """Log in and listen until the client ends. Raises what ended it, and `_Silent`."""
    listening = asyncio.create_task(connection.start(token), name="discord connection")
    try:
        while not listening.done():
            await asyncio.wait({listening}, timeout=1.0)
            if connection.silent_for > patience:
                raise _Silent
        await listening
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        await _hang_up(connection)


async def _hang_up(connection: Connection) -> None:
    """Close; where the other side does not answer, without its farewell."""
    try:
        async with asyncio.timeout(CLOSE_WITHIN):
            await connection.close()
    except (TimeoutError, OSError, aiohttp.ClientError):
        await connection.http.close()
