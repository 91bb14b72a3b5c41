"""Follower: wakes the runtime, one turn at a time in a session (contract sections 6 and 9, sessions.md 3.5).

Whether a wake was decided can be told from the log and the receipt alone. The receipt names the newest message that
is dealt with; before a turn starts it also names the turn, durably. After a crash the turn's ``turn.start`` is in the
log, then it had its chance, or it is not, then it is still owed.
"""

import asyncio
import os
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import structlog
from msgspec import Raw

from core.chat.port import Veil
from core.chat.speak import Speaker, Speech, Spoken, veiled
from core.clock import now_ms
from core.confirmations.asking import Origin
from core.entries import (
    AnyEntry,
    FailureCause,
    MessageCreated,
    TurnAborted,
    TurnDone,
    TurnFailed,
    TurnStart,
    turn_event,
)
from core.errors import ChatOff, InvalidEntry, LogUnavailable, RuntimeCallError, UnknownEntry
from core.ids import EntryId, SessionId, TaskHash, TurnId, new_turn_id, rest_of
from core.runtime.deliver import Deliver
from core.runtime.ending import end, ending, write
from core.runtime.foreign import accept, message_id, renumbered
from core.runtime.outlook import Candidate, IsAnswer, Outlook, look, nothing_asked
from core.runtime.port import Answer, Cause, Liveness, Runtime
from core.sessions.facts import Written
from core.sessions.receipts import Receipt, Receipts
from core.sessions.session import Session
from core.sessions.state import SessionState, key_of
from core.wake import WakeRules, rule_met

TURN_SECONDS: Final = 600.0
MOST_AT_ONCE: Final = 4 * (os.cpu_count() or 1)
MOST_PER_MINUTE: Final = 20
NOTICE: Final = "Something went wrong, so I could not answer. Please try again later."
MOST_ORIGINS: Final = 1024
"""Turns of which it is remembered what made them, for what they ask people."""


CaughtUp = Callable[[SessionId], Awaitable[bool]]
"""Returns when it is known what a chat told while nobody listened, or that took too long; whether there was a wait."""

logger = structlog.get_logger()


async def told_at_once(_session: SessionId) -> bool:
    return False


