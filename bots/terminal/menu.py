"""Which sessions the menu lists, under which tabs and in which order (sessions.md section 5). Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from core.ids import Prefix, SessionId, prefix_of

ALL: Final = "all"
_ORDER: Final[tuple[Prefix, ...]] = ("cli", "tg", "dc", "temp", "chat")
_UNLISTED: Final = "temp"
_TITLES: Final = {ALL: "All", "cli": "Terminal", "tg": "Telegram", "dc": "Discord", "chat": "Web"}


class Row(NamedTuple):
    """One session. ``name`` comes from a chat and may be empty; ``last_at`` in Unix ms, 0 where nothing was said."""

    session: SessionId
    name: str = ""
    last_at: int = 0
    open: int = 0
    """Confirmations that are asked in its chat and not answered."""

    @property
    def display(self) -> str:
        """Its name, or what is enough of its id to know it by."""
        return self.name or short(self.session)


def is_listed(session: SessionId) -> bool:
    return prefix_of(session) != _UNLISTED


def tabs(rows: Iterable[Row]) -> list[str]:
    """`ALL` and one for each prefix; none where one prefix is all there is."""
    found = {prefix_of(row.session) for row in rows}
    return [ALL, *(prefix for prefix in _ORDER if prefix in found)] if len(found) > 1 else []


def title(tab: str) -> str:
    return _TITLES.get(tab, tab)


def listed(rows: Iterable[Row], tab: str, current: SessionId | None) -> list[Row]:
    """The rows of a tab: the current session first, then by prefix in the order of the tabs, then by id."""
    shown = (row for row in rows if tab == ALL or prefix_of(row.session) == tab)
    return sorted(shown, key=lambda row: (row.session != current, _ORDER.index(prefix_of(row.session)), row.session))


def newest(rows: Sequence[Row]) -> SessionId | None:
    """Where something was said last."""
    return max(rows, key=lambda row: row.last_at).session if rows else None


def short(session: SessionId) -> str:
    """An id with the first digits of its UUID; those of platforms whole, as they are numbers that people know."""
    head, dash, rest = session.partition("-")
    return f"{head}{dash}{rest[:8]}" if head in {"cli", "chat", "temp"} else session


def when(at: int, now: int) -> str:
    """A moment in ms, in local time and at most six columns: the time today, else the day, else the month."""
    if not at:
        return ""
    try:
        moment, today = (datetime.fromtimestamp(each / 1000).astimezone() for each in (at, now))
    except (ValueError, OverflowError, OSError):
        return "?"
    if moment.date() == today.date():
        return f"{moment:%H:%M}"
    return f"{moment:%d %b}" if moment.year == today.year else f"{moment:%m/%y}"
