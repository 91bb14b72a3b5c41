"""Sessions that do not stay: ``temp-``, when nothing was done in them for a while (sessions.md 3.3)."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Final

import structlog

from core.errors import IshikiError
from core.ids import SessionId, prefix_of
from core.sessions.directory import Sessions
from core.sessions.removal import Removal

IDLE_SECONDS: Final = 1800.0
EVERY_SECONDS: Final = 1800.0

logger = structlog.get_logger()

Live = Callable[[], Awaitable[Collection[SessionId]]]
"""The sessions in which a turn runs or is queued."""
Asked = Callable[[SessionId], bool]
"""Whether anybody is asked something there that is not settled."""


class Reaper:
    """Removes idle ``temp-`` sessions, at the start and from then on; of every other kind never one."""

    def __init__(
        self,
        sessions: Sessions,
        removal: Removal,
        live: Live,
        asked: Asked,
        *,
        idle: float = IDLE_SECONDS,
        every: float = EVERY_SECONDS,
    ) -> None:
        """``idle`` is how long nothing may have changed in the folder, ``every`` the time between rounds. Seconds."""
        self._sessions = sessions
        self._removal = removal
        self._live = live
        self._asked = asked
        self._idle = idle
        self._every = every

    async def run(self) -> None:
        """Until cancelled. A round that fails is shown, and what it left is looked at in the next."""
        while True:
            try:
                await self.round()
            except (IshikiError, OSError) as error:
                logger.warning("temp_sessions_wait", reason=str(error), again_in=self._every)
            await asyncio.sleep(self._every)

    async def round(self) -> list[SessionId]:
        """Look once. Returns which sessions were removed."""
        await self._removal.finish()
        gone: list[SessionId] = []
        live = await self._live()
        for session in await asyncio.to_thread(lambda: [*filter(self._is_idle, self._temporary())]):
            if session in live or self._asked(session):
                continue
            try:
                if await self._removal.remove_if(session, lambda session=session: self._is_idle(session)):
                    gone.append(session)
            except IshikiError as error:
                logger.warning("temp_session_stays", session=session, reason=str(error))
        if gone:
            logger.info("temp_sessions_removed", sessions=len(gone))
        return gone

    def _temporary(self) -> list[SessionId]:
        return [session for session in self._sessions.ids() if prefix_of(session) == "temp"]

    def _is_idle(self, session: SessionId) -> bool:
        try:
            return time.time() - newest_change(self._sessions.folder(session)) > self._idle
        except OSError:
            return False  # it is going, or cannot be looked at


def newest_change(folder: Path) -> float:
    """When anything in a folder, or below it, or the folder itself was last modified. Unix seconds. Blocks.

    Raises `OSError`. What goes while this looks does not count, and links are not followed.
    """
    newest = folder.stat().st_mtime
    folders = [os.fspath(folder)]
    while folders:
        with os.scandir(folders.pop()) as found:
            for entry in found:
                try:
                    newest = max(newest, entry.stat(follow_symlinks=False).st_mtime)
                except FileNotFoundError:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
    return newest
