"""The menu of sessions on the screen: only the rows in sight are drawn, however many there are."""

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from bots.terminal.menu import Row, when
from core.clock import now_ms
from core.content import for_terminal
from core.ids import SessionId


class SessionList(ScrollView, can_focus=True):
    """The cursor stays on its session while rows come and go around it."""

    DEFAULT_CSS = "SessionList { scrollbar-size-vertical: 1; overflow-x: hidden; }"
    BINDINGS = [  # noqa: RUF012 - textual's own way
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "move(-10)", show=False),
        Binding("pagedown", "move(10)", show=False),
        Binding("home", "move(-1000000)", show=False),
        Binding("end", "move(1000000)", show=False),
        Binding("enter", "open", "Open"),
    ]

    class Opened(Message):
        """Somebody wants to read that session."""

        def __init__(self, session: SessionId) -> None:
            super().__init__()
            self.session = session

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - textual's name for it
        super().__init__(id=id)
        self._rows: Sequence[Row] = ()
        self._current: SessionId | None = None
        self._cursor = 0

    def show(self, rows: Sequence[Row], current: SessionId | None) -> None:
        """Show these rows; ``current`` is marked."""
        at = self.session
        moved = current != self._current
        self._rows, self._current = rows, current
        places = {row.session: place for place, row in enumerate(rows)}
        wanted = current if moved else at
        self._cursor = places.get(wanted, min(self._cursor, max(len(rows) - 1, 0))) if wanted is not None else 0
        self.virtual_size = Size(self.size.width, len(rows))
        if moved:
            self._see_cursor()
        self.refresh()

    @property
    def session(self) -> SessionId | None:
        """Where the cursor stands."""
        return self._rows[self._cursor].session if self._cursor < len(self._rows) else None

    def action_move(self, by: int) -> None:
        if self._rows:
            self._cursor = min(max(self._cursor + by, 0), len(self._rows) - 1)
            self._see_cursor()
            self.refresh()

    def action_open(self) -> None:
        if self.session is not None:
            self.post_message(self.Opened(self.session))

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        number = self.scroll_offset.y + y
        if not self._rows and y == 0:
            hint = Segment(_cut(" no session yet; n makes one", width), Style(dim=True))
            return Strip([hint]).adjust_cell_length(width).apply_style(self.rich_style)
        if number >= len(self._rows):
            return Strip.blank(width, self.rich_style)
        row = self._rows[number]
        style = Style(bold=row.session == self._current)
        if number == self._cursor:
            style += Style(reverse=True) if self.has_focus else Style(underline=True)
        mark = "▶ " if row.session == self._current else "  "
        right = f" {row.open}?" if row.open else ""
        time = f" {when(row.last_at, now_ms()):>6}"
        room = max(width - cell_len(mark) - len(right) - len(time), 1)
        name = _cut(for_terminal(row.display), room)
        segments = [
            Segment(mark + name),
            Segment(right, Style(bold=True, color="yellow")),
            Segment(time, Style(dim=True)),
        ]
        return Strip(segments).adjust_cell_length(width).apply_style(style).apply_style(self.rich_style)

    def _see_cursor(self) -> None:
        self.scroll_to_region(Region(0, self._cursor, 1, 1), animate=False, immediate=True)


def _cut(text: str, width: int) -> str:
    """A text in exactly so many columns, with an ellipsis where it is longer."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    return set_cell_size(f"{set_cell_size(text, width - 1).rstrip()}…", width)
