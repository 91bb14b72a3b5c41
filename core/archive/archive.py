"""Follower: what was said and done goes into history.db, for all sessions together (sessions.md section 2).

One task gathers what was appended and writes it many lines at a time, each time with the receipts for it in the same
transaction: killed anywhere, it goes on from there, and no line counts twice. Where more comes than it writes, it
forgets what it gathered and reads the logs instead.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final

import structlog

from core.archive.rows import Batch, rows_of
from core.archive.shelf import NAME, Piece, put
from core.archive.store import Store
from core.errors import IshikiError
from core.ids import EntryId, SessionId
from core.sessions.directory import Sessions
from core.sessions.reading import Recorded
from core.sessions.receipts import Receipt
from core.sessions.session import Session

GATHERED: Final = 0.06
"""Seconds in which lines gather before they are written together."""
MOST_TOGETHER: Final = 2_000
"""Lines of one transaction. Whoever else wants the database waits as long as one takes."""
MOST_GATHERED: Final = 8 * MOST_TOGETHER
"""Lines kept in memory."""
MOST_READ_TOGETHER: Final = 64
"""Logs that are read for one transaction, where they are short."""
BUSY: Final = 800
"""Lines a second from which on recording them goes first: the archive then takes a ninth of the time, and reads the
logs once it is quiet."""
RESTS: Final = 8
LONGEST_REST: Final = 4.0
LONGEST_PAUSE: Final = 60.0

logger = structlog.get_logger()


class Archive:
    """Fills history.db. Belongs to one event loop."""

    def __init__(self, store: Store, sessions: Sessions, *, after: float = 0.0) -> None:
        """``after``: seconds for which a start is left alone, before it is looked for what an earlier run left."""
        self._store = store
        self._sessions = sessions
        self._after = after
        self._fresh: dict[SessionId, list[Recorded]] = {}
        self._gathered = 0
        self._arrived = 0
        self._behind: dict[SessionId, None] = {}
        self._doubted: set[SessionId] = set()
        """Sessions whose log may have changed since the receipt was left, as by a repair."""
        self._wanted = asyncio.Event()
        self._level = asyncio.Event()
        self._writing = asyncio.Lock()
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Follow what is appended from now on, and take up what an earlier run left undone."""
        self._sessions.listen(self._appended)
        self._task = asyncio.create_task(self._run(), name=NAME)

    async def stop(self, within: float = 2.0) -> None:
        """Write what was gathered, if that takes no longer; the rest is read from the logs by the next start."""
        if self._task is None:
            return
        self._stopping.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self.level()
        self._task.cancel()
        await asyncio.wait([self._task])

    async def level(self) -> None:
        """Return when all that was appended before can be found."""
        await self._level.wait()

    async def leave(self, session: SessionId) -> None:
        """Return when nothing of a session is being written; it is about to be removed."""
        async with self._writing:
            self._gathered -= len(self._fresh.pop(session, ()))
            self._behind.pop(session, None)

    async def _look_back(self) -> None:
        """Find what an earlier run left undone."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._after):
                await self._stopping.wait()
        unread = await asyncio.to_thread(self._unread)
        self._behind |= dict.fromkeys(unread)
        self._doubted.update(unread)

    def _unread(self) -> list[SessionId]:
        """Which logs are longer, or shorter, than what was read of them. Blocks."""
        return [session for session, size in self._sessions.sizes() if self._position(session) != size]

    def _position(self, session: SessionId) -> int:
        receipt = self._store.get(NAME, session)
        return receipt.position if receipt is not None else 0

    def _appended(self, session: Session, added: Sequence[Recorded]) -> None:
        self._arrived += len(added)
        if self._gathered < MOST_GATHERED:
            self._fresh.setdefault(session.id, []).extend(added)
            self._gathered += len(added)
        else:
            self._behind[session.id] = None
        self._want()

    def _want(self) -> None:
        if self._fresh or self._behind:
            self._wanted.set()
            self._level.clear()
        else:
            self._level.set()

    async def _run(self) -> None:
        await self._look_back()
        pause = 1.0
        while True:
            self._want()
            await self._wanted.wait()
            while self._fresh or self._behind:
                taken: dict[SessionId, list[Recorded]] = {}
                if not self._behind and self._gathered < MOST_TOGETHER:
                    await asyncio.sleep(GATHERED)
                began, arrived = time.monotonic(), self._arrived
                try:
                    async with self._writing:
                        taken = self._take()
                        await self._write(taken)
                    pause = 1.0
                    took = time.monotonic() - began
                    if self._arrived - arrived > BUSY * took:
                        await self._rest(min(took * RESTS, LONGEST_REST))
                except Exception as error:
                    self._behind |= dict.fromkeys(taken)
                    if isinstance(error, OSError | IshikiError):
                        logger.warning("archive_waits", reason=str(error), again_in=pause)
                    else:
                        logger.exception("archive_failed", exc_info=error)
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, LONGEST_PAUSE)
            self._wanted.clear()

    async def _rest(self, seconds: float) -> None:
        """Leave the processor to those who record, as long as they are busy."""
        over = time.monotonic() + seconds
        while time.monotonic() < over:
            arrived = self._arrived
            await asyncio.sleep(GATHERED)
            if self._arrived - arrived < BUSY * GATHERED:
                return

    def _take(self) -> dict[SessionId, list[Recorded]]:
        """Some of what is to be done; no lines where they are to be read."""
        taken: dict[SessionId, list[Recorded]] = {}
        count = 0
        while self._fresh and count < MOST_TOGETHER:
            session = next(iter(self._fresh))
            lines = self._fresh.pop(session)
            taken[session], rest = lines[:MOST_TOGETHER], lines[MOST_TOGETHER:]
            count += len(taken[session])
            if rest:
                self._fresh[session] = rest
                break
        self._gathered -= count
        if count < MOST_TOGETHER:
            for session in list(self._behind)[:MOST_READ_TOGETHER]:
                del self._behind[session]
                taken[session] = []  # its log holds more than what was gathered
        return taken

    async def _write(self, taken: dict[SessionId, list[Recorded]]) -> None:
        receipts = {session: self._store.get(NAME, session) for session in taken}
        pieces = await asyncio.to_thread(self._read_all, taken, receipts)
        await self._store.run(partial(put, pieces=pieces))
        for piece in pieces:
            if piece.receipt is not None:
                self._store.note(NAME, piece.batch.session, piece.receipt)
        done = {piece.batch.session for piece in pieces}
        self._doubted -= done
        self._behind |= {session: None for session in taken if session not in done}
        self._behind |= {piece.batch.session: None for piece in pieces if piece.more}

    def _read_all(
        self, taken: dict[SessionId, list[Recorded]], receipts: dict[SessionId, Receipt | None]
    ) -> list[Piece]:
        """What the lines make, as far as one transaction takes them. Blocks."""
        pieces: list[Piece] = []
        count = 0
        for session, lines in taken.items():
            if count >= MOST_TOGETHER:
                break
            try:
                pieces.append(self._read(session, lines, receipts[session]))
            except OSError as error:
                logger.warning("log_unreadable", session=session, reason=error.strerror, cure="mend what stands there")
                pieces.append(Piece(Batch(session), None))
            count += pieces[-1].lines
        return pieces

    def _read(self, session: SessionId, lines: list[Recorded], receipt: Receipt | None) -> Piece:
        """What some lines of a session make: of those at hand where they follow on, else as its log has them."""
        if not self._sessions.exists(session):  # it was removed meanwhile
            return Piece(Batch(session), None)
        reading = self._sessions.reading(session)
        start = receipt.position if receipt is not None else 0
        afresh = False
        if session in self._doubted and receipt is not None and reading.resume_now(receipt) != start:
            start, afresh = 0, True
        if lines and not afresh and lines[0].start == start:
            end, last = lines[-1].end, lines[-1]
        else:
            lines, end = reading.read_chunk(start)
            last = lines[-1] if lines else None
        if last is not None:
            receipt = Receipt(last.entry.id, end)
        elif afresh or end != start:  # nothing but lines that do not parse
            receipt = Receipt(receipt.entry if receipt is not None and not afresh else EntryId("-"), end)
        return Piece(rows_of(session, lines, reading), receipt, len(lines), afresh, more=end < reading.size)
