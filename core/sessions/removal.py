"""The removal of one session: whoever works in it stops, then its rows go, then its folder (sessions.md 3.3).

That it was decided stands in ``.store/removing/<session id>`` from before the first row goes until the folder is gone.
So a kill anywhere in between is finished by `Removal.finish` at the next start.
"""

import asyncio
import errno
import shutil
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import structlog

from core.errors import InvalidId, InvalidRequest, LogUnavailable, StoreUnavailable, UnknownSession
from core.files import make_folder, sync_folder, write_whole
from core.ids import SessionId, platform_of, session_id
from core.log.disk import unavailable
from core.sessions.directory import Sessions

TRIES: Final = 5
"""Somebody who had a file of it open may put one more into the folder while it is being emptied."""

logger = structlog.get_logger()

Leaving = Callable[[SessionId], Awaitable[None]]
"""Stop working in a session, and keep nothing of it."""


class Followers(Protocol):
    """Who follows the sessions' logs."""

    async def leave(self, session: SessionId) -> None:
        """Follow it no more; whoever is at work in it ends as at a stop."""
        ...

    def forget(self, session: SessionId) -> None:
        """It is gone."""
        ...

    def take_back(self, session: SessionId) -> None:
        """It stays: follow it again."""
        ...


class Removal:
    """Removes sessions of ours: ``cli-``, ``chat-`` and ``temp-``. Belongs to one event loop."""

    def __init__(
        self, folder: Path, sessions: Sessions, followers: Followers, leave: Sequence[Leaving], forget_rows: Leaving
    ) -> None:
        """``leave`` are told one after the other once nobody follows any more; ``forget_rows`` empties the database."""
        self._marks = folder / ".store" / "removing"
        self._sessions = sessions
        self._followers = followers
        self._leave = leave
        self._forget_rows = forget_rows
        self._under_way: dict[SessionId, asyncio.Task[bool]] = {}

    async def remove(self, session: SessionId) -> None:
        """Remove a session with all that is known of it; when this returns nothing of it is left.

        A turn that runs is aborted as at a stop: what the runtime answers to it later is not heard. Open confirmations
        of it are withdrawn: the runtime is told ``denied`` and their prompts are closed, if that works within 2 s.
        Whoever appends to it from then on is told `UnknownSession`, and who follows it comes to its end.

        Raises `InvalidRequest` for the chat of a platform, `UnknownSession`, and `StoreUnavailable` or `LogUnavailable`
        where nothing was removed and asking again may help. Somebody else's cancellation does not cut it short.
        """
        await self._removed(session, _always)

    async def remove_if(self, session: SessionId, still: Callable[[], bool]) -> bool:
        """As `remove`, if something holds still when nobody can write to it any more. ``still`` blocks."""
        return await self._removed(session, still)

    async def finish(self) -> None:
        """Bring to its end what a kill, or a database that refused, cut short. Before anybody follows the sessions."""
        for session in await asyncio.to_thread(self._marked):
            if session in self._under_way:
                continue
            try:
                await self._forget_rows(session)
                await asyncio.to_thread(self._remove_folder, session)
            except (StoreUnavailable, OSError) as error:
                logger.warning("removal_waits", session=session, reason=str(error))
            else:
                logger.info("removal_finished", session=session)

    async def stop(self) -> None:
        """Wait for what is under way."""
        if self._under_way:
            await asyncio.wait(list(self._under_way.values()))

    async def _removed(self, session: SessionId, still: Callable[[], bool]) -> bool:
        if platform_of(session) is not None:
            raise InvalidRequest("that session is a chat of a platform, and stays; only cli-, chat- and temp- can go")
        running = self._under_way.get(session)
        if running is None:
            if not self._sessions.exists(session):
                raise UnknownSession("there is no session of that id; `ishiki log stats` lists them")
            running = asyncio.create_task(self._work(session, still), name=f"remove {session}")
            self._under_way[session] = running
            running.add_done_callback(lambda _: self._under_way.pop(session, None))
        return await asyncio.shield(running)

    async def _work(self, session: SessionId, still: Callable[[], bool]) -> bool:
        stays = True
        await self._followers.leave(session)
        try:
            for leave in self._leave:
                await leave(session)
            await self._sessions.let_go(session)
            if not await asyncio.to_thread(still):
                return False
            await asyncio.to_thread(self._mark, session)
            try:
                await self._forget_rows(session)
            except StoreUnavailable:
                await asyncio.to_thread(self._unmark, session)
                raise
            stays = False
        except OSError as error:
            raise unavailable(session, error) from error
        finally:
            if stays:
                self._sessions.take_back(session)
                self._followers.take_back(session)
            else:
                self._sessions.bury(session)
                self._followers.forget(session)
        try:
            await asyncio.to_thread(self._remove_folder, session)
        except OSError as error:
            raise LogUnavailable(
                f"the folder of {session} could not be removed ({error.strerror}); the next start tries it again"
            ) from error
        return True

    # --- the disk: all of this blocks and raises `OSError` --------------------------------------------------------

    def _mark(self, session: SessionId) -> None:
        make_folder(self._marks)
        write_whole(self._marks / session, b"")
        sync_folder(self._marks)
        sync_folder(self._marks.parent)

    def _unmark(self, session: SessionId) -> None:
        (self._marks / session).unlink(missing_ok=True)
        sync_folder(self._marks)

    def _marked(self) -> list[SessionId]:
        found: list[SessionId] = []
        if self._marks.is_dir():
            for mark in self._marks.iterdir():
                with suppress(InvalidId):
                    found.append(session_id(mark.name))
        return found

    def _remove_folder(self, session: SessionId) -> None:
        folder = self._sessions.folder(session)
        for left in reversed(range(TRIES)):
            try:
                shutil.rmtree(folder)
            except FileNotFoundError:
                if not folder.exists():
                    break
            except OSError as error:
                if error.errno != errno.ENOTEMPTY or not left:
                    raise
            else:
                break
        sync_folder(folder.parent)
        self._unmark(session)


def _always() -> bool:
    return True
