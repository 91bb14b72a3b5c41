"""Names each new session folder in the output (sessions.md 3.4), whoever made it."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Final

import structlog

from core.archive.profiles import Profiles
from core.errors import InvalidId, StoreUnavailable
from core.ids import SessionId, session_id

NAMED_AFTER: Final = 0.2
"""Seconds until the name is read: whoever makes a folder may not have named it yet."""

logger = structlog.get_logger()

Tell = Callable[[SessionId, str], None]


def tell(session: SessionId, name: str) -> None:
    """One line in the output; ``name`` is empty where nothing is known."""
    logger.info("session_new", session=session, name=name)


class Watcher:
    """Tells of folders that appear in ``runtimes/`` from `run` on. Costs nothing while none does."""

    def __init__(
        self, runtimes: Path, profiles: Profiles, *, tell: Tell = tell, named_after: float = NAMED_AFTER
    ) -> None:
        self._runtimes = runtimes.resolve()  # as changes are told
        self._profiles = profiles
        self._tell = tell
        self._named_after = named_after
        self._known: set[str] = set()

    async def run(self) -> None:
        """Until cancelled."""
        async for made in self._made():
            await asyncio.sleep(self._named_after)
            for session in made:
                self._tell(session, await self._name(session))

    async def _made(self) -> AsyncIterator[list[SessionId]]:
        from watchfiles import (  # noqa: PLC0415 - a start does not wait for it
            Change,
            awatch,  # pyright: ignore[reportUnknownVariableType] - of one member, for trio, which is not installed
        )

        def is_new(change: Change, path: str) -> bool:
            return change is Change.added and os.path.dirname(path) == str(self._runtimes)  # noqa: PTH120 - each change

        self._known = set(await asyncio.to_thread(os.listdir, self._runtimes))
        async for changes in awatch(self._runtimes, watch_filter=is_new, recursive=False, step=50, debounce=200):
            names = {os.path.basename(path) for _, path in changes} - self._known  # noqa: PTH119 - as above
            self._known |= names
            if made := list(_sessions(names)):
                yield made

    async def _name(self, session: SessionId) -> str:
        try:
            profile = await self._profiles.get(session)
        except StoreUnavailable:
            return ""
        return profile.name or profile.title


def _sessions(names: Iterable[str]) -> Iterable[SessionId]:
    for name in sorted(names):
        try:
            yield session_id(name)
        except InvalidId:
            continue  # not ours: neither read nor deleted
