"""The door for what happens on Telegram: ask, let in, convert, hand over, and only then confirm."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import structlog
from telegram.error import Conflict, InvalidToken, RetryAfter, TelegramError

from bots.telegram.answers import Presses
from bots.telegram.connection import Connection, is_network, quieten, seconds_of
from bots.telegram.outbound import Outbound
from bots.telegram.people import Me
from bots.telegram.reading import Batch, Reader
from bots.telegram.updates import KINDS, number_of
from bots.telegram.veil import Veil
from core.archive.lineage import Lineage
from core.archive.store import Store
from core.chat.port import Chat
from core.confirmations.press import Answers
from core.errors import ChatUnavailable, LogHeld, LogUnavailable, StoreUnavailable, TokenRefused
from core.health import Health, Troubles
from core.ids import SessionId, UserId, platform_of, telegram_session
from core.pairing.reception import Reception
from core.sessions.directory import Sessions
from core.sessions.facts import Retracted

FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
POLL_SECONDS: Final = 30
MOST_AT_ONCE: Final = 100
"""Updates that one answer holds (Bot API, getUpdates)."""
LONGEST_QUIET: Final = 120.0
"""Seconds that nobody is woken while a backlog is taken in: a backlog wakes a session once."""
SURELY_ALL: Final = 5.0
"""Seconds after which a backlog is over though more comes: answers that are not full are of now."""
PATIENCE: Final = 30.0
"""Seconds beyond the poll's own after which an answer is not waited for any longer: the connection died in silence."""
CLOSE_WITHIN: Final = 5.0

logger = structlog.get_logger()


