"""One session: facts in, lines out.

Facts that arrive while a batch is being made durable wait and become the next batch. So each decision is taken on
what the file really holds, and file order is the order of the calls.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import replace as changed

from core.clock import now_ms
from core.codec import encode
from core.content import parse, render, without_sources
from core.entries import AnyEntry, FailureCause, MessageCreated, MessageDeleted, TurnFailed, fact_of, turn_event
from core.errors import UnknownSession
from core.ids import SessionId, TurnId
from core.log.disk import unavailable
from core.log.lines import Line
from core.log.port import Appending, Log
from core.sessions.facts import Fact, Media, Retracted, Said, Written
from core.sessions.reading import Reading, Recorded
from core.sessions.receipts import Receipt
from core.sessions.state import Draft, MessageKey, SessionState, Standing, fold, fold_message, key_of
from core.sidecars import Sidecar, write_sidecar

LOADED_BYTES: Final = 512 * 1024
"""How much of a log's end is folded when a session is first written to."""

MOST_RECENT: Final = 8
RECENT_BYTES: Final = 16 * 1024
"""The newest lines that stay in memory for whoever follows the log close behind."""

Spawn = Callable[[Coroutine[Any, Any, None], str], None]
"""Start a named task that somebody owns."""


class _Waiting(msgspec.Struct, eq=False):
    facts: tuple[Fact, ...]
    done: asyncio.Future[list[Recorded]]
    entries: list[AnyEntry] = []


class _Batch(msgspec.Struct, eq=False):
    """What is written together: whose facts, their lines, the sidecars that go with them, and what holds then."""

    draft: Draft
    waiting: list[_Waiting] = []
    lines: list[bytes] = []
    sidecars: dict[str, bytes] = {}

    def entries(self) -> Iterator[AnyEntry]:
        return (entry for waiting in self.waiting for entry in waiting.entries)


OnAppend = Callable[["Session", Sequence[Recorded]], None]
Owed = Callable[[TurnId], Awaitable[tuple[AnyEntry, ...]]]
"""The lines that a turn still owes which was cut off; they are written before its end."""


async def nothing_owed(_turn: TurnId) -> tuple[AnyEntry, ...]:
    return ()


