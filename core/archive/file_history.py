"""Versions of files that tools changed: the table ``file_history`` (sessions.md 2.4)."""

import asyncio
import hashlib
import sqlite3
import time
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Final, Literal, NamedTuple

from core.archive.store import Store
from core.files import make_folder, sync_folder, write_whole
from core.ids import SessionId, new_uuid

Action = Literal["create", "modify", "delete"]
MOST_INSIDE: Final = 1024 * 1024
"""Bytes of a version that is kept in the table; a longer one is a file of its own."""
KEPT_FILES_SECONDS: Final = 30 * 86_400
NEWEST: Final = 32
KEPT_NS: Final = 7 * 86_400 * 1_000_000_000


class Version(NamedTuple):
    """``content`` None: too long, and its file is gone by now. ``changed_at`` in ns."""

    action: str
    content: bytes | None
    hash: str
    size: int
    session_id: str
    task_id: str
    tool: str
    changed_at: int


class FileHistory:
    """On disk when a call returns. Raises `StoreUnavailable`, and `OSError` for a long version."""

    def __init__(self, store: Store, folder: Path) -> None:
        """``folder``: ``.store/temp`` of the data folder."""
        self._store = store
        self._folder = folder

    async def keep(
        self, path: PurePath, content: bytes, action: Action, *, session: SessionId, task: str = "", tool: str = ""
    ) -> bool:
        """Keep a file as it was before a change; whether that was done: of a task's versions the first one counts."""
        aside = ""
        if len(content) > MOST_INSIDE:
            aside = f"{new_uuid()}.version"
            await asyncio.to_thread(self._put_aside, aside, content)
        row = (
            str(path.parent), path.name, action, None if aside else content, hashlib.sha256(content).hexdigest(),
            len(content), bool(aside), aside, session, task, tool, time.time_ns(),
        )  # fmt: skip

        def write(database: sqlite3.Connection) -> bool:
            with database:
                return database.execute(_INSERT, row).rowcount > 0

        kept = await self._store.run(write)
        if aside and not kept:
            await asyncio.to_thread((self._folder / aside).unlink, missing_ok=True)
        return kept

    async def versions(self, path: PurePath) -> list[Version]:
        """What is kept of a file, newest first."""
        select = (
            "SELECT action, content, hash, size, session_id, task_id, tool, changed_at, trash_path FROM file_history "
            "WHERE dir = ? AND name = ? ORDER BY changed_at DESC, id DESC"
        )
        place = (str(path.parent), path.name)
        rows = await self._store.run(lambda database: database.execute(select, place).fetchall())
        return await asyncio.to_thread(lambda: [self._read(*row) for row in rows])

    async def clean(self) -> None:
        """Let go of what is beyond the newest 32 of its path and older than 7 days, and of long ones after 30 days."""
        before = time.time_ns() - KEPT_NS

        def remove(database: sqlite3.Connection) -> None:
            with database:
                database.execute(_CLEAN, (before, NEWEST))

        await self._store.run(remove)
        select = "SELECT trash_path FROM file_history WHERE trash_path <> ''"
        rows = await self._store.run(lambda database: database.execute(select).fetchall())
        await asyncio.to_thread(self._clear, {str(name) for (name,) in rows})

    # --- all of this blocks ---------------------------------------------------------------------------------------

    def _put_aside(self, name: str, content: bytes) -> None:
        make_folder(self._folder)
        write_whole(self._folder / name, content)
        sync_folder(self._folder)

    def _read(self, *row: object) -> Version:
        *kept, aside = row
        version = Version(*kept)  # pyright: ignore[reportArgumentType] - as the table has them
        if aside:
            with suppress(OSError):
                return version._replace(content=(self._folder / str(aside)).read_bytes())
        return version

    def _clear(self, wanted: set[str]) -> None:
        if not self._folder.is_dir():
            return
        oldest = time.time() - KEPT_FILES_SECONDS
        for path in self._folder.glob("*.version"):
            with suppress(OSError):
                if path.name not in wanted or path.stat().st_mtime < oldest:
                    path.unlink()


_INSERT: Final = (
    "INSERT OR IGNORE INTO file_history (dir, name, action, content, hash, size, truncated, trash_path, session_id, "
    "task_id, tool, changed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_CLEAN: Final = (
    "DELETE FROM file_history WHERE changed_at < ? AND id NOT IN (SELECT id FROM (SELECT id, row_number() OVER "
    "(PARTITION BY dir, name ORDER BY changed_at DESC, id DESC) AS place FROM file_history) WHERE place <= ?)"
)
