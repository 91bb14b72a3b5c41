"""One login at Discord: the library's client, told to lose nothing that it cannot read.

`dispatch` is called by the library's parsers, synchronously and in the order of the wire, also before READY; the usual
``on_…`` coroutines would be tasks. So what happened is handed over in order, before anything is awaited.
"""

import logging
import re
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import discord
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

from bots.discord.objects import Spoken, ordinary
from bots.discord.payloads import completed
from core.clock import milliseconds

if TYPE_CHECKING:
    from discord.abc import MessageableChannel

LONGEST_LIMIT: Final = 30.0
"""Seconds of a rate limit that the library waits for by itself; longer ones it raises."""
_LIBRARY: Final = ("discord.client", "discord.gateway", "discord.http", "discord.state")
_TELLS_SERVERS: Final = frozenset({"READY", "GUILD_CREATE"})
_ADDRESS: Final = re.compile(r"(https?|wss?)://([^\s/?#'\"]+)[^\s'\"]*")


class Told(NamedTuple):
    """A message, and when it was written in ms, which the library does not keep."""

    message: discord.Message
    sent_at: int | None


class Ear(Protocol):
    """Whom a connection tells what happened. None of it awaits; what it raises counts as an event that is not read."""

    def on_message(self, message: discord.Message, *, sent_at: int | None) -> None: ...

    def on_raw_message_edit(self, message: discord.Message, *, sent_at: int | None) -> None:
        """A message changed, or Discord says so; `sent_at` is when it was written, in ms."""
        ...

    def on_raw_message_delete(self, event: discord.RawMessageDeleteEvent) -> None: ...

    def on_raw_bulk_message_delete(self, event: discord.RawBulkMessageDeleteEvent, order: list[int]) -> None: ...

    def on_interaction(self, interaction: discord.Interaction) -> None:
        """Somebody used a button, a menu or a form; it is to be answered within three seconds."""
        ...

    def on_connect(self, *, anew: bool) -> None:
        """READY, before which nobody listened; or RESUMED, after which nothing is missed."""
        ...

    def on_servers(self) -> None:
        """Once after each READY: the servers with their channels are known, but for those that are out of order."""
        ...

    def on_disconnect(self) -> None: ...

    def on_unread(self, kind: str, error: Exception) -> None:
        """An event of that kind could not be understood; the connection goes on."""
        ...


def redirect(api_url: str, gateway_url: str) -> None:
    """Point the library at these addresses, which it keeps in class attributes. Once, before the first login."""
    Route.BASE = api_url.rstrip("/")
    DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(gateway_url)


def quieten() -> None:
    """Keep tracebacks, paths, queries, and warnings about the voice we never use out of the library's log records."""
    discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False
    for name in _LIBRARY:
        library = logging.getLogger(name)
        if _tell_briefly not in library.filters:
            library.addFilter(_tell_briefly)


