"""What Discord tells when asked of the past: messages of one channel, and archived threads.

Everything raises `ChatUnavailable` and `ChatRefused`; messages are asked for several times before the first of them.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, cast

import discord
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt

from bots.discord.connection import Connection, Told
from bots.discord.convert import Readable
from bots.discord.outbound import FAILURES, UNREADABLE, translated
from core.backoff import as_asked
from core.errors import ChatRefused, ChatUnavailable

PAGE: Final = 100
"""The most messages that Discord gives at once (Get Channel Messages)."""
ATTEMPTS: Final = 8
_UNKNOWN_MESSAGE: Final = 10008

Parent: TypeAlias = discord.TextChannel | discord.ForumChannel
T = TypeVar("T")


class Listed(NamedTuple):
    """One message of a listing; ``told`` is None where it cannot be read."""

    number: int
    told: Told | None


class History:
    """One channel, DM channel or thread."""

    def __init__(self, connection: Connection, channel: Readable) -> None:
        self._connection = connection
        self._channel = channel

    async def after(self, number: int) -> list[Listed]:
        """At most a page of the messages behind a message, the oldest first. A short page does not say that it ends."""
        return await self._page({"after": number})

    async def before(self, number: int) -> list[Listed]:
        """At most a page of those before a message, the oldest first; otherwise as `after`."""
        return await self._page({"before": number})

    async def find(self, number: int) -> Listed | None:
        """That very message; None where Discord says that there is none (404, code 10008)."""

        async def ask() -> Listed | None:
            try:
                return self._listed(await self._connection.http.get_message(self._channel.id, number))
            except discord.NotFound as error:
                if error.code == _UNKNOWN_MESSAGE:
                    return None
                raise

        return await _insist(ask)

    async def _page(self, where: dict[str, int]) -> list[Listed]:
        async def ask() -> list[Listed]:
            page = await self._connection.http.logs_from(self._channel.id, PAGE, **where)
            return sorted((self._listed(payload) for payload in page), key=lambda listed: listed.number)

        return await _insist(ask)

    def _listed(self, payload: object) -> Listed:
        message = cast("dict[str, Any]", payload)
        return Listed(int(message["id"]), self._connection.told(self._channel, message))


async def find_channel(connection: Connection, number: int) -> Readable:
    """A channel that Discord does not tell of at the start: a DM channel, an archived thread."""
    found = await _insist(lambda: connection.fetch_channel(number))
    if not isinstance(found, Readable):
        raise ChatRefused("that channel holds no messages", name="Refused")
    return found


async def archived_threads(parent: Parent, since: datetime) -> AsyncIterator[discord.Thread]:
    """The public threads of a channel that were archived since then, the last first."""
    threads = aiter(parent.archived_threads(limit=None))
    while True:
        try:
            thread = await anext(threads, None)
        except FAILURES as error:
            raise translated(error) from error
        except UNREADABLE as error:
            raise ChatUnavailable("Discord's answer cannot be read", name="ServerError") from error
        if thread is None or thread.archive_timestamp < since:
            return
        yield thread


async def _insist(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask, and ask again where that may help, waiting as long as Discord wants."""
    async for attempt in AsyncRetrying(
        retry=retry_if_exception_type(ChatUnavailable), stop=stop_after_attempt(ATTEMPTS), wait=as_asked, reraise=True
    ):
        with attempt:
            try:
                return await ask()
            except FAILURES as error:
                raise translated(error) from error
            except UNREADABLE as error:
                raise ChatUnavailable("Discord's answer cannot be read", name="ServerError") from error
    raise AssertionError("tenacity returns or raises")
