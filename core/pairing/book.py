"""Which chats are paired, and which codes are open: the tables ``pairing`` and ``paired`` of history.db.

A damaged database starts empty (sessions.md 2.8): nobody is let in then who was not admitted anew.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from core.archive.store import Store
from core.clock import now_ms
from core.content import for_terminal
from core.errors import CodeRefused
from core.ids import ChannelId, Platform, SessionId, channel_of, new_uuid, platform_of
from core.pairing.codes import Codes, Knock, OpenCode, read_code

MOST_WRONG: Final = 5
"""Wrong codes within `WRONG_MS`, after which none is taken for so long."""
WRONG_MS: Final = 60_000
MOST_NAME: Final = 100
"""Characters of a title or name that are kept."""

_WRONG: Final = "pairing:wrong:"
"""What the keys of wrong codes in ``live`` begin with: kept there, the limit holds for commands of their own too."""

_NAME: Final = (
    "INSERT INTO session (session_id, title, created_at) VALUES (?, ?, ?) "
    "ON CONFLICT (session_id) DO UPDATE SET title = excluded.title WHERE title = ''"
)
"""What the chat is called until it says something."""

Welcomed = Callable[[OpenCode], None]


class Book:
    """Answers from memory; on disk when a call that writes returns. Raises `StoreUnavailable` where it cannot be."""

    def __init__(self, store: Store, paired: Iterable[tuple[str, int]] = (), codes: Iterable[OpenCode] = ()) -> None:
        self._store = store
        self._codes = Codes(codes)
        self._paired: defaultdict[str | None, dict[ChannelId, int]] = defaultdict(dict)
        self._listeners: list[Welcomed] = []
        for session, since in paired:
            self._enter(SessionId(session), since)

    @classmethod
    async def load(cls, store: Store) -> "Book":
        def read(database: sqlite3.Connection) -> Book:
            paired = database.execute("SELECT session_id, paired_at FROM paired").fetchall()
            codes = database.execute("SELECT * FROM pairing WHERE expires_at > ?", (now_ms(),)).fetchall()
            return cls(store, paired, [OpenCode(*code) for code in codes])

        return await store.run(read)

    def paired_on(self, platform: Platform) -> Mapping[ChannelId, int]:
        """The channels and chats of a platform that are paired, and since when in ms. It changes with the book."""
        return self._paired[platform]

    def listen(self, listener: Welcomed) -> None:
        """Have somebody told when a chat was admitted."""
        self._listeners.append(listener)

    def has_room(self, platform: Platform, session: SessionId) -> bool:
        """Whether a chat that asks now would be told a code."""
        return self._codes.has_room(platform, session, now_ms())

    def open_codes(self) -> Iterator[OpenCode]:
        """The codes that are open now."""
        return self._codes.open_at(now_ms())

    def asks(self, session: SessionId) -> bool:
        """Whether a code is open for that chat."""
        return any(code.session == session for code in self.open_codes())

    def offer(self, knock: Knock) -> OpenCode | None:
        """A new code for a chat, open from now on; None where no answer is due. It is on disk once it was `keep`ed."""
        return self._codes.offer(
            knock._replace(title=for_terminal(knock.title)[:MOST_NAME], name=for_terminal(knock.name)[:MOST_NAME]),
            now_ms(),
        )

    async def keep(self, code: OpenCode) -> None:
        """Write an offered code; where that fails it is open no longer."""
        try:
            await self._write(
                ("DELETE FROM pairing WHERE expires_at <= ?", (code.created_at,)),
                ("INSERT OR REPLACE INTO pairing VALUES (?, ?, ?, ?, ?, ?, ?, ?)", code),
            )
        except BaseException:
            self._codes.remove(code.session)
            raise

    async def admit(self, text: str) -> OpenCode:
        """Let the chat in whose code that is. Raises `CodeRefused`; after too many wrong ones also for a right one."""
        now = now_ms()
        code = read_code(text)
        found = None if code is None else self._codes.find(code, now)
        await self._store.run(lambda database: _admit(database, found, now))
        if found is None:
            raise CodeRefused("no open code is like that; `ishiki pair` lists those that are open")
        self._codes.remove(found.session)
        self._enter(found.session, now)
        for listener in self._listeners:
            listener(found)
        return found

    async def revoke(self, session: SessionId) -> bool:
        """Let a chat in no longer, and forget its code. False: it had neither."""
        paired = self._paired[platform_of(session)]
        channel = channel_of(session)
        if channel not in paired and not self.asks(session):
            return False
        await self._write(
            ("DELETE FROM paired WHERE session_id = ?", (session,)),
            ("DELETE FROM pairing WHERE session_id = ?", (session,)),
        )
        paired.pop(channel, None)
        self._codes.remove(session)
        return True

    async def move(self, old: SessionId, new: SessionId) -> None:
        """A chat goes on as another one (sessions.md 3.1); again is no error."""
        since = self._paired[platform_of(old)].get(channel_of(old))
        if since is None and not self.asks(old):
            return
        await self._write(
            ("UPDATE OR IGNORE paired SET session_id = ? WHERE session_id = ?", (new, old)),
            ("UPDATE OR IGNORE pairing SET session_id = ? WHERE session_id = ?", (new, old)),
            ("DELETE FROM paired WHERE session_id = ?", (old,)),
            ("DELETE FROM pairing WHERE session_id = ?", (old,)),
        )
        self._codes.move(old, new)
        if since is not None:
            self._paired[platform_of(old)].pop(channel_of(old), None)
            self._paired[platform_of(new)].setdefault(channel_of(new), since)

    def _enter(self, session: SessionId, since: int) -> None:
        self._paired[platform_of(session)][channel_of(session)] = since

    async def _write(self, *steps: tuple[str, tuple[object, ...]]) -> None:
        def write(database: sqlite3.Connection) -> None:
            with database:
                for statement, values in steps:
                    database.execute(statement, values)

        await self._store.run(write)


def _admit(database: sqlite3.Connection, found: OpenCode | None, now: int) -> None:
    """Write down who was let in, or that a code was wrong. Raises `CodeRefused` while too many were."""
    pattern = f"{_WRONG}*"
    select = "SELECT count(*), max(expires_at) FROM live WHERE key GLOB ? AND expires_at > ?"
    with database:
        wrong, until = database.execute(select, (pattern, now)).fetchone()
        if wrong >= MOST_WRONG:
            seconds = max(1, (until - now + 999) // 1000)
            raise CodeRefused(f"{MOST_WRONG} wrong codes were tried within a minute; try again in {seconds} s")
        if found is not None:
            database.execute("DELETE FROM pairing WHERE code = ?", (found.code,))
            database.execute(_NAME, (found.session, found.title, now))
            database.execute(
                "INSERT OR REPLACE INTO paired VALUES (?, ?, ?)", (found.session, found.platform, now)
            )  # fmt: skip
            return
        database.execute("DELETE FROM live WHERE key GLOB ? AND expires_at <= ?", (pattern, now))
        database.execute("INSERT INTO live VALUES (?, ?)", (f"{_WRONG}{new_uuid()}", now + WRONG_MS))
        if wrong + 1 >= MOST_WRONG:
            database.execute("UPDATE live SET expires_at = ? WHERE key GLOB ?", (now + WRONG_MS, pattern))