class Connection(discord.Client):
    """A client without caches of messages and members, for one `start`."""

    def __init__(self, ear: Ear) -> None:
        super().__init__(
            intents=discord.Intents(guilds=True, guild_messages=True, dm_messages=True, message_content=True),
            max_messages=None,
            chunk_guilds_at_startup=False,
            member_cache_flags=discord.MemberCacheFlags.none(),
            max_ratelimit_timeout=LONGEST_LIMIT,
        )
        self._ear = ear
        self._payload: Mapping[str, Any] = {}
        self._silent_since: float | None = time.monotonic()
        self._servers_untold = False
        self._tells: Mapping[str, Callable[..., None]] = {
            "message": self._tell_message,
            "raw_message_edit": self._tell_edit,
            "raw_message_delete": ear.on_raw_message_delete,
            "raw_bulk_message_delete": self._tell_bulk_delete,
            "interaction": ear.on_interaction,
            "connect": partial(self._tell_connect, anew=True),
            "resumed": partial(self._tell_connect, anew=False),
            "ready": self._tell_servers,  # those that are not told of by now are out of order
            "disconnect": self._tell_disconnect,
        }
        # The table of parsers that the gateway looks into for each event. Parsing is the last thing done with one: its
        # number is noted and the heartbeat counted by then, so leaving out one event leaves the connection sound.
        parsers = self._connection.parsers
        for kind, parse in parsers.items():
            parsers[kind] = self._contained(kind, parse)

    @property
    def silent_for(self) -> float:
        """Seconds since the login began or the connection was lost; 0 while it stands."""
        return 0.0 if self._silent_since is None else time.monotonic() - self._silent_since

    def dispatch(self, event: str, /, *args: Any, **_more: Any) -> None:  # noqa: ANN401 - the library's own
        """Tell the ear. Nothing goes on from here: no coroutine ``on_…`` is defined, and nothing is waited for."""
        tell = self._tells.get(event)
        if tell is not None:
            tell(*args)

    def told(self, channel: "MessageableChannel", payload: Mapping[str, Any]) -> "Told | None":
        """A message that was asked for; None where it cannot be read, which is told as of an event."""
        try:
            whole = completed("MESSAGE_CREATE", payload)
            message = discord.Message(state=self._connection, channel=channel, data=whole)  # pyright: ignore[reportArgumentType] - JSON from outside
            return Told(message, _sent_at(whole))
        except Exception as error:  # noqa: BLE001 - one message must not hide those beside it
            self._ear.on_unread("history", error)
            return None

    def _told_ordinary(self, payload: Any) -> bool:  # noqa: ANN401 - JSON from outside
        """Tell of a message that is made without the library; whether it was one."""
        message = ordinary(payload, self.get_guild, self._connection)
        if message is None:
            return False
        self._ear.on_message(message, sent_at=_sent_at(payload))
        if isinstance(message.channel, Spoken):
            message.channel.last_message_id = message.id
        return True

    def _tell_message(self, message: discord.Message) -> None:
        self._ear.on_message(message, sent_at=_sent_at(self._payload))

    def _tell_edit(self, edited: discord.RawMessageUpdateEvent) -> None:
        self._ear.on_raw_message_edit(edited.message, sent_at=_sent_at(self._payload))

    def _tell_bulk_delete(self, deleted: discord.RawBulkMessageDeleteEvent) -> None:
        self._ear.on_raw_bulk_message_delete(deleted, [int(message) for message in self._payload["ids"]])

    def _tell_connect(self, *, anew: bool) -> None:
        self._silent_since = None
        self._servers_untold = anew
        self._ear.on_connect(anew=anew)

    def _tell_disconnect(self) -> None:
        self._silent_since = self._silent_since or time.monotonic()
        self._ear.on_disconnect()

    def _tell_servers(self) -> None:
        if self._servers_untold:
            self._servers_untold = False
            self._ear.on_servers()

    def _contained(self, kind: str, parse: Callable[[Any], None]) -> Callable[[Any], None]:
        """``parse``, but an event that it trips over is told and left out. READY is not: nothing works without it."""

        def read(payload: Any) -> None:  # noqa: ANN401 - JSON from outside
            try:
                if kind == "MESSAGE_UPDATE" and not payload.get("edited_timestamp"):
                    return  # a preview, a pin, a flag, a thread: nobody edited anything
                if kind == "MESSAGE_CREATE" and self._told_ordinary(payload):
                    return
                self._payload = whole = completed(kind, payload)
                parse(whole)
                if kind in _TELLS_SERVERS and not any(guild.unavailable for guild in self.guilds):
                    self._tell_servers()
            except Exception as error:
                if kind == "READY":
                    raise
                self._ear.on_unread(kind, error)

        return read


def _sent_at(payload: Mapping[str, Any]) -> int | None:
    """The payload's own time in ms, which the library does not keep."""
    moment = discord.utils.parse_time(payload.get("timestamp"))
    return None if moment is None else milliseconds(moment)


def _tell_briefly(record: logging.LogRecord) -> bool:
    """What happened, without the traceback and with no more of an address than its host."""
    text = _ADDRESS.sub(r"\1://\2/…", record.getMessage().partition("\n")[0])
    if record.exc_info and record.exc_info[0] is not None:
        text = f"{text} ({record.exc_info[0].__name__})"
    record.msg, record.args, record.exc_info, record.exc_text = text, (), None, None
    return True
