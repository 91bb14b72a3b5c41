"""From where on Discord has to be asked what happened."""

import asyncio
from typing import Final

import discord
import structlog

from core.archive.horizon import Heard, Horizon
from core.errors import StoreUnavailable
from core.ids import platform_of
from core.sessions.directory import Sessions

_OVERLAP: Final = 60_000 << 22
"""A minute, in the numbers of messages: one may be so much older than the newest in the logs and missing in its own,
as a crash kept it out."""

logger = structlog.get_logger()


class Since:
    """What was heard of Discord, from the logs and from what was noted."""

    def __init__(self, sessions: Sessions, horizon: Horizon) -> None:
        self._sessions = sessions
        self._horizon = horizon
        self._lost: int | None = None

    def lose(self, message: int | None) -> None:
        """Something that was told live could not be kept; ``message`` is the first message among it."""
        if message is not None:
            self._lost = min(self._lost or message, message)

    async def heard(self) -> Heard | None:
        """Up to where everything was heard; None where nothing ever was."""
        newest = await asyncio.to_thread(self._newest_logged)
        try:
            noted = await self._horizon.read()
        except StoreUnavailable as error:
            logger.warning("discord_horizon_unread", reason=str(error))
            noted = None
        if noted is None:
            noted = Heard(newest - _OVERLAP, complete=True) if newest else None
        elif noted.complete:
            noted = Heard(max(noted.since, newest - _OVERLAP), complete=True)
        if self._lost is not None:
            since = self._lost - 1
            noted = Heard(min(since, noted.since) if noted is not None else since, complete=False)
        return noted

    async def begin(self, heard: Heard | None, now: int) -> None:
        """Asking begins; ``now`` is the newest message of all. Should it be cut off, it begins there again."""
        await self._note(heard._replace(complete=False) if heard else Heard(now, complete=True))

    async def finish(self, heard: Heard, now: int) -> None:
        """Everything up to ``now`` was asked for."""
        self._lost = None
        await self._note(Heard(max(now, heard.since), complete=True))

    async def _note(self, heard: Heard) -> None:
        try:
            await self._horizon.put(heard)
        except StoreUnavailable as error:  # a crash before it succeeds may then leave a gap in a channel without a log
            logger.warning("discord_horizon_not_noted", reason=str(error))

    def _newest_logged(self) -> int:
        """The newest message in any log. A log that was not written to since it was said holds no newer one. Blocks."""
        logs = [(self._sessions.touched_at(session), session) for session in self._sessions.ids()]
        newest = 0
        for touched_at, session in sorted(logs, reverse=True):
            if platform_of(session) != "discord":
                continue
            if newest and discord.utils.snowflake_time(newest).timestamp() > touched_at:
                break
            newest = max(newest, self._sessions.reading(session).newest_messages(1).highest)
        return newest


def start_of(logged: int, heard: Heard | None) -> int | None:
    """Behind which message a session's gap begins, whose log holds that one as the newest, or 0.

    None where nothing was ever heard that something could follow.
    """
    if not logged:
        return heard.since if heard is not None else None
    return logged if heard is None or heard.complete else min(logged, heard.since)