class Session(Reading):
    """Append, read and follow one conversation.

    All methods belong to one event loop, but for those that say that they block. An idle session holds no task, no
    timer and no open file.
    """

    __slots__ = (
        "_closed",
        "_draining",
        "_grown",
        "_has_written",
        "_highest",
        "_on_append",
        "_owed",
        "_recent",
        "_spawn",
        "_state",
        "_waiting",
    )

    def __init__(
        self, session_id: SessionId, log: Log, *, on_append: OnAppend, spawn: Spawn, owed: Owed | None = None
    ) -> None:
        super().__init__(session_id, log)
        self._on_append = on_append
        self._spawn = spawn
        self._owed = owed or nothing_owed
        self._state: SessionState | None = None
        self._waiting: list[_Waiting] = []
        self._draining = False
        self._closed = False
        self._has_written = False
        self._highest: int | None = None
        self._recent: list[Recorded] = []
        self._grown: asyncio.Event | None = None

    def append(self, facts: Iterable[Fact]) -> asyncio.Future[list[Recorded]]:
        """Write what these facts call for; done when it would survive a power cut.

        The result is the lines that were new: none when the log holds all of it already. Raises `LogUnavailable`
        through the future; nothing is recorded then and the same facts may be handed in again. `UnknownSession` where
        the session was removed.
        """
        loop = asyncio.get_running_loop()
        waiting = _Waiting(tuple(facts), loop.create_future())
        if self._closed:
            waiting.done.set_exception(UnknownSession("that session was removed; begin another one"))
            return waiting.done
        self._waiting.append(waiting)
        if not self._draining:
            self._draining = True
            loop.call_soon(self._begin)
        return waiting.done

    @property
    def is_busy(self) -> bool:
        """Whether anything that was handed in is neither durable nor refused."""
        return self._draining

    async def settle(self) -> None:
        """Return when all that was handed in is durable or refused."""
        while self._draining:
            await asyncio.wait([self.append(())])

    async def close(self) -> None:
        """Take nothing more, as the session is going to be removed. What was handed in before is settled."""
        await self.settle()
        self._closed = True
        if self._grown is not None:
            self._grown.set()

    async def state(self) -> SessionState:
        """What is true now. Not to be changed by the caller."""
        while self._state is None:
            size = self._log.size
            state = await asyncio.to_thread(self._fold_tail)
            if self._state is None and self._log.size == size:  # else the fold is behind the file already
                self._state = state
        return self._state

    async def standing(self, key: MessageKey) -> Standing | None:
        """What the log says of one message, also of one that memory has forgotten; None: it does not hold it."""
        state = await self.state()
        if state.is_partial(key):
            return await asyncio.to_thread(self._look_up, key)
        return state.standing(key)

    async def follow(self, start: int = 0) -> AsyncIterator[Recorded]:
        """Entries from a position on, without gap or repeat, until the session is removed."""
        position = start
        while True:
            self._grown = grown = self._grown or asyncio.Event()
            while position < self._log.size:
                chunk, position = await self.chunk_from(position)
                for recorded in chunk:
                    yield recorded
            if self._closed:
                return
            await grown.wait()

    async def chunk_from(self, start: int) -> tuple[list[Recorded], int]:
        """Some entries from a position on, and the position to go on from. The newest are still in memory."""
        if any(recorded.start == start for recorded in self._recent):
            return [recorded for recorded in self._recent if recorded.start >= start], self._recent[-1].end
        return await super().chunk_from(start)

    async def resume_from(self, receipt: Receipt | None) -> int:
        if receipt is not None and any(_is_at(receipt, recorded) for recorded in self._recent):
            return receipt.position
        return await super().resume_from(receipt)

    def forget(self) -> None:
        """Let go of what is in memory, where nothing is under way; the next use folds the log's end again."""
        if not self._draining:
            if self._state is not None and self._state.surveyed:
                self._highest = self._state.highest
            self._state, self._recent = None, []

    # --- appending ------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Write what waits: without a task where memory tells all that has to be known, as it nearly always does."""
        state = self._state
        if state is None or not _suffices(state, self._waiting):
            self._spawn(self._drain(), f"append {self.id}")
            return
        group, self._waiting = self._waiting, []
        batch = self._decide(state, group)
        if batch.lines:
            self._log.append(batch.lines, batch.sidecars).then(partial(self._go_on, state, batch))
        else:
            self._go_on(state, batch, None)

    def _go_on(self, state: SessionState, batch: _Batch, written: Appending | None) -> None:
        try:
            self._take_in(state, batch, written.result() if written is not None else ())
        except Exception as error:  # noqa: BLE001 - not handled here: handed to everybody who waits
            _refuse(self.id, batch.waiting, error)
        if self._waiting:
            self._begin()
        else:
            self._draining = False

    async def _drain(self) -> None:
        group: list[_Waiting] = []
        try:
            while self._waiting:
                group, self._waiting = self._waiting, []
                try:
                    await self._write(group)
                except Exception as error:  # noqa: BLE001 - not handled here: handed to everybody who waits
                    _refuse(self.id, group, error)
        finally:
            self._draining = False
            for waiting in [*group, *self._waiting]:
                waiting.done.cancel()

    async def _write(self, group: list[_Waiting]) -> None:
        state = await self.state()
        await self._close_open_turn(state)
        await self._recall(state, group)
        await self._fill_quotes(group)
        await self._commit(state, self._decide(state, group))

    def _decide(self, state: SessionState, group: Sequence[_Waiting]) -> _Batch:
        """What the facts call for, in their order. Facts that cannot be written fail alone, not those beside them."""
        batch, now = _Batch(Draft(state)), now_ms()
        for waiting in group:
            try:
                media: list[Media] = []
                for fact in waiting.facts:
                    decision = batch.draft.take(fact, now=now)
                    waiting.entries += decision.entries
                    media += decision.media
                lines = [encode(entry) for entry in waiting.entries]
                sidecars = {f"resources/assets/{file.asset}.json": _sidecar(file, now) for file in media}
            except Exception as error:  # noqa: BLE001 - not handled here: handed to whom it concerns
                if not waiting.done.done():
                    waiting.done.set_exception(error)
                waiting.entries.clear()
                batch.draft = Draft(state)
                for entry in batch.entries():
                    batch.draft.apply(entry)
            else:
                batch.waiting.append(waiting)
                batch.lines += lines
                batch.sidecars |= sidecars
        return batch

    async def _commit(self, state: SessionState, batch: _Batch) -> None:
        self._take_in(state, batch, await self._log.append(batch.lines, batch.sidecars) if batch.lines else ())

    def _take_in(self, state: SessionState, batch: _Batch, lines: Sequence[Line]) -> None:
        """These lines of a batch are durable: remember them, and tell of them."""
        added = [
            Recorded(entry, line.start, line.end, line.raw) for entry, line in zip(batch.entries(), lines, strict=True)
        ]
        if added:
            state.absorb(batch.draft)
            self._has_written = True
            self._recent = _newest(self._recent, added)
            if self._grown is not None:
                self._grown.set()
                self._grown = None
            self._on_append(self, added)
        position = 0
        for waiting in batch.waiting:
            count = len(waiting.entries)
            if not waiting.done.done():
                waiting.done.set_result(added[position : position + count])
            position += count

    async def _close_open_turn(self, state: SessionState) -> None:
        """A turn that was open when the process died gets its end before anything else is written (log-format 4)."""
        if state.inherited_turn is None:
            return
        owed = await self._owed(state.inherited_turn)
        error = FailureCause(name="Interrupted", message="the gateway stopped during this turn")
        event = turn_event(TurnFailed(turn_id=state.inherited_turn, error=error), now=now_ms())
        batch = self._decide(state, [_Waiting((Written((*owed, event)),), asyncio.get_running_loop().create_future())])
        await self._commit(state, batch)

    async def _recall(self, state: SessionState, group: Sequence[_Waiting]) -> None:
        """Look up the messages that memory has forgotten, before anything about them is decided."""
        if state.complete or not any(isinstance(fact, Said | Retracted) for waiting in group for fact in waiting.facts):
            return
        if not state.surveyed:
            state.highest, state.surveyed = await asyncio.to_thread(self.highest_number), True
        keys = {key for waiting in group for fact in waiting.facts if (key := state.needs_lookup(fact)) is not None}
        for key in keys:
            found = await asyncio.to_thread(self._look_up, key)
            if found is not None:
                state.recall(key, found)

    async def _fill_quotes(self, group: Sequence[_Waiting]) -> None:
        """A quoted message that the platform sent no copy of is quoted as the log has it (log-format 7.1)."""
        if not any(isinstance(fact, Said) and _is_bare(fact) for waiting in group for fact in waiting.facts):
            return
        arriving: dict[MessageKey, MessageCreated] = {}
        for waiting in group:
            if any(isinstance(fact, Said) and _is_bare(fact) for fact in waiting.facts):
                waiting.facts = await asyncio.to_thread(self._filled_all, waiting.facts, arriving)
            arriving |= {key_of(fact.message): fact.message for fact in waiting.facts if isinstance(fact, Said)}

    # --- reading: all of it blocks --------------------------------------------------------------------------------

    def _fold_tail(self) -> SessionState:
        tail: list[AnyEntry] = []
        start = self._log.size
        for recorded in self.read_back():
            tail.append(recorded.entry)
            start = recorded.start
            if self._log.size - start >= LOADED_BYTES:
                break
        else:
            start = 0
        state = fold(reversed(tail), complete=start == 0)
        if self._highest is not None:
            state.highest, state.surveyed = self._highest, True
        if not self._has_written:
            state.inherited_turn = state.open_turn
        return state

    def _filled_all(self, facts: tuple[Fact, ...], arriving: Mapping[MessageKey, MessageCreated]) -> tuple[Fact, ...]:
        return tuple(self._filled(fact, arriving) for fact in facts)

    def _filled(self, fact: Fact, arriving: Mapping[MessageKey, MessageCreated]) -> Fact:
        quote = fact.message.quote if isinstance(fact, Said) else None
        if not isinstance(fact, Said) or quote is None or not _is_bare(fact):
            return fact
        key = changed(key_of(fact.message), message_id=quote.id)
        shown = arriving.get(key) or self._shown(key)
        if shown is None:
            return fact
        content = render(without_sources(parse(shown.content)))
        quote = changed(quote, content=content, user=quote.user or shown.user)
        return changed(fact, message=changed(fact.message, quote=quote))

    def _shown(self, key: MessageKey) -> MessageCreated | None:
        """The newest revision of a message; None where there is none, or it was retracted."""
        shown: MessageCreated | None = None
        for recorded in self.about(key):
            fact = fact_of(recorded.entry)
            if isinstance(fact, MessageDeleted):
                return None
            shown = fact if isinstance(fact, MessageCreated) else shown
        return shown

    def _look_up(self, key: MessageKey) -> Standing | None:
        standing: Standing | None = None
        for recorded in self.about(key):
            fact = fact_of(recorded.entry)
            if isinstance(fact, MessageCreated | MessageDeleted):
                standing = fold_message(standing or Standing(), fact)
        return standing


