"""One session: facts in, lines out.

Facts that arrive while a batch is being made durable wait and become the next batch. So each decision is taken on
what the file really holds, and file order is the order of the calls.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from msgspec.structs import replace as changed

from core.clock import now_ms
from core.codec import encode
from core.content import parse, render, without_sources
from core.entries import AnyEntry, FailureCause, MessageCreated, MessageDeleted, TurnFailed, fact_of, turn_event
from core.ids import SessionId, TurnId
from core.log.port import Log
from core.sessions.facts import Fact, Media, Said, Written
from core.sessions.reading import Reading, Recorded
from core.sessions.state import Draft, MessageKey, SessionState, Standing, fold, fold_message, key_of
from core.sidecars import Sidecar, write_sidecar

LOADED_BYTES: Final = 512 * 1024
"""How much of a log's end is folded when a session is first written to."""

Spawn = Callable[[Coroutine[Any, Any, None], str], None]
"""Start a named task that somebody owns."""


@dataclass(slots=True, eq=False)
class _Waiting:
    facts: tuple[Fact, ...]
    done: asyncio.Future[list[Recorded]]
    entries: list[AnyEntry] = field(default_factory=list[AnyEntry])


@dataclass(slots=True)
class _Batch:
    """What is written together: whose facts, their lines, the sidecars that go with them, and what holds then."""

    draft: Draft
    waiting: list[_Waiting] = field(default_factory=list[_Waiting])
    lines: list[bytes] = field(default_factory=list[bytes])
    sidecars: dict[str, bytes] = field(default_factory=dict[str, bytes])

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
        "_draining",
        "_grown",
        "_has_written",
        "_on_append",
        "_owed",
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
        self._has_written = False
        self._grown: asyncio.Event | None = None

    def append(self, facts: Iterable[Fact]) -> asyncio.Future[list[Recorded]]:
        """Write what these facts call for; done when it would survive a power cut.

        The result is the lines that were new: none when the log holds all of it already. Raises `LogUnavailable`
        through the future; nothing is recorded then and the same facts may be handed in again.
        """
        waiting = _Waiting(tuple(facts), asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if not self._draining:
            self._draining = True
            self._spawn(self._drain(), f"append {self.id}")
        return waiting.done

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
        known = state.standing(key)
        if known is None and not state.complete:
            known = await asyncio.to_thread(self._look_up, key)
        return known

    async def follow(self, start: int = 0) -> AsyncIterator[Recorded]:
        """Entries from a position on, without gap or repeat, for ever."""
        position = start
        while True:
            self._grown = grown = self._grown or asyncio.Event()
            while position < self._log.size:
                chunk, position = await asyncio.to_thread(self.read_chunk, position)
                for recorded in chunk:
                    yield recorded
            await grown.wait()

    def forget(self) -> None:
        """Let go of what is in memory, where nothing is under way; the next use folds the log's end again."""
        if not self._draining:
            self._state = None

    # --- appending ------------------------------------------------------------------------------------------------

    async def _drain(self) -> None:
        group: list[_Waiting] = []
        try:
            while self._waiting:
                group, self._waiting = self._waiting, []
                try:
                    await self._write(group)
                except Exception as error:  # noqa: BLE001 - not handled here: handed to everybody who waits
                    for waiting in group:
                        if not waiting.done.done():
                            waiting.done.set_exception(error)
        finally:
            self._draining = False
            for waiting in [*group, *self._waiting]:
                waiting.done.cancel()

    async def _write(self, group: list[_Waiting]) -> None:
        state = await self.state()
        await self._close_open_turn(state)
        await self._recall(state, group)
        await self._fill_quotes(group)
        batch = self._decide(state, group)
        added = await self._commit(state, batch)
        position = 0
        for waiting in batch.waiting:
            count = len(waiting.entries)
            if not waiting.done.done():
                waiting.done.set_result(added[position : position + count])
            position += count

    def _decide(self, state: SessionState, group: Sequence[_Waiting]) -> _Batch:
        """What the facts call for, in their order. Facts that cannot be written fail alone, not those beside them."""
        batch, now = _Batch(Draft(state)), now_ms()
        for waiting in group:
            try:
                decisions = [batch.draft.take(fact, now=now) for fact in waiting.facts]
                waiting.entries = [entry for decision in decisions for entry in decision.entries]
                lines = [encode(entry) for entry in waiting.entries]
                media = [file for decision in decisions for file in decision.media]
                sidecars = {f"resources/assets/{file.asset}.json": _sidecar(file, now) for file in media}
            except Exception as error:  # noqa: BLE001 - not handled here: handed to whom it concerns
                if not waiting.done.done():
                    waiting.done.set_exception(error)
                batch.draft = Draft(state)
                for entry in batch.entries():
                    batch.draft.apply(entry)
            else:
                batch.waiting.append(waiting)
                batch.lines += lines
                batch.sidecars |= sidecars
        return batch

    async def _commit(self, state: SessionState, batch: _Batch) -> list[Recorded]:
        if not batch.lines:
            return []
        lines = await self._log.append(batch.lines, batch.sidecars)
        added = [Recorded(entry, *line) for entry, line in zip(batch.entries(), lines, strict=True)]
        state.absorb(batch.draft)
        self._has_written = True
        if self._grown is not None:
            self._grown.set()
            self._grown = None
        self._on_append(self, added)
        return added

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
        if state.complete:
            return
        keys = {key for waiting in group for fact in waiting.facts if (key := state.needs_lookup(fact)) is not None}
        for key in keys:
            found = await asyncio.to_thread(self._look_up, key)
            if found is not None:
                state.remember(key, found)

    async def _fill_quotes(self, group: Sequence[_Waiting]) -> None:
        """A quoted message that the platform sent no copy of is quoted as the log has it (log-format 7.1)."""
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
        if not self._has_written:
            state.inherited_turn = state.open_turn
        return state

    def _filled_all(self, facts: tuple[Fact, ...], arriving: Mapping[MessageKey, MessageCreated]) -> tuple[Fact, ...]:
        return tuple(self._filled(fact, arriving) for fact in facts)

    def _filled(self, fact: Fact, arriving: Mapping[MessageKey, MessageCreated]) -> Fact:
        quote = fact.message.quote if isinstance(fact, Said) else None
        if not isinstance(fact, Said) or quote is None or not _is_bare(fact):
            return fact
        key = key_of(fact.message)._replace(message_id=quote.id)
        shown = arriving.get(key) or self._shown(key)
        if shown is None:
            return fact
        content = render(without_sources(parse(shown.content)))
        quote = changed(quote, content=content, user=quote.user or shown.user)
        return replace(fact, message=changed(fact.message, quote=quote))

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
