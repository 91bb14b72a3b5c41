"""The open confirmations, in memory and on disk: opened, answered, expired, each decided once (sessions.md 4).

What happens to a record is decided by `core.confirmations.record`; here it is made durable, one change after the other.
The first valid answer in the file is the answer: when a write fails, nothing was decided.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final, Protocol, TypeVar
from weakref import WeakValueDictionary

import structlog

from core.clock import now_ms
from core.confirmations import life
from core.confirmations.expiry import Expiry
from core.confirmations.folder import Folder
from core.confirmations.leave import Leave
from core.confirmations.life import Given
from core.confirmations.record import Answer, Choice, Person, Record
from core.entries import MessageCreated, MessageDeleted, fact_of
from core.errors import ConfirmationError, NotAllowed, UnknownTask
from core.ids import MessageId, SessionId, TaskHash, TurnId, platform_of
from core.sessions.reading import Recorded
from core.sessions.session import Session

LONGEST_PAUSE: Final = 30.0
SETTLED_WITHIN: Final = 2.0
"""Seconds that a runtime and a chat have to hear of what was withdrawn because its session is removed."""
_WRITERS: Final = 8
_BY_REPLY: Final = frozenset({"telegram"})
"""Where free text is answered by a reply to the prompt; elsewhere there is a form for it (sessions.md 4.7)."""

Change = Callable[[Record], Record]
Listener = Callable[[Record], None]
StopTurn = Callable[[SessionId, TurnId, TaskHash], None]

logger = structlog.get_logger()
T = TypeVar("T")


class Archive(Protocol):
    """Where decided records are kept."""

    async def put_decision(
        self, task: TaskHash, session: SessionId, status: str, decided_at: int, record: str
    ) -> None: ...

    async def decision(self, task: TaskHash) -> str | None: ...

    async def was_answer(self, session: SessionId, message: MessageId, sent_at: int) -> bool: ...


class Desk:
    """Everything that is asked and not yet filed. Belongs to one event loop."""

    def __init__(
        self,
        folder: Folder,
        archive: Archive,
        leave: Leave,
        *,
        admins: Set[tuple[str, str]] = frozenset(),
        current: Callable[[SessionId], SessionId] = lambda session: session,
    ) -> None:
        """``current`` is the session that a chat goes on in."""
        self._folder = folder
        self._archive = archive
        self._leave = leave
        self._admins = admins
        self._current = current
        self.stop_turn: StopTurn = lambda _session, _turn, _task: None
        """Ends a turn that runs, where somebody runs turns."""
        self._records: dict[TaskHash, Record] = {}
        self._locks: WeakValueDictionary[TaskHash, asyncio.Lock] = WeakValueDictionary()
        self._listeners: list[Listener] = []
        self._decided: dict[TaskHash, asyncio.Event] = {}
        self._posted: dict[TaskHash, tuple[MessageId, int]] = {}
        self._filed_in: dict[SessionId, asyncio.Event] = {}
        self._expiry = Expiry(self._records.values, lambda task: self.insist(task, life.expired))
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closing = asyncio.Event()
        self._disk = ThreadPoolExecutor(_WRITERS, thread_name_prefix="pending")

    @asynccontextmanager
    async def at_work(self, sessions: Iterable[SessionId]) -> AsyncGenerator[None]:
        """Read what these sessions have pending, and watch the clock; in the end wait for what is being written."""
        for record in await self._blocking(lambda: list(self._folder.read_all(sessions))):
            self._records[record.task_hash] = record
        clock = self._spawn(self._expiry.run(), "confirmations expire")
        try:
            yield
        finally:
            clock.cancel()
            self._closing.set()
            while self._tasks:
                await asyncio.gather(*self._tasks, return_exceptions=True)
            await asyncio.to_thread(self._disk.shutdown)

    def listen(self, listener: Listener) -> None:
        """Be told of each record that is new or was changed, once that is durable."""
        self._listeners.append(listener)

    # --- looking --------------------------------------------------------------------------------------------------

    def records(self, *, chat: SessionId | None = None) -> list[Record]:
        """All that is not filed yet, in the order in which it was asked; of one chat only where it is named."""
        found = [record for record in self._records.values() if chat is None or record.deliver_to == chat]
        return sorted(found, key=lambda record: (record.created_at, record.task_hash))

    def get(self, task: TaskHash) -> Record | None:
        """A record that is not filed yet."""
        return self._records.get(task)

    async def find(self, task: TaskHash) -> Record:
        """A record, also one that is filed. Raises `UnknownTask`."""
        record = self._records.get(task)
        if record is not None:
            return record
        filed = await self._archive.decision(task)
        if filed is None:
            raise UnknownTask("there is no confirmation of that hash; `ishiki pending` lists the open ones")
        return Record.model_validate_json(filed)

    async def decided(self, task: TaskHash, within: float) -> Record:
        """The record as soon as it is decided, at the latest after so many seconds. Raises `UnknownTask`."""
        record = await self.find(task)
        if record.is_open and within > 0:
            event = self._decided.setdefault(task, asyncio.Event())
            await _within(within, event)
            record = await self.find(task)
        return record

    # --- asking ---------------------------------------------------------------------------------------------------

    async def open(self, record: Record) -> Record:
        """Take a new record: durable when this returns, and decided at once where leave was given before.

        The same task hash again is the same record. Raises `OSError`.
        """
        return await self._to_its_end(self._open(record))

    # --- answering ------------------------------------------------------------------------------------------------

    async def give(self, task: TaskHash, what: Given, by: Person, place: SessionId) -> Record:
        """Take an answer from a chat; durable when this returns.

        Raises `UnknownTask`, `AlreadyDecided`, `NotAllowed` and `InvalidAnswer` before anything is written, each with
        a sentence for the person, and `OSError`: nothing was decided then.
        """
        now = now_ms()  # that is when it was given, however long what is written before it takes
        await self.check(task, by, place)

        def given(record: Record) -> Record:
            # The message that was pressed in a chat that has moved is none of the chat in which this is asked now.
            here = what if place == record.deliver_to else replace(what, pressed=None)
            return life.given(record, here, by, now)

        return await self.change(task, given)

    async def check(self, task: TaskHash, by: Person, place: SessionId) -> None:
        """Whether this person may answer now, from there. Raises as `give`, but no `OSError`."""
        self._check(await self.find(task), by, place)

    async def choose(self, task: TaskHash, choice: Choice, by: Person) -> Record:
        """Decide with the operator's right. Raises as `give`."""
        now = now_ms()
        return await self.change(task, lambda record: life.chosen(record, choice, by, now))

    async def answer(self, task: TaskHash, answers: Sequence[Answer], by: Person) -> Record:
        """Answer all questions with the operator's right. Raises as `give`."""
        now = now_ms()
        return await self.change(task, lambda record: life.answered(record, answers, by, now))

    def is_admin(self, by: Person) -> bool:
        """Whether they may answer everything."""
        return by.key in self._admins

    def awaits_reply(self, place: SessionId, quoted: MessageId, by: Person) -> Record | None:
        """The question that a reply of this person to that message would answer in their own words."""
        if platform_of(place) not in _BY_REPLY:
            return None
        for record in self._records.values():
            if not life.is_free_text(record) or not self._stands_in(record, quoted):
                continue
            try:
                self._check(record, by, place)
            except ConfirmationError:
                continue
            return record
        return None

    async def is_answer(self, session: SessionId, message: MessageCreated) -> bool:
        """Whether a message answers, or answered, a question, so that it addresses nobody else."""
        if message.quote is None or message.via is not None or message.platform not in _BY_REPLY:
            return False
        by = Person(platform=message.platform, id=message.user.id)
        if self.awaits_reply(session, message.quote.id, by) is not None:
            return True
        if any(message.message_id in record.replies for record in self.records(chat=session)):
            return True
        return await self._archive.was_answer(session, message.message_id, message.timestamp)

    def note_posted(self, task: TaskHash, message: MessageId, question: int) -> None:
        """A prompt stands in its chat, though not in its file yet: it may be replied to already."""
        self._posted[task] = message, question

    # --- what else happens ----------------------------------------------------------------------------------------

    def on_append(self, session: Session, added: Sequence[Recorded]) -> None:
        """A retracted message withdraws what it caused."""
        for recorded in added:
            fact = fact_of(recorded.entry)
            if isinstance(fact, MessageDeleted):
                for record in self._caused_by(session.id, fact.message_id):
                    self._spawn(self.insist(record.task_hash, life.withdrawn), f"withdraw {record.task_hash}")

    async def move(self, old: SessionId, new: SessionId) -> None:
        """The chat ``old`` goes on as ``new``: what is open there is asked anew."""
        moved = partial(life.moved, old=old, new=new)
        for record in self.records(chat=old):
            await self.soon(record.task_hash, moved)

    def concerns(self, session: SessionId) -> bool:
        """Whether anything that is not filed yet was asked in a session, for it, or is shown in it."""
        return any(session in {one.session_id, one.origin, one.deliver_to} for one in self._records.values())

    async def leave(self, session: SessionId) -> None:
        """A session is going to be removed: what is open in it is withdrawn.

        The runtime is told ``denied`` and the prompts are closed, for as long as `SETTLED_WITHIN`; then no more is
        kept of it.
        """
        for record in self._of(session):
            if record.is_open:
                await self.soon(record.task_hash, life.withdrawn)
        until = asyncio.get_running_loop().time() + SETTLED_WITHIN
        while self._of(session) and (left := until - asyncio.get_running_loop().time()) > 0:
            await _within(left, self._filed_in.setdefault(session, asyncio.Event()))
        self._filed_in.pop(session, None)
        for record in self._of(session):
            del self._records[record.task_hash]
            self._posted.pop(record.task_hash, None)

    # --- changing -------------------------------------------------------------------------------------------------

    async def change(self, task: TaskHash, change: Change) -> Record:
        """Change a record, durably, after all changes before; what ``change`` raises leaves it as it is.

        Raises `OSError`, and nothing was changed; `UnknownTask` where it is filed or never was.
        """
        return await self._to_its_end(self._change(task, change))

    async def _open(self, record: Record) -> Record:
        task = record.task_hash
        async with self._lock(task):
            known = self._records.get(task) or await self._filed(task)
            if known is not None:
                return known
            if record.is_open:
                record = await self._leave.applied(record, now_ms())
            await self._put(record)
        self._expiry.look()
        if record.is_open and (before := self._leave.stopped_by(record)) is not None:
            # Its turn was stopped while this was being written.
            await self.insist(task, partial(life.stopped, by=before.by))
            return self._records.get(task, record)
        return record

    async def _change(self, task: TaskHash, change: Change) -> Record:
        async with self._lock(task):
            before = self._records.get(task)
            if before is None:
                change(await self.find(task))  # which says why not
                raise UnknownTask("that confirmation is filed, and changes no more")
            after = change(before)
            if after is not before:
                await self._put(after)
        if before.is_open and not after.is_open:
            self._stop_with(after)
        return after

    async def file(self, task: TaskHash) -> None:
        """Put a record away that nobody needs to be told of any more. Raises `OSError` and what the archive raises."""
        async with self._lock(task):
            record = self._records.get(task)
            if record is None or record.decided_at is None:
                return
            text = record.model_dump_json(exclude_defaults=True)
            await self._archive.put_decision(task, record.session_id, record.status, record.decided_at, text)
            await self._blocking(partial(self._folder.remove, record))
            self._records.pop(task, None)  # its session may have been removed meanwhile
            self._posted.pop(task, None)
            if (waited_for := self._filed_in.pop(record.session_id, None)) is not None:
                waited_for.set()

    async def _put(self, record: Record) -> None:
        before = self._records.get(record.task_hash)
        await self._blocking(partial(self._folder.write, record))
        self._records[record.task_hash] = record
        if before is not None and before.is_open and not record.is_open:
            await self._leave.remember(record)  # before anybody hears of it, and asks for more
        if not record.is_open and (event := self._decided.pop(record.task_hash, None)) is not None:
            event.set()
        for listener in self._listeners:
            listener(record)

    def _stop_with(self, record: Record) -> None:
        """What ``stop`` means beyond its own record."""
        first = self._leave.stopped_by(record)
        if record.choice == "stop" and record.turn_id is not None and (first is None or first is record):
            for other in self._others_of_turn(record):
                stopped = partial(life.stopped, by=record.by)
                self._spawn(self.insist(other.task_hash, stopped), f"stop {other.task_hash}")
            self.stop_turn(record.session_id, record.turn_id, record.task_hash)

    async def stop_again(self) -> None:
        """After a start: what was left open when one of its turn was stopped, in the moment when we were."""
        for record in self.records():
            if record.status == "stopped" and record.turn_id is not None:
                for other in self._others_of_turn(record):
                    await self.soon(other.task_hash, partial(life.stopped, by=record.by))

    async def soon(self, task: TaskHash, change: Callable[..., Record]) -> None:
        """As `insist`, but nobody waits longer than a second: a disk that refuses holds up neither start nor stop."""
        await asyncio.wait({self._spawn(self.insist(task, change), f"change {task}")}, timeout=1.0)

    async def insist(self, task: TaskHash, change: Callable[..., Record]) -> None:
        """Make a change that has to be made whatever the disk does meanwhile; ``change`` also takes ``now``.

        It is given up where the disk refuses it and we stop: the next start sees what is left to do.
        """
        pause = 0.5
        while True:
            try:
                await self.change(task, lambda record: change(record, now=now_ms()))
            except UnknownTask:
                return
            except OSError as error:
                logger.warning("pending_not_written", task=task, reason=error.strerror, again_in=pause)
                if await _within(pause, self._closing):
                    return
                pause = min(pause * 2, LONGEST_PAUSE)
            else:
                return

    def _check(self, record: Record, by: Person, place: SessionId) -> None:
        if place != record.deliver_to and self._current(place) != record.deliver_to:
            raise NotAllowed("that was asked in another chat, and is answered there")
        life.check_open(record, now_ms())
        life.check_person(record, by, self._admins)

    def _stands_in(self, record: Record, message: MessageId) -> bool:
        """Whether that message shows the question that is next: not one that is answered already."""
        shown = record.prompt
        if shown is not None and shown.question == record.current and message in shown.message_ids:
            return True
        return self._posted.get(record.task_hash) == (message, record.current)

    def _others_of_turn(self, record: Record) -> list[Record]:
        turn = (record.session_id, record.turn_id)
        return [other for other in self.records() if other.is_open and (other.session_id, other.turn_id) == turn]

    def _caused_by(self, session: SessionId, message: MessageId) -> list[Record]:
        return [
            record
            for record in self._records.values()
            if record.is_open
            and record.cause is not None
            and record.cause.message_id == message
            and session in {record.session_id, record.origin}
        ]

    def _of(self, session: SessionId) -> list[Record]:
        return [record for record in self.records() if record.session_id == session]

    def _lock(self, task: TaskHash) -> asyncio.Lock:
        """One for each task, for as long as somebody holds or awaits it."""
        return self._locks.setdefault(task, asyncio.Lock())

    async def _filed(self, task: TaskHash) -> Record | None:
        try:
            return await self.find(task)
        except UnknownTask:
            return None

    async def _blocking(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._disk, work)

    async def _to_its_end(self, work: Coroutine[Any, Any, Record]) -> Record:
        """Whoever waits may go: a write cannot be called back, and the next one has to come after it."""
        return await asyncio.shield(self._spawn(work, "pending"))

    def _spawn(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _within(seconds: float, event: asyncio.Event) -> bool:
    """Whether something happens in so many seconds."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
