"""In which order the menu shows sessions, and under which tabs (sessions.md section 5). Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

from core.ids import SessionId, prefix_of

ALL: Final = "all"
_ORDER: Final = {"cli": 0, "tg": 1, "dc": 2, "chat": 4}
"""What has another prefix stands before ``chat``."""


def listed(sessions: Iterable[SessionId], current: SessionId | None = None) -> list[SessionId]:
    """All but those that do not stay: the current one first, then by prefix, then by id."""
    staying = (session for session in sessions if prefix_of(session) != "temp")
    return sorted(staying, key=lambda session: (session != current, _place(session), session))


def tabs(sessions: Sequence[SessionId]) -> list[str]:
    """`ALL` and each prefix, where there are at least two; else none."""
    prefixes = {prefix_of(session): _place(session) for session in sessions}
    return [ALL, *sorted(prefixes, key=lambda prefix: prefixes[prefix])] if len(prefixes) > 1 else []


def under(tab: str, sessions: Iterable[SessionId]) -> list[SessionId]:
    """Those that a tab shows, in their order."""
    return [session for session in sessions if tab in {ALL, prefix_of(session)}]


def _place(session: SessionId) -> int:
    return _ORDER.get(prefix_of(session), 3)
