"""The codes that are open: who asks to be let in, and where (contract section 9, "Ids, files, rights"). Pure."""

import re
import secrets
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from core.ids import MessageId, Platform, SessionId, ThreadId, UserId

LETTERS: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Without those that are taken for one another."""
LENGTH: Final = 8
VALID_MS: Final = 60 * 60 * 1000
MOST_OPEN: Final = 3
"""On one platform."""

_BLANKS: Final = re.compile(r"[\s-]+")
_CODE: Final = re.compile(f"[{LETTERS}]{{{LENGTH}}}")


class Knock(NamedTuple):
    """Somebody whose chat is not let in speaks to the bot. ``title`` and ``name`` are hostile."""

    platform: Platform
    session: SessionId
    title: str
    user: UserId
    name: str
    message: MessageId
    thread: ThreadId | None = None


class OpenCode(NamedTuple):
    """A code that nobody has used yet, and who was told it. Times in ms."""

    code: str
    platform: str
    session: SessionId
    title: str
    user: str
    user_name: str
    created_at: int
    expires_at: int


class Codes:
    """Those that are open: one per chat, three per platform, each for an hour."""

    def __init__(self, kept: Iterable[OpenCode] = ()) -> None:
        self._open = {code.session: code for code in kept}

    def open_at(self, now: int) -> Iterator[OpenCode]:
        return (code for code in self._open.values() if now < code.expires_at)

    def has_room(self, platform: str, session: SessionId, now: int) -> bool:
        """Whether a chat that asks now would be told a code."""
        known = self._open.get(session)
        if known is not None and now < known.expires_at:
            return False
        return sum(code.platform == platform for code in self.open_at(now)) < MOST_OPEN

    def offer(self, knock: Knock, now: int) -> OpenCode | None:
        """Open a new code for the chat; None where no answer is due. Those whose time is over are forgotten."""
        if not self.has_room(knock.platform, knock.session, now):
            return None
        self._open = {code.session: code for code in self.open_at(now)}
        made = OpenCode(
            new_code(), knock.platform, knock.session, knock.title, knock.user, knock.name, now, now + VALID_MS
        )
        self._open[made.session] = made
        return made

    def find(self, code: str, now: int) -> OpenCode | None:
        """The open one of these letters."""
        return next((one for one in self.open_at(now) if secrets.compare_digest(one.code, code)), None)

    def remove(self, session: SessionId) -> OpenCode | None:
        """Have no code open for a chat. Returns the one that was."""
        return self._open.pop(session, None)

    def move(self, old: SessionId, new: SessionId) -> OpenCode | None:
        """Have the code of a chat stand for the one that it goes on in, which may have one of its own. Returns it."""
        code = self._open.pop(old, None)
        return None if code is None else self._open.setdefault(new, code._replace(session=new))


def new_code() -> str:
    """Eight letters that nobody can guess."""
    return "".join(secrets.choice(LETTERS) for _ in range(LENGTH))


def read_code(text: str) -> str | None:
    """A code as somebody types it: in any case, with blanks or dashes. None: it is none."""
    code = _BLANKS.sub("", text).upper()
    return code if _CODE.fullmatch(code) else None