class Turns:
    """Wakes a runtime, and writes down what its turns came to."""

    name = "wake"

    def __init__(
        self,
        runtime: Runtime,
        deliver: Deliver,
        speaker: Speaker,
        receipts: Receipts,
        rules: WakeRules,
        *,
        veil: Veil = str,
        is_answer: IsAnswer = nothing_asked,
        caught_up: CaughtUp = told_at_once,
        live: Liveness | None = None,
        at_once: int = MOST_AT_ONCE,
    ) -> None:
        self._runtime = runtime
        self._deliver = deliver
        self._speaker = speaker
        self._receipts = receipts
        self._rules = rules
        self._veil = veil
        self._places = asyncio.Semaphore(at_once)
        self._since = now_ms()
        self._is_answer = is_answer
        self._caught_up = caught_up
        self._live = live
        self._origins: OrderedDict[tuple[SessionId, TurnId], Origin] = OrderedDict()
        self._calls: dict[tuple[SessionId, TurnId], asyncio.Future[Answer]] = {}
        self._stopped: dict[TurnId, TaskHash] = {}
        self._waiting: dict[SessionId, list[tuple[int, asyncio.Future[TurnId | None]]]] = {}

    async def until(self, session: Session, position: int) -> TurnId | None:
        """Return when everything up to a position is dealt with: by that turn; None where none is known."""
        receipt = self._receipts.get(self.name, session.id)
        if receipt is not None and receipt.position >= position:
            return None
        waiting = (position, asyncio.get_running_loop().create_future())
        self._waiting.setdefault(session.id, []).append(waiting)
        try:
            return await waiting[1]
        finally:
            self._waiting[session.id].remove(waiting)
            if not self._waiting[session.id]:
                del self._waiting[session.id]

    def running(self) -> dict[SessionId, TurnId]:
        """The turns that the runtime is at."""
        return dict(self._calls.keys())

    async def leave(self, session: SessionId) -> None:
        """A session is going to be removed: nobody waits for a turn of it any more."""
        for _, done in self._waiting.get(session, ()):
            if not done.done():
                done.set_result(None)

    def cause(self, session: SessionId, turn: TurnId) -> Origin | None:
        """What a turn answers that ran not long ago."""
        return self._origins.get((session, turn))

    def stop(self, session: SessionId, turn: TurnId, task: TaskHash) -> None:
        """End a turn, if the runtime is at it: somebody answered its request for leave with ``stop``."""
        call = self._calls.get((session, turn))
        if call is not None and call.cancel():
            self._stopped[turn] = task

    def cares_for(self, entry: AnyEntry) -> bool:
        return rule_met(entry, self._rules) is not None

    async def catch_up(self, session: Session) -> None:
        """Run turns until no message calls for one."""
        while True:
            receipt = await self._settled(session)
            outlook = await self._look(session, receipt)
            if outlook.newest is None:
                if outlook.end is not None:
                    self._receipts.put(self.name, session.id, outlook.end)
                    self._tell(session.id, outlook.end, None)
                return
            if await self._is_due(session, outlook):
                turn = new_turn_id()
                async with self._alive(session.id, turn), self._places:
                    await self._run(session, outlook.newest, receipt, turn)

    async def _settled(self, session: Session) -> Receipt | None:
        """The receipt, once it is known whether the turn that it announces ever started."""
        receipt = self._receipts.get(self.name, session.id)
        if receipt is None or not receipt.note:
            return receipt
        turn, entry, position = receipt.note.split(" ")
        outlook = await self._look(session, receipt)
        if turn in outlook.started:
            await self._finish(session, TurnId(turn), outlook)
            settled = Receipt(EntryId(entry), int(position))
        else:
            settled = receipt._replace(note="")
        await self._leave(session, settled, TurnId(turn))
        return settled

    async def _finish(self, session: Session, turn: TurnId, outlook: Outlook) -> None:
        """A turn that was cut off: end it in the log, and say what is left of its reply."""
        await session.append(())
        if (own := rest_of(turn)) not in outlook.started:
            await self._caught_up(session.id)  # from then on the platform can be spoken to
            await self._speaker.finish(session.id, turn, own=own)

    async def _look(self, session: Session, receipt: Receipt | None) -> Outlook:
        start = await session.resume_from(receipt)
        return await look(
            session,
            start,
            self._rules,
            since=self._since,
            is_answer=self._is_answer,
            receipt_lost=receipt is None,
        )

    async def _is_due(self, session: Session, outlook: Outlook) -> bool:
        """Wait for what has to come first. False: look again, as something may have come meanwhile."""
        if await self._caught_up(session.id):
            return False  # what was missed wakes once, together with what came since
        quiet = outlook.album_until - now_ms()
        if quiet > 0:
            await asyncio.sleep(quiet / 1000)
            return False
        newest = outlook.newest
        if newest is None:
            return False
        receipt = self._receipts.get(Deliver.name, session.id)
        if receipt is None or receipt.position < newest.recorded.end:
            await self._deliver.until(session, newest.recorded.end)
            return False
        wait = await self._until_allowed(session)
        if wait > 0:
            logger.warning("turns_limited", session=session.id, seconds=round(wait))
            await asyncio.sleep(wait)
            return False
        return True

    async def _until_allowed(self, session: Session) -> float:
        """Seconds until the session may have another turn: at most 20 within 60 s, so that bots do not loop."""
        starts = await asyncio.to_thread(_recent_starts, session, now_ms() - 60_000)
        return max(0.0, (starts[0] + 60_000 - now_ms()) / 1000) if len(starts) >= MOST_PER_MINUTE else 0.0

    @asynccontextmanager
    async def _alive(self, session: SessionId, turn: TurnId) -> AsyncGenerator[None]:
        """From when a turn is queued until it is over (sessions.md 3.2)."""
        if self._live is None:
            yield
            return
        try:
            await self._live.begin(session, turn)
            yield
        finally:
            await self._live.end(session, turn)

    async def _run(self, session: Session, candidate: Candidate, before: Receipt | None, turn: TurnId) -> None:
        cause = candidate.recorded
        announced = (before or Receipt(EntryId("-"), 0))._replace(note=f"{turn} {cause.entry.id} {cause.end}")
        await self._receipts.put_durably(self.name, session.id, announced)
        message = candidate.message
        self._origins[session.id, turn] = Origin(cause.entry.id, message)
        if len(self._origins) > MOST_ORIGINS:
            self._origins.popitem(last=False)

        def start(state: SessionState) -> tuple[AnyEntry, ...]:
            if message is not None and state.is_retracted(key_of(message)):
                return ()
            return (turn_event(TurnStart(turn_id=turn), now=now_ms()),)

        if not await session.append([Written(start)]):
            # Taken back meanwhile. What else may wake is looked at anew.
            await self._receipts.put_durably(self.name, session.id, announced._replace(note=""))
            return
        try:
            seen = await self._turn(session, candidate, turn)
        except asyncio.CancelledError:
            aborted = TurnAborted(turn_id=turn, reason="the gateway was stopped")
            # Once: where the disk refuses, the next start ends the turn.
            with suppress(LogUnavailable):
                await session.append([Written(ending(aborted, await self._speaker.owed(turn)))])
            raise
        except Exception as error:  # noqa: BLE001 - whatever went wrong, a turn that began must end
            # The class says enough: the text may hold what was said.
            name = type(error).__name__
            logger.error("turn_broke", session=session.id, turn=turn, error=name)  # noqa: TRY400 - as above
            failure = FailureCause(name="InternalError", message=f"the gateway tripped over it ({name})")
            owed = await self._speaker.owed(turn, unfinished=True)
            await end(session, TurnFailed(turn_id=turn, error=failure), owed)
            seen = None
        handled = await _later(session, Receipt(cause.entry.id, cause.end), seen)
        await self._leave(session, handled, turn)

    async def _leave(self, session: Session, receipt: Receipt, turn: TurnId) -> None:
        try:
            await self._receipts.put_durably(self.name, session.id, receipt)
        finally:  # where the disk refuses, memory has it
            self._tell(session.id, receipt, turn)

    def _tell(self, session: SessionId, receipt: Receipt, turn: TurnId | None) -> None:
        for position, done in self._waiting.get(session, ()):
            if position <= receipt.position and not done.done():
                done.set_result(turn)

    async def _turn(self, session: Session, candidate: Candidate, turn: TurnId) -> EntryId | None:
        """Call the runtime, write down what it returns, say its reply, end the turn. Returns what it has seen."""
        cause = Cause(candidate.recorded.entry.id, candidate.rule)
        call = self._calls[session.id, turn] = asyncio.ensure_future(self._runtime.wake(session.id, turn, cause))
        try:
            async with asyncio.timeout(TURN_SECONDS):
                answer = await call
        except asyncio.CancelledError:
            task = self._stopped.pop(turn, None)
            if task is None:
                raise
            await end(session, TurnAborted(turn_id=turn, reason=f"stopped {task}"))
            running = asyncio.current_task()
            if running is not None and running.cancelling():
                raise  # the gateway stops as well
            return None
        except TimeoutError:
            reason = f"the runtime did not answer within {TURN_SECONDS:.0f} s"
            await self._fail(session, candidate, FailureCause(name="RuntimeTimeout", message=reason), turn)
            return None
        except RuntimeCallError as error:
            failure = FailureCause(name=type(error).__name__, message=str(error))
            await self._fail(session, candidate, failure, turn)
            return None
        finally:
            del self._calls[session.id, turn]
        entries = await self._accepted(session, answer.entries, turn)
        if entries:
            await write(session, entries)
        reply = await self._reply(session, candidate.message, answer, turn)
        done = turn_event(TurnDone(turn_id=turn), now=now_ms())
        await write(session, (*reply, done))
        return answer.seen

    async def _fail(self, session: Session, candidate: Candidate, cause: FailureCause, turn: TurnId) -> None:
        """End a turn that failed, and say so; who wrote in a direct chat is told there (sessions.md 6, 15)."""
        logger.warning("turn_failed", session=session.id, turn=turn, reason=cause.message)
        message = candidate.message
        told = message is not None and message.is_direct
        notice = await self._reply(session, message, Answer(reply=NOTICE), turn) if told else ()
        await end(session, TurnFailed(turn_id=turn, error=cause), notice)

    async def _accepted(self, session: Session, entries: Sequence[Raw], turn: TurnId) -> tuple[AnyEntry, ...]:
        """What may go into the log; an id that stands there already is given anew."""
        taken: list[AnyEntry] = []
        ids: set[str] = set()
        for raw in entries:
            try:
                entry = accept(veiled(raw, self._veil), turn=turn, now=now_ms())
            except (InvalidEntry, UnicodeDecodeError) as error:
                logger.warning("runtime_entry_refused", session=session.id, turn=turn, reason=str(error))
                continue
            for known in (entry.id, message_id(entry)):
                if known is not None and (known in ids or await session.holds_id(known)):
                    entry = renumbered(entry, known)
            ids |= {entry.id, message_id(entry) or entry.id}
            taken.append(entry)
        return tuple(taken)

    async def _reply(
        self, session: Session, message: MessageCreated | None, answer: Answer, turn: TurnId
    ) -> tuple[AnyEntry, ...]:
        if not answer.reply or not answer.reply.strip():
            return ()
        quote = message.message_id if message else None
        thread = message.thread_id if message else None
        speech = Speech((answer.reply,), "markdown", quote=quote, thread=thread)
        try:
            spoken = await self._speaker.send(session.id, speech, key=turn)
        except ChatOff:
            # A session without a platform: what is said there is read from the log.
            return self._speaker.lines(speech, Spoken(), turn=turn)
        if spoken.error is not None:
            logger.warning("reply_not_sent", session=session.id, turn=turn, reason=spoken.error[1])
        return self._speaker.lines(speech, spoken, turn=turn)


async def _later(session: Session, handled: Receipt, seen: EntryId | None) -> Receipt:
    """The receipt after a turn: what the runtime says it has seen, never less than the cause."""
    if seen is None:
        return handled
    try:
        position = await session.position_after(seen)
    except UnknownEntry:
        logger.warning("runtime_saw_unknown_entry", session=session.id)
        return handled
    return Receipt(seen, position) if position > handled.position else handled


def _recent_starts(session: Session, since: int) -> list[int]:
    """Times of the turns that started since then, oldest first. Blocks."""
    starts: list[int] = []
    for recorded in session.read_back():
        if recorded.entry.timestamp < since:
            break
        if isinstance(recorded.entry.data, TurnStart):
            starts.append(recorded.entry.timestamp)
    return starts[::-1]
