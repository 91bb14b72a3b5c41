"""``ishiki tui``: puts the screens together."""

from pathlib import Path
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from bots.terminal.asks import Asks
from bots.terminal.house import House
from bots.terminal.menu import Menu
from bots.terminal.screen import HouseScreen
from bots.terminal.talk import Talk
from core.ids import SessionId


class Terminal(App[str]):
    """The menu, and above it what was opened from there. Its result is why it ended, where nobody wished it."""

    CSS_PATH = "terminal.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c,ctrl+q", "quit", "Quit", priority=True, show=False),
        Binding("f2", "asks", "Questions", show=False),
    ]

    def __init__(self, folder: Path, session: SessionId | None = None) -> None:
        super().__init__()
        self._house = House(folder)
        self._menu = Menu(self._house)
        self._first = session

    def on_mount(self) -> None:
        self.push_screen(self._menu)
        if self._first is not None:
            self._open(self._first)

    def action_asks(self) -> None:
        if not isinstance(self.screen, Asks):
            self.push_screen(Asks(self._house))

    def on_house_screen_opened(self, event: HouseScreen.Opened) -> None:
        if isinstance(self.screen, Talk):
            self.pop_screen()
        self._open(event.session)

    def on_house_screen_lost(self, event: HouseScreen.Lost) -> None:
        self.exit(event.why)

    def _open(self, session: SessionId) -> None:
        self._menu.current = session
        self.push_screen(Talk(self._house, session))
