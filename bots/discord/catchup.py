"""What happened while nobody listened: asked for after every READY, channel by channel.

Discord replays nothing to a new gateway session (Gateway, Resuming). Until the gap of a session is filled, what Discord
tells of it live waits, so that file order is message order, and nobody is woken in it: a catch-up wakes once.
"""

import asyncio
import time
from collections.abc import Iterator, Set
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

import discord
import structlog

from bots.discord.connection import Connection
from bots.discord.convert import Readable, visit_of_channel
from bots.discord.gaps import Gaps, Gone, OnUnread, Summary
from bots.discord.history import History, Parent, archived_threads, find_channel
from bots.discord.inbox import Inbox
from bots.discord.objects import Spoken
from bots.discord.people import Me
from bots.discord.reading import Reader
from bots.discord.since import Since, start_of
from core.access import Admission
from core.archive.horizon import Heard, Horizon
from core.errors import ChatRefused, ChatUnavailable
from core.ids import SessionId, channel_of, discord_session, platform_of
from core.sessions.directory import Sessions

LONGEST_HOLD: Final = 30.0
"""Seconds that live events wait for their session's gap (contract section 9, "Log")."""
LONGEST_QUIET: Final = 120.0
"""Seconds that nobody is woken in a session whose gap is not filled."""
AT_ONCE: Final = 8
"""Channels that are asked about at the same time; the library keeps to Discord's limits."""
logger = structlog.get_logger()


