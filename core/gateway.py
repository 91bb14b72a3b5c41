"""Tends the sessions: whoever follows the log is run when it grew, each by itself, and run again when it failed."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final, Protocol, cast

import structlog

from core.entries import AnyEntry
from core.errors import IshikiError
from core.ids import SessionId
from core.sessions.directory import Sessions
from core.sessions.reading import Recorded
from core.sessions.receipts import Receipt, Receipts
from core.sessions.session import Session

LONGEST_PAUSE: Final = 60.0

logger = structlog.get_logger()


class Follower(Protocol):
    """One short loop over a session's log: take the next thing it calls for, do it, leave a receipt.

    Killed anywhere, it goes on from the receipt; so every act is at least once.
    """

    @property
    def name(self) -> str:
        """Under which its receipts are kept."""
        ...

    def cares_for(self, entry: AnyEntry) -> bool:
        """Whether an entry calls for anything. Where none does, the receipt is moved on without a run."""
        ...

    async def catch_up(self, session: Session) -> None:
        """Do all that the log calls for now. What it raises is shown, and it is called again after a pause."""
        ...


class Gateway:
    """Runs followers over all sessions. A session that is caught up costs no task."""

    def __init__(self, sessions: Sessions, followers: Sequence[Follower], receipts: Receipts) -> None:
        self._sessions = sessions
        self._followers = followers
        self._receipts = receipts
        self._running: dict[tuple[str, SessionId], asyncio.Task[None]] = {}
        self._again: set[tuple[str, SessionId]] = set()
        self._left: set[SessionId] = set()
        self._stopping = False

    async def start(self) -> None:
        """Follow what is appended from now on, and take up what an earlier run left undone."""
        self._sessions.listen(self._appended)
        for follower, session in await asyncio.to_thread(lambda: list(self._behind())):
            await self._place(follower, self._sessions.of(session), self._receipts.get(follower.name, session))
            self._run(follower, self._sessions.of(session))

    def _behind(self) -> Iterator[tuple[Follower, SessionId]]:
        """Who has something to do, and where. Blocks."""
        for session, size in self._sessions.sizes():
            for follower in self._followers:
                receipt = self._receipts.get(follower.name, session)
                if (receipt.position if receipt else 0) != size or (receipt and receipt.note):
                    yield follower, session

    async def _place(self, follower: Follower, session: Session, receipt: Receipt | None) -> None:
        """Put a receipt right whose line stands elsewhere by now, as after a repair: followers compare positions."""
        position = await session.resume_from(receipt)
        same = receipt == self._receipts.get(follower.name, session.id)  # else it has moved on meanwhile
        if receipt is not None and same and position != receipt.position:
            self._receipts.put(follower.name, session.id, receipt._replace(position=position))

    async def finish(self, within: float) -> None:
        """Begin nothing new, and give what is under way so many seconds."""
        self._stopping = True
        if self._running:
            await asyncio.wait(list(self._running.values()), timeout=within)

    async def stop(self) -> None:
        """End every follower where it stands; its receipt says where that is."""
        self._stopping = True
        await _end(list(self._running.values()))

    async def leave(self, session: SessionId) -> None:
        """Follow a session no more, as it is going to be removed: whoever is at work in it ends as at a stop."""
        self._left.add(session)
        await _end([task for (_, followed), task in self._running.items() if followed == session])

    def forget(self, session: SessionId) -> None:
        """A session that was left is gone."""
        self._left.discard(session)

    def take_back(self, session: SessionId) -> None:
        """Follow a session again that was left, but stays."""
        self._left.discard(session)
        for follower in self._followers:
            self._run(follower, self._sessions.of(session))

    def _appended(self, session: Session, added: Sequence[Recorded]) -> None:
        for follower in self._followers:
            if any(follower.cares_for(recorded.entry) for recorded in added):
                self._run(follower, session)
            elif (follower.name, session.id) not in self._running:
                self._move_on(follower, session, added)

    def _move_on(self, follower: Follower, session: Session, added: Sequence[Recorded]) -> None:
        """Nothing here for this follower: if it had read everything before, it has read this too."""
        receipt = self._receipts.get(follower.name, session.id)
        if (receipt.position if receipt else 0) == added[0].start:
            self._receipts.put(follower.name, session.id, Receipt(added[-1].entry.id, added[-1].end))

    def _run(self, follower: Follower, session: Session) -> None:
        key = (follower.name, session.id)
        if key in self._running:
            self._again.add(key)
        elif not self._stopping and session.id not in self._left:
            task = asyncio.create_task(self._tend(follower, session), name=f"{follower.name} {session.id}")
            self._running[key] = task

    async def _tend(self, follower: Follower, session: Session) -> None:
        key = (follower.name, session.id)
        pause = 1.0
        try:
            while True:
                self._again.discard(key)
                try:
                    await follower.catch_up(session)
                except Exception as error:
                    about = {"follower": follower.name, "session": session.id}
                    if (expected := _expected(error)) is not None:
                        logger.warning("follower_waits", **about, reason=str(expected), again_in=pause)
                    else:
                        logger.exception("follower_failed", **about, exc_info=error)
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, LONGEST_PAUSE)
                    continue
                pause = 1.0
                if key not in self._again or self._stopping:
                    return
        finally:
            del self._running[key]


async def _end(running: Sequence[asyncio.Task[None]]) -> None:
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running)


def _expected(error: BaseException) -> BaseException | None:
    """What a disk or a platform does that takes nothing now: this error, or the first of several that are all such."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        several = [_expected(one) for one in group.exceptions]
        return several[0] if all(several) else None
    return error if isinstance(error, OSError | IshikiError) else None
