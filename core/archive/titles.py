"""What platforms call their chats, kept when it is new or changed: off the hot path, many in one write."""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from core.archive.profiles import Profiles, Title
from core.content import for_terminal
from core.errors import StoreUnavailable
from core.ids import SessionId

GATHERED: Final = 0.5
"""Seconds in which titles gather before they are written together."""
MOST_KNOWN: Final = 4096
"""Chats whose title is remembered; beyond that all are compared with the database again."""
MOST_TITLE: Final = 200
"""Characters."""

logger = structlog.get_logger()


class Titles:
    """Belongs to one event loop. A chat that is called what it was called before costs a look into a dictionary."""

    def __init__(self, profiles: Profiles, veil: Callable[[str], str] = str) -> None:
        """``veil`` hides what must not be shown: people may put it into a name."""
        self._profiles = profiles
        self._veil = veil
        self._known: dict[SessionId, Title] = {}
        self._unwritten: dict[SessionId, Title] = {}
        self._writing: asyncio.Task[None] | None = None

    def note(self, session: SessionId, title: Title) -> None:
        """A chat is called so. Returns at once, and never raises."""
        if self._known.get(session) == title or not title.text:
            return
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[session] = self._unwritten[session] = title
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_soon(), name="titles")

    async def close(self) -> None:
        """Write what is left."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)
        await self._write()

    async def _write_soon(self) -> None:
        await asyncio.sleep(GATHERED)
        self._writing = None
        await self._write()

    async def _write(self) -> None:
        writing, self._unwritten = self._unwritten, {}
        if not writing:
            return
        cleaned = {
            session: title._replace(text=for_terminal(self._veil(title.text))[:MOST_TITLE])
            for session, title in writing.items()
        }
        try:
            await self._profiles.entitle_all(cleaned)
        except (StoreUnavailable, asyncio.CancelledError) as error:
            for session in writing:  # told with the next message there
                self._known.pop(session, None)
            if isinstance(error, asyncio.CancelledError):
                raise
            logger.warning("titles_not_written", reason=str(error))