class Inbound:
    """Telegram, coming in. `run` until `stop`, or `take` for a webhook; `chat` speaks in the other direction."""

    def __init__(
        self,
        token: str,
        *,
        api_url: str,
        reception: Reception,
        sessions: Sessions,
        health: Health,
        store: Store,
        answers: Answers,
        lineage: Lineage,
        veil: Veil | None = None,
        poll_seconds: int = POLL_SECONDS,
        patience: float = PATIENCE,
    ) -> None:
        self._token = token
        self._api_url = api_url.rstrip("/")
        self._sessions = sessions
        self._unread = health.unread
        self._troubles = Troubles(health)
        self._troubles.begin("connection", "Telegram is not connected yet")
        self._store = store
        self._poll_seconds = poll_seconds
        self._patience = patience
        self._connection: Connection | None = None
        self._me: Me | None = None
        self._answers = answers
        self._lineage = lineage
        self._veil = veil or Veil(token)
        self._reader = Reader(token, reception, sessions, self._veil, health.unread, lineage.earlier)
        self._presses = Presses(answers, self._reader.excludes, self._veil, health.unread)
        self._offset: int | None = None
        self._pause = FIRST_PAUSE
        self._contested = False
        self._caught_up = asyncio.Event()
        self._quiet_until = time.monotonic() + LONGEST_QUIET
        self._taking = asyncio.Lock()
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Ask for updates, and take in what happens, until `stop` or cancelled. Raises `TokenRefused`."""
        quieten()
        try:
            while not self._stopping.is_set():
                problem = await self._poll_once_connected()
                if problem and not self._stopping.is_set():
                    self._troubles.begin("connection", problem)
                    logger.warning("telegram_not_connected", problem=problem, again_in=self._pause)
                    await self._rest()
        finally:
            speaking, self._connection = self._connection, None
            if speaking is not None:
                await _hang_up(speaking)

    async def stop(self) -> None:
        """Take nothing more in, and finish what is in hand. Nothing is confirmed any more."""
        self._stopping.set()
        async with self._taking:
            pass
        await self._presses.settle()

    async def caught_up(self, session: SessionId) -> bool:
        """Return when the backlog is taken in, or that took too long; whether there was a wait."""
        left = self._quiet_until - time.monotonic()
        if self._caught_up.is_set() or left <= 0:
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout(left):
                await self._caught_up.wait()
        return True

    def chat(self, session: SessionId) -> Chat | None:
        """The chat of a Telegram session."""
        if platform_of(session) != "telegram":
            return None
        return self._outbound(session)

    async def direct(self, user: UserId) -> Chat:
        """The direct chat with a person, who has to have written to us once."""
        return self._outbound(telegram_session(user))

    def _outbound(self, session: SessionId) -> Outbound:
        return Outbound(session, lambda: self._connection, token=self._token, api_url=self._api_url)

    async def take(self, raw_updates: Sequence[object]) -> None:
        """Record updates as they came from Telegram; returns when they are durable and can be confirmed.

        Raises `LogUnavailable` and `ChatUnavailable`: nothing may be confirmed, and the same may be handed in again.
        """
        async with self._taking:
            if self._stopping.is_set():
                raise ChatUnavailable("the program is stopping; Telegram will ask again", name="Stopping")
            await self._keep(await self._read(raw_updates))

    # --- asking ---------------------------------------------------------------------------------------------------

    async def _poll_once_connected(self) -> str:
        """Connect and poll until that ends; why it did.

        The first connection is kept to speak through: the polling may begin anew while something is on its way out.
        """
        connection = Connection(self._token, self._api_url)
        try:
            await self._poll(connection)
        except Exception as error:  # noqa: BLE001 - whatever ends the polling must not end the process
            return "" if self._stopping.is_set() else await self._explain(error, connection)
        finally:
            if connection is not self._connection:
                await _hang_up(connection)
        return ""

    async def _poll(self, connection: Connection) -> None:
        """Ask, record and confirm until `stop`. Raises what ends the connection, and `_Silent`."""
        async with asyncio.timeout(self._patience):
            await connection.initialize()
        self._me = Me(id=UserId(str(connection.bot.id)), username=connection.bot.username)
        self._connection = self._connection or connection
        self._caught_up.clear()
        self._quiet_until = time.monotonic() + LONGEST_QUIET
        began = time.monotonic()
        wait = self._poll_seconds if self._contested else 0  # the first answer tells that all is well
        heard = False
        while not self._stopping.is_set():
            raw_updates = await self._ask(connection, wait)
            if raw_updates is None:
                return
            if not heard:
                heard = True
                self._troubles.end("connection")
                logger.info("telegram_connected")
            if not await self._take_until_durable(raw_updates):
                return
            if wait:
                self._contested = False
            if wait or raw_updates:
                self._pause = FIRST_PAUSE
            if not raw_updates or (len(raw_updates) < MOST_AT_ONCE and time.monotonic() - began > SURELY_ALL):
                self._caught_up.set()
            wait = self._poll_seconds if self._caught_up.is_set() else 0
            numbers = [number for number in map(number_of, raw_updates) if number is not None]
            if raw_updates and not numbers:
                raise _Unnumbered
            # The numbers may start anew anywhere, so what counts is the last of the batch, not the highest ever.
            self._offset = numbers[-1] + 1 if numbers else self._offset

    async def _ask(self, connection: Connection, wait: int) -> list[object] | None:
        """One `getUpdates`; None when stopped meanwhile."""
        asking = asyncio.create_task(connection.updates(self._offset, wait, KINDS), name="telegram updates")
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({asking, stopped}, timeout=wait + self._patience, return_when=asyncio.FIRST_COMPLETED)
            if self._stopping.is_set():
                return None
            if not asking.done():
                raise _Silent
            return asking.result()
        finally:
            asking.cancel()
            stopped.cancel()
            await asyncio.gather(asking, stopped, return_exceptions=True)

    async def _take_until_durable(self, raw_updates: Sequence[object]) -> bool:
        """Whether they are; False when stopped before the disk took them."""
        async with self._taking:
            batch: Batch | None = None
            while raw_updates:
                try:
                    batch = batch or await self._read(raw_updates)
                    await self._keep(batch)
                except LogUnavailable as error:
                    problem = f"the log takes nothing: {error}; what happens on Telegram waits there"
                except ChatUnavailable as error:
                    problem = str(error)
                    self._pause = max(self._pause, error.retry_after or 0)
                else:
                    break
                self._troubles.begin("updates", problem)
                logger.warning("telegram_updates_wait", count=len(raw_updates), problem=problem, again_in=self._pause)
                if self._stopping.is_set() or not await self._rest():
                    return False
            self._troubles.end("updates")
            return True

    # --- keeping --------------------------------------------------------------------------------------------------

    async def _read(self, raw_updates: Sequence[object]) -> Batch:
        """Parse and convert. Raises `ChatUnavailable`."""
        if self._connection is None or self._me is None:
            raise ChatUnavailable("Telegram is not connected yet; it is tried again", name="NotConnected")
        batch = await self._reader.read(raw_updates, self._connection, self._me)
        batch.pressing = [task for query in batch.presses if (task := self._presses.take(query)) is not None]
        return batch

    async def _keep(self, batch: Batch) -> None:
        """Write all of it; what is written already is not written again. Raises `LogUnavailable`."""
        await self._move(batch)
        waiting = [self._sessions.of(session).append([fact]) for session, fact in batch.facts]
        if waiting:
            await asyncio.wait(waiting)
        errors = [written.exception() for written in waiting]
        for error in errors:
            if isinstance(error, LogUnavailable) and not isinstance(error, LogHeld):
                raise error
        for (session, fact), error in zip(batch.facts, errors, strict=True):
            if error is not None:  # one file, or one fact that trips the writer, must not hold up the others
                self._unread["unwritable"] += 1
                logger.error("telegram_update_not_written", session=session, error=type(error).__name__)
                batch.park(f"not written to {session}", fact)
        for session, fact in batch.facts:
            if isinstance(fact, Retracted):
                self._answers.gone(session, [fact.message.message_id])
        while batch.replies:
            await self._presses.reply(batch.replies[0])
            del batch.replies[0]
        if batch.pressing:
            await asyncio.wait(batch.pressing)
        try:
            while batch.parked:
                await self._store.park("telegram", *batch.parked[0])
                del batch.parked[0]
        except StoreUnavailable as error:
            raise LogUnavailable(f"history.db cannot be written ({type(error).__name__}); free the disk") from None

    async def _move(self, batch: Batch) -> None:
        try:
            while batch.moves:
                await self._lineage.succeed(*batch.moves[0])
                del batch.moves[0]
        except (StoreUnavailable, OSError) as error:
            raise LogUnavailable(f"a move cannot be written ({type(error).__name__}); free the disk") from None

    # --- the connection -------------------------------------------------------------------------------------------

    async def _rest(self) -> bool:
        """The pause before the next attempt; False when cut short by `stop`."""
        pause, self._pause = self._pause, min(self._pause * 2, LONGEST_PAUSE)
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._stopping.wait()
        return not self._stopping.is_set()

    async def _explain(self, error: Exception, connection: Connection) -> str:
        """Why nothing comes in, and the cure. Raises `TokenRefused` where trying again is no use."""
        match error:
            case InvalidToken():
                problem = await self._explain_refusal(connection)
            case Conflict() if "webhook" in error.message.lower():
                problem = (
                    "a webhook is set for this bot, so Telegram gives its updates there (409); "
                    "remove it with deleteWebhook, or set TELEGRAM_WEBHOOK_URL"
                )
            case Conflict():
                self._contested = True
                problem = (
                    "another program asks for the updates of this bot (409), and each takes them from the other; "
                    "stop it, or give this one a bot and token of its own"
                )
            case RetryAfter():
                self._pause = max(self._pause, seconds_of(error))
                problem = f"Telegram wants to be asked less often; it is tried again in {self._pause:.0f} s"
            case _Silent():
                problem = "Telegram did not answer in time; the connection is made anew"
            case _Unnumbered():
                problem = "Telegram sends updates without a number, which cannot be confirmed; they are asked for again"
            case TelegramError() if is_network(error):
                cure = "check the network and TELEGRAM_API_URL"
                problem = f"Telegram cannot be reached, or fails ({type(error).__name__}); it is tried again; {cure}"
            case TimeoutError():
                problem = "Telegram does not answer; it is tried again; check the network and TELEGRAM_API_URL"
            case _:
                self._unread["polling"] += 1
                problem = f"what Telegram answers cannot be used ({type(error).__name__}); check TELEGRAM_API_URL"
        return problem

    async def _explain_refusal(self, connection: Connection) -> str:
        """A wrong address refuses just as a wrong token does, but does not speak as the Bot API."""
        try:
            async with asyncio.timeout(self._patience):
                knows_tokens = await connection.is_bot_api()
        except (TelegramError, TimeoutError):
            return "Telegram cannot be reached; it is tried again; check the network and TELEGRAM_API_URL"
        if knows_tokens:
            problem = (
                "Telegram does not know this token; set TELEGRAM_TOKEN to the one that @BotFather gives with /token"
            )
            # One that was good a moment ago may be again, and the other platform must not end with it.
            if self._me is None:
                raise TokenRefused(problem) from None
            return problem
        return "what answers at TELEGRAM_API_URL is no Telegram Bot API; correct the address, or leave it out"


class _Silent(Exception):
    """No answer for longer than our patience."""


class _Unnumbered(Exception):
    """No update of a batch bears a number."""


async def _hang_up(connection: Connection) -> None:
    with suppress(TimeoutError, TelegramError):
        async with asyncio.timeout(CLOSE_WITHIN):
            await connection.shutdown()
