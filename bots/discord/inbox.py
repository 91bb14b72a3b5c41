"""Facts between the gateway and the disk: in order, in bounds, and kept while the disk refuses.

Discord tells everything once and waits for nobody, so what the disk does not take at once has to wait here, and so has
what happens in a channel whose gap is being filled: file order is message order then (contract section 9, "Log").
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import structlog

from core.errors import LogHeld, LogUnavailable
from core.health import Troubles
from core.ids import SessionId
from core.sessions.directory import Sessions
from core.sessions.facts import Fact, Said
from core.sessions.reading import Recorded
from core.sessions.state import number_of

MOST_WAITING: Final = 50_000
"""Facts in all sessions together; some 100 MB of long messages."""
MOST_HELD: Final = 10_000
"""Of them, those that wait for a gap to be filled; beyond that they go ahead."""
MOST_TOGETHER: Final = 500
LONGEST_PAUSE: Final = 30.0

logger = structlog.get_logger()


class Inbox:
    """One ordered queue and one task for each session that is behind; none for the others."""

    def __init__(
        self,
        sessions: Sessions,
        troubles: Troubles,
        unread: Counter[str],
        *,
        make_up: Callable[[int | None], None],
        most: int = MOST_WAITING,
    ) -> None:
        """``make_up`` is called when there is room again, with the number of the first message that found none."""
        self._sessions = sessions
        self._troubles = troubles
        self._unread = unread
        self._most = most
        self._waiting = 0
        self._queues: dict[SessionId, deque[Fact]] = {}
        self._tasks: dict[SessionId, asyncio.Task[None]] = {}
        self._refused: set[SessionId] = set()
        self._make_up = make_up
        self._missed = 0
        self._first_missed: int | None = None
        self._is_behind: Callable[[SessionId], bool] | None = None
        self._held: dict[SessionId, list[Fact]] = {}
        self._holding = 0

    def put(self, session: SessionId, facts: Sequence[Fact]) -> None:
        """Take facts behind those taken before. When there is no room for them, that is counted and shown."""
        if self._waiting + len(facts) > self._most:
            self._overflow(facts)
            return
        self._waiting += len(facts)
        if self._is_behind is not None and self._is_behind(session):
            self._held.setdefault(session, []).extend(facts)
            self._holding += len(facts)
            if self._holding > MOST_HELD:
                self.release_all()
        else:
            self._queue(session, facts)

    def holds(self, session: SessionId) -> bool:
        """Whether something of this session is not durable yet."""
        return session in self._tasks or session in self._held

    # --- gaps -----------------------------------------------------------------------------------------------------

    def hold(self, is_behind: Callable[[SessionId], bool]) -> None:
        """From now on what comes for sessions that are behind waits, until it is released."""
        self._is_behind = is_behind

    @property
    def is_holding(self) -> bool:
        """Whether anything waits for a gap to be filled: false once it had to go ahead."""
        return self._is_behind is not None

    @property
    def held(self) -> Iterable[SessionId]:
        """The sessions for which something waits, the longest waiting first."""
        return self._held.keys()

    def said_before(self, session: SessionId, number: int) -> list[Said]:
        """Messages that wait in this session and were said before that one."""
        return [fact for fact in _said(self._held.get(session, ())) if number_of(fact.message.message_id) < number]

    def release(self, session: SessionId) -> None:
        """What waits for this session goes ahead."""
        if (facts := self._held.pop(session, None)) is not None:
            self._holding -= len(facts)
            self._queue(session, facts)

    def release_all(self) -> int:
        """Hold nothing any more. Returns for how many sessions something waited."""
        self._is_behind = None
        sessions = list(self._held)
        for session in sessions:
            self.release(session)
        return len(sessions)

    # --- writing --------------------------------------------------------------------------------------------------

    async def settle(self) -> None:
        """Wait until everything is durable. Cancelled, it gives up what is left, and says how much that was."""
        self.release_all()
        try:
            while self._tasks:
                await asyncio.wait(self._tasks.values())
        finally:
            if self._waiting:
                logger.error("discord_events_lost", count=self._waiting, reason="stopped while the disk refused them")
            for task in self._tasks.values():
                task.cancel()

    async def write(self, session: SessionId, facts: Sequence[Fact]) -> list[Recorded]:
        """Write facts now, past those that wait. Returns the lines that were new; waits while the disk refuses."""
        pause = 0.1
        while True:
            try:
                recorded = await self._sessions.of(session).append(facts)
            except LogHeld as error:
                # The others go on; what is lost here is asked for once the file was mended and the program started.
                self._unread["unwritable"] += len(facts)
                self._settled(session)
                logger.error("discord_events_not_written", session=session, count=len(facts), reason=str(error))  # noqa: TRY400 - an operator's matter
                return []
            except LogUnavailable as error:
                if session not in self._refused:
                    logger.warning("log_refused", session=session, waiting=self._waiting, reason=str(error))
                self._refused.add(session)
                self._troubles.begin("log", f"the log takes nothing: {error}; {self._waiting} events wait")
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            except Exception as error:  # noqa: BLE001 - one fact that trips the writer must not hold up those behind it
                self._settled(session)
                if len(facts) > 1:
                    return [line for fact in facts for line in await self.write(session, [fact])]
                self._unread["unwritable"] += 1
                logger.error(  # noqa: TRY400 - a traceback may hold what was said
                    "discord_event_not_written", session=session, error=type(error).__name__
                )
                return []
            else:
                self._settled(session)
                return recorded

    def _settled(self, session: SessionId) -> None:
        """The disk refuses nothing of this session any more."""
        self._refused.discard(session)
        if not self._refused:
            self._troubles.end("log")

    def _queue(self, session: SessionId, facts: Sequence[Fact]) -> None:
        self._queues.setdefault(session, deque()).extend(facts)
        if session not in self._tasks:
            self._tasks[session] = asyncio.create_task(self._empty(session), name=f"inbox {session}")

    async def _empty(self, session: SessionId) -> None:
        queue = self._queues[session]
        try:
            while queue:
                batch = [queue.popleft() for _ in range(min(len(queue), MOST_TOGETHER))]
                await self.write(session, batch)
                self._waiting -= len(batch)
            self._make_room()
        finally:
            del self._queues[session], self._tasks[session]

    def _overflow(self, facts: Sequence[Fact]) -> None:
        if not self._missed:
            logger.error("discord_inbox_full", waiting=self._waiting)
        self._missed += len(facts)
        self._unread["inbox full"] += len(facts)
        said = _said(facts)
        if said and self._first_missed is None:
            self._first_missed = number_of(said[0].message.message_id)
        sentence = f"{self._missed} Discord events found no room while the log took nothing; they are asked for later"
        self._troubles.begin("inbox", f"{sentence}; free the disk")

    def _make_room(self) -> None:
        if self._missed and self._waiting <= self._most // 2:
            first, self._first_missed, self._missed = self._first_missed, None, 0
            self._troubles.end("inbox")
            self._make_up(first)


def _said(facts: Iterable[Fact]) -> list[Said]:
    """The messages among them as they were first said, without edits."""
    return [fact for fact in facts if isinstance(fact, Said) and fact.edited_at is None]