class CatchUp:
    """Discord's past. ``compared`` is how many of a channel's newest messages are looked at again for changes."""

    def __init__(
        self,
        sessions: Sessions,
        reader: Reader,
        inbox: Inbox,
        horizon: Horizon,
        admission: Admission,
        gone: Gone,
        on_unread: OnUnread,
        *,
        compared: int,
    ) -> None:
        self._sessions = sessions
        self._reader = reader
        self._inbox = inbox
        self._since = Since(sessions, horizon)
        self._admission = admission
        self._gone = gone
        self._on_unread = on_unread
        self._compared = compared
        self._round: asyncio.Task[None] | None = None
        self._giving_up: asyncio.TimerHandle | None = None
        self._summary = Summary()
        # Sessions whose gap is open, and those that were not compared yet; None: it is not known which.
        self._unfilled: set[SessionId] | None = None
        self._behind: set[SessionId] | None = None
        self._quiet_until = time.monotonic() + LONGEST_QUIET
        self._moved = asyncio.Event()

    def hold(self) -> None:
        """READY: what Discord tells now comes after what it has not told."""
        self._break_off()
        self._unfilled = self._behind = None
        self._quiet_until = time.monotonic() + LONGEST_QUIET
        self._summary = Summary()
        self._inbox.hold(lambda session: self._unfilled is None or session in self._unfilled)
        self._giving_up = asyncio.get_running_loop().call_later(LONGEST_HOLD, self._go_ahead)

    def begin(self, connection: Connection, me: Me) -> None:
        """The channels are known: ask what happened in them."""
        self._round = asyncio.create_task(self._catch_up(connection, me), name="discord catch-up")

    def lose(self, message: int | None) -> None:
        """Something that was told live could not be kept; ``message`` is the first message among it."""
        self._since.lose(message)

    async def stop(self) -> None:
        """End it where it stands; the next start goes on from there."""
        ending = self._break_off()
        if ending is not None:
            await asyncio.wait({ending})
        self._done()

    async def caught_up(self, session: SessionId) -> bool:
        """Return when it is known what happened in a session, or that took too long; whether there was a wait."""
        waited = False
        while self._behind is None or session in self._behind:
            left = self._quiet_until - time.monotonic()
            if left <= 0:
                break
            waited = True
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._moved.wait()
        return waited

    # --- one round ------------------------------------------------------------------------------------------------

    async def _catch_up(self, connection: Connection, me: Me) -> None:
        try:
            await self._go_round(connection, me)
        except Exception as error:  # noqa: BLE001 - live events wait for it; what is left is asked for after the next READY
            self._on_unread("catch-up", error)
        self._done()
        self._report()

    async def _go_round(self, connection: Connection, me: Me) -> None:
        heard, now = await self._since.heard(), _newest_of(connection)
        await self._since.begin(heard, now)
        places = await asyncio.to_thread(lambda: dict(self._places(connection)))
        self._unfilled, self._behind, looked_into = set(places), set(places), frozenset(places)
        for session in list(self._inbox.held):
            if session not in places:
                self._inbox.release(session)
        work = Gaps(self._reader, self._inbox, me, self._gone, self._on_unread, self._summary)
        async with asyncio.TaskGroup() as workers:
            for number in range(AT_ONCE):
                workers.create_task(self._work(places, heard, work, connection), name=f"discord catch-up {number}")
        if heard is not None:
            await self._work_on_archived(connection, heard, work, looked_into)
        if heard is not None and not self._summary.unanswered:
            await self._since.finish(heard, now)

    async def _work(
        self, places: dict[SessionId, Readable | None], heard: Heard | None, gaps: Gaps, connection: Connection
    ) -> None:
        """Go through the places, those first in which something waits."""
        while places:
            waiting = next((session for session in self._inbox.held if session in places), None)
            session = waiting or next(iter(places))
            channel = places.pop(session)
            await self._work_on(session, channel, heard, gaps, connection)

    async def _work_on(
        self, session: SessionId, channel: Readable | None, heard: Heard | None, gaps: Gaps, connection: Connection
    ) -> None:
        await self._look_into(session, channel, heard, gaps, connection)
        self._filled(session)
        if self._behind is not None:
            self._behind.discard(session)
        self._tell()

    async def _look_into(
        self, session: SessionId, channel: Readable | None, heard: Heard | None, gaps: Gaps, connection: Connection
    ) -> None:
        if heard is not None and not self._inbox.is_holding:
            heard = heard._replace(complete=False)  # what went ahead is in the log by now, above the gap
        try:
            known = await asyncio.to_thread(self._sessions.of(session).newest_messages, max(self._compared, 1))
            start = start_of(known.highest, heard)
            if not known.highest and (start is None or _is_quiet(channel, start)):
                return
            channel = channel or await find_channel(connection, int(channel_of(session)))
            history = History(connection, channel)
            if start is not None and self._admission.may_admit(visit_of_channel(channel)):
                await gaps.fill(session, history, start)
            self._filled(session)
            if self._compared and known.standing:
                await gaps.compare(session, history, known.standing)
            if _hides_its_past(channel):
                self._refused(session, "the bot may not read its message history; give it the right to")
        except ChatRefused as error:
            self._refused(session, str(error))
        except ChatUnavailable as error:
            self._summary.unanswered += 1
            logger.warning("discord_channel_unanswered", session=session, reason=str(error))
        except Exception as error:  # noqa: BLE001 - one channel that trips us must not keep back the others
            self._summary.unanswered += 1
            self._on_unread("catch-up", error)

    async def _work_on_archived(
        self, connection: Connection, heard: Heard, gaps: Gaps, looked_into: Set[SessionId]
    ) -> None:
        """Threads that began and were archived while nobody listened."""
        heard = heard._replace(complete=False)  # somebody may have gone on in one by now
        since = discord.utils.snowflake_time(heard.since)
        parents = [channel for guild in connection.guilds for channel in guild.channels if isinstance(channel, Parent)]
        for parent in parents:
            if not self._admission.may_admit(visit_of_channel(parent)) or not _may(parent).read_message_history:
                continue
            try:
                async for thread in archived_threads(parent, since):
                    session = discord_session(thread.id)
                    if session not in looked_into:
                        await self._work_on(session, thread, heard, gaps, connection)
            except ChatRefused as error:
                self._refused(discord_session(parent.id), str(error))
            except ChatUnavailable as error:
                self._summary.unanswered += 1
                logger.warning("discord_threads_unanswered", channel=parent.id, reason=str(error))
            except Exception as error:  # noqa: BLE001 - as with a channel
                self._summary.unanswered += 1
                self._on_unread("catch-up", error)

    def _refused(self, session: SessionId, reason: str) -> None:
        if session not in self._summary.unreadable:
            self._summary.unreadable.add(session)
            logger.warning("discord_channel_unreadable", session=session, reason=reason)

    def _places(self, connection: Connection) -> Iterator[tuple[SessionId, Readable | None]]:
        """Where something may have happened: channels that Discord tells of, the liveliest first, then the others that
        there are logs of, or that are paired. Blocks."""
        logged = {session for session in self._sessions.ids() if platform_of(session) == "discord"}
        logged |= set(map(discord_session, self._admission.paired))
        for channel in sorted(_channels(connection), key=lambda channel: channel.last_message_id or 0, reverse=True):
            session = discord_session(channel.id)
            hidden = not _may(channel).view_channel  # Discord bans addresses that ask for too much of what they may not
            if session in logged or (not hidden and self._admission.may_admit(visit_of_channel(channel))):
                logged.discard(session)
                yield session, channel
        for session in logged:
            yield session, None

    # --- what waits -----------------------------------------------------------------------------------------------

    def _filled(self, session: SessionId) -> None:
        if self._unfilled is not None:
            self._unfilled.discard(session)
        self._inbox.release(session)

    def _go_ahead(self) -> None:
        self._summary.went_ahead = self._inbox.release_all()

    def _done(self) -> None:
        self._inbox.release_all()
        self._unfilled, self._behind = set(), set()
        self._break_off()
        self._tell()

    def _break_off(self) -> asyncio.Task[None] | None:
        """Let go of the timer and the task, which is cancelled unless it is the one that calls."""
        if self._giving_up is not None:
            self._giving_up.cancel()
        ending, self._round, self._giving_up = self._round, None, None
        if ending is not None and ending is not asyncio.current_task():
            ending.cancel()
        return ending

    def _tell(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    def _report(self) -> None:
        told = self._summary
        logger.info(
            "discord_caught_up",
            recovered=told.recovered,
            edited=told.edited,
            deleted=told.deleted,
            unreadable=len(told.unreadable),
            too_old=told.too_old,
            unanswered=told.unanswered,
            went_ahead=told.went_ahead,
            seconds=round(time.monotonic() - told.began, 1),
        )


def _is_quiet(channel: Readable | None, start: int) -> bool:
    """Whether Discord says that nothing was written behind a message."""
    newest = channel.last_message_id if isinstance(channel, Spoken) else None
    return newest is not None and newest <= start


def _hides_its_past(channel: Readable) -> bool:
    """Whether Discord answers for want of a right as if nothing had been said (Get Channel Messages)."""
    return isinstance(channel, Spoken) and not _may(channel).read_message_history


def _may(channel: Spoken | Parent) -> discord.Permissions:
    """What the bot may do in a channel; all, where that is not known."""
    if channel.guild.me is None:  # pyright: ignore[reportUnnecessaryComparison] - a server may leave us out
        return discord.Permissions.all()
    try:
        return channel.permissions_for(channel.guild.me)
    except discord.ClientException:  # a thread whose channel we are not told of
        return discord.Permissions.all()


def _newest_of(connection: Connection) -> int:
    """The number of the newest message that Discord tells of; where it tells of none, that of one written now."""
    newest = max((channel.last_message_id or 0 for channel in _channels(connection)), default=0)
    return newest or discord.utils.time_snowflake(datetime.now(UTC))


def _channels(connection: Connection) -> list[Spoken]:
    """The channels and active threads of all servers that hold messages."""
    known = [channel for guild in connection.guilds for channel in (*guild.channels, *guild.threads)]
    return [channel for channel in known if isinstance(channel, Spoken)]