def _suffices(state: SessionState, group: Sequence[_Waiting]) -> bool:
    """Whether it can be decided from memory alone what is to be written."""
    if state.inherited_turn is not None or not (state.complete or state.surveyed):
        return False
    for waiting in group:
        for fact in waiting.facts:
            if (isinstance(fact, Said) and _is_bare(fact)) or state.needs_lookup(fact) is not None:
                return False
    return True


def _refuse(session: SessionId, group: Sequence[_Waiting], error: Exception) -> None:
    """An error of reading the log's end may pass as well as one of writing: what was handed in may be so again."""
    for waiting in group:
        if not waiting.done.done():
            waiting.done.set_exception(unavailable(session, error) if isinstance(error, OSError) else error)


def _newest(recent: list[Recorded], added: list[Recorded]) -> list[Recorded]:
    """The end of the log without gaps, as far as it is kept in memory."""
    if recent and recent[-1].end != added[0].start:
        recent = []
    newest = [*recent, *added][-MOST_RECENT:]
    while newest and newest[-1].end - newest[0].start > RECENT_BYTES:
        del newest[0]
    return newest


def _is_at(receipt: Receipt, recorded: Recorded) -> bool:
    return recorded.end == receipt.position and recorded.entry.id == receipt.entry


def _is_bare(fact: Said) -> bool:
    """Whether it quotes a message of its own chat by number alone."""
    quote = fact.message.quote
    return quote is not None and quote.content is None and quote.channel is None


def _sidecar(media: Media, now: int) -> bytes:
    return write_sidecar(
        Sidecar(
            id=media.asset,
            kind="asset",
            name=media.asset,
            created_at=now,
            filename=media.item.filename,
            source_info=media.declared,
            ref=media.ref,
        )
    )
