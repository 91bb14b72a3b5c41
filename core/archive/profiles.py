"""What a session is called and how it is set up: the table ``session`` (sessions.md 2.1)."""

import re
import sqlite3
from collections.abc import Mapping
from typing import Final, NamedTuple

from core.archive.store import Store
from core.clock import now_ms
from core.errors import InvalidRequest, NameTaken
from core.ids import SessionId

_SELF_ID: Final = re.compile(r"[a-z0-9_-]{0,32}")
_SELECT: Final = (
    "SELECT session_id, self_id, name, title, role, rule, model, reasoning, created_at, last_at, successor, origin "
    "FROM session"
)
_TITLE: Final = ("title", "guild_id", "channel_id", "chat_id", "user_id", "business_id")
_SELECT_TITLE: Final = f"SELECT {', '.join(_TITLE)} FROM session WHERE session_id = ?"  # noqa: S608 - names of ours


class Profile(NamedTuple):
    """``name`` was set by hand, ``title`` is the platform's; ``self_id`` is an alias. Empty: not known or not set.

    ``created_at`` and ``last_at`` are in ms, 0 where nothing is known.
    """

    session_id: SessionId
    self_id: str = ""
    name: str = ""
    title: str = ""
    persona: str = ""
    model: str = "auto"
    reasoning: str = "medium"
    created_at: int = 0
    last_at: int = 0
    successor: str = ""
    origin: str = ""

    @property
    def display(self) -> str:
        """What people call it (sessions.md 3.1). A title comes from a chat: it is hostile."""
        return self.name or self.title or self.session_id


class Title(NamedTuple):
    """What a platform calls a chat, and its numbers there, empty where it has none of that kind."""

    text: str
    guild_id: str = ""
    channel_id: str = ""
    chat_id: str = ""
    user_id: str = ""
    business_id: str = ""


class Profiles:
    """On disk when a call that writes returns. Raises `StoreUnavailable`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def all(self) -> dict[SessionId, Profile]:
        rows = await self._store.run(lambda database: database.execute(_SELECT).fetchall())
        return {profile.session_id: profile for profile in map(_read, rows)}

    async def get(self, session: SessionId) -> Profile:
        """What is known of a session; a blank one where that is nothing."""
        return await self._store.run(lambda database: _one(database, session))

    async def set(
        self,
        session: SessionId,
        *,
        name: str | None = None,
        self_id: str | None = None,
        persona: str | None = None,
        model: str | None = None,
        reasoning: str | None = None,
    ) -> Profile:
        """Change what is given, and return what holds then.

        A persona is written to ``role`` and to ``rule`` (sessions.md 2.1). Raises `NameTaken` where another session
        has that ``self_id``, and `InvalidRequest` where it is none.
        """
        if self_id is not None and _SELF_ID.fullmatch(self_id) is None:
            raise InvalidRequest("self_id is at most 32 of a-z, 0-9, _ and -")
        given = {
            "name": name, "self_id": self_id, "role": persona, "rule": persona, "model": model, "reasoning": reasoning,
        }  # fmt: skip
        changed = {column: value for column, value in given.items() if value is not None}

        def write(database: sqlite3.Connection) -> Profile:
            with database:
                _put(database, session, changed)
            return _one(database, session)

        try:
            return await self._store.run(write, expected=sqlite3.IntegrityError)
        except sqlite3.IntegrityError as error:
            raise NameTaken("another session has that self_id; choose another one") from error

    async def entitle(
        self,
        session: SessionId,
        title: str,
        *,
        guild_id: str = "",
        channel_id: str = "",
        chat_id: str = "",
        user_id: str = "",
        business_id: str = "",
    ) -> None:
        """Keep what the platform calls a chat, and its numbers there. What is kept so already is not written."""
        await self.entitle_all({session: Title(title, guild_id, channel_id, chat_id, user_id, business_id)})

    async def entitle_all(self, titles: Mapping[SessionId, Title]) -> None:
        """The same for many, in one write."""

        def write(database: sqlite3.Connection) -> None:
            changed = [
                (session, title)
                for session, title in titles.items()
                if database.execute(_SELECT_TITLE, (session,)).fetchone() != title
            ]
            if not changed:
                return
            with database:
                for session, title in changed:
                    _put(database, session, dict(zip(_TITLE, title, strict=True)))

        await self._store.run(write)

    async def forget(self, session: SessionId) -> None:
        """Keep nothing of it, as when it was removed."""

        def write(database: sqlite3.Connection) -> None:
            with database:
                database.execute("DELETE FROM session WHERE session_id = ?", (session,))

        await self._store.run(write)


def _put(database: sqlite3.Connection, session: SessionId, changed: dict[str, str]) -> None:
    database.execute(
        "INSERT INTO session (session_id, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING", (session, now_ms())
    )
    if changed:
        columns = ", ".join(f"{column} = ?" for column in changed)
        statement = f"UPDATE session SET {columns} WHERE session_id = ?"  # noqa: S608 - names of ours
        database.execute(statement, (*changed.values(), session))


def _one(database: sqlite3.Connection, session: SessionId) -> Profile:
    row = database.execute(f"{_SELECT} WHERE session_id = ?", (session,)).fetchone()
    return Profile(session) if row is None else _read(row)


def _read(row: tuple[object, ...]) -> Profile:
    session, self_id, name, title, role, rule, model, reasoning, created, last, successor, origin = map(str, row)
    return Profile(
        SessionId(session), self_id, name, title, role or rule, model, reasoning, int(created), int(last), successor,
        origin,
    )  # fmt: skip
