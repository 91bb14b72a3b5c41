"""The menu: every session that stays, under a tab for each kind, as they are now."""

from typing import ClassVar, Final, cast

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import DataTable, Footer, Static, Tab, Tabs

from bots.commands import NewSession
from bots.terminal.grouping import ALL, listed, tabs, under
from bots.terminal.house import House, Row
from bots.terminal.screen import HouseScreen
from bots.timeline import clock
from core.ids import SessionId

EVERY: Final = 2.0
"""Seconds between two looks at the folder."""
_NONE_YET: Final = """\
There is no session yet.

One appears here with the first message of a chat that is let in (see DISCORD_ALLOW and TELEGRAM_ALLOW, and
`ishiki pair`), or press n to make one for this terminal.
"""
_HEADS: Final = (" ", "name", "last activity", "asks", "session")
LONGEST_NAME: Final = 32
"""Terminal columns."""


class Menu(HouseScreen):
    """What there is. Enter opens a session."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Open", priority=True),
        Binding("left,shift+tab", "tab(-1)", "Tab ←", show=False, priority=True),
        Binding("right,tab", "tab(1)", "Next tab", priority=True),
        Binding("home", "edge(0)", show=False, priority=True),
        Binding("end", "edge(-1)", show=False, priority=True),
        Binding("a", "app.asks", "Questions"),
        Binding("n", "new", "New session"),
        Binding("q", "app.quit", "Quit"),
    ]

    def __init__(self, house: House) -> None:
        super().__init__(house)
        self.current: SessionId | None = None
        """The session that was open last: it comes first."""
        self._rows: dict[SessionId, Row] = {}
        self._tabs: list[str] = []
        self._tab = ALL
        self._shown: list[SessionId] = []

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        bar = Tabs(id="tabs")
        bar.display = False
        yield bar
        with Vertical():
            table: DataTable[Text] = DataTable(id="sessions", cursor_type="row", show_row_labels=False)
            yield table
            yield Static(_NONE_YET, id="none", markup=False)
        yield Footer()

    async def on_mount(self) -> None:
        for head in _HEADS:
            self._table.add_column(head, key=head)
        await self._look()
        self.set_interval(EVERY, self._look)

    async def on_screen_resume(self) -> None:
        await self._look(anew=True)

    @property
    def _table(self) -> "DataTable[Text]":
        return cast("DataTable[Text]", self.query_one("#sessions", DataTable))

    async def _look(self, *, anew: bool = False) -> None:
        rows = await self.read(self.house.rows)
        if rows is None:
            return
        before, self._rows = self._rows, rows
        ordered = listed(rows, self.current)
        wanted = tabs(ordered)
        if wanted != self._tabs:
            self._tabs = wanted
            self._tab = self._tab if self._tab in wanted else ALL
            bar = self.query_one(Tabs)
            await bar.clear()
            for tab in wanted:
                await bar.add_tab(Tab(tab, id=f"tab-{tab}"))
            bar.display = bool(wanted)
            if wanted:
                bar.active = f"tab-{self._tab}"
        self._show(under(self._tab, ordered), before, anew=anew)

    def _show(self, sessions: list[SessionId], before: dict[SessionId, Row], *, anew: bool) -> None:
        """Rows that are the same stay as they are: there may be thousands."""
        table = self._table
        if anew or sessions != self._shown:
            chosen = self._chosen
            table.clear()
            for session in sessions:
                table.add_row(*self._cells(session), key=session)
            self._shown = sessions
            if chosen is not None and chosen in sessions:
                table.move_cursor(row=sessions.index(chosen))
        else:
            for session in sessions:
                if before.get(session) != self._rows[session]:
                    for head, cell in zip(_HEADS, self._cells(session), strict=True):
                        table.update_cell(session, head, cell)
        table.display = bool(sessions)
        self.query_one("#none").display = not sessions
        waiting = sum(row.open for row in self._rows.values())
        asks = f" · {waiting} open question{'' if waiting == 1 else 's'}" if waiting else ""
        title = f"ishiki · {self.house.folder} · {len(sessions)} session{'' if len(sessions) == 1 else 's'}{asks}"
        self.query_one("#title", Static).update(Text(title))

    def _cells(self, session: SessionId) -> tuple[Text, ...]:
        row = self._rows[session]
        is_current = session == self.current
        name = Text(row.name, "bold" if is_current else "")
        name.truncate(LONGEST_NAME, overflow="ellipsis")
        return (
            Text("●" if is_current else ""),
            name,
            Text(clock(row.last_at)[:16] if row.last_at else "–", "dim"),
            Text(str(row.open) if row.open else "", "bold yellow"),
            Text(session, "dim"),
        )

    @property
    def _chosen(self) -> SessionId | None:
        place = self._table.cursor_row
        return self._shown[place] if 0 <= place < len(self._shown) else None

    def action_open(self) -> None:
        if (session := self._chosen) is not None:
            self.post_message(self.Opened(session))

    def on_data_table_row_selected(self) -> None:
        self.action_open()

    def action_edge(self, place: int) -> None:
        """To the first row or the last."""
        if self._shown:
            self._table.move_cursor(row=place % len(self._shown))

    async def action_tab(self, step: int) -> None:
        if self._tabs:
            self.query_one(Tabs).active = f"tab-{self._tabs[(self._tabs.index(self._tab) + step) % len(self._tabs)]}"

    async def on_tabs_tab_activated(self, event: Tabs.TabActivated) -> None:
        tab = str(event.tab.id).removeprefix("tab-")
        if tab != self._tab:
            self._tab = tab
            self._show(under(tab, listed(self._rows, self.current)), self._rows, anew=True)

    async def action_new(self) -> None:
        reply = await self.command(NewSession())
        if reply is not None and reply.session_id is not None:
            self.post_message(self.Opened(SessionId(reply.session_id)))
