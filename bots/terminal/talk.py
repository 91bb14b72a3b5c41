"""One session: what was said in it, live, and a line to talk in where it is one of the terminal."""

import asyncio
from typing import ClassVar, Final

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Footer, Input, RichLog, Static

from bots.commands import NewSession, Say
from bots.terminal import cmd_history
from bots.terminal.conversation import items
from bots.terminal.house import House, short
from bots.terminal.screen import HouseScreen
from bots.terminal.window import Window
from bots.timeline import Moment
from core.ids import SessionId, platform_of, prefix_of

EVERY: Final = 0.25
"""Seconds between two looks at the log."""
_HELP: Final = (
    "Type a line and press enter; ↑ and ↓ go through what you typed before. /new makes a session, /quit ends. "
    "Page up reads further back, F2 shows what is asked, escape goes to the menu."
)


class Talk(HouseScreen):
    """A session from its end backwards, and on as it grows."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.pop_screen", "Menu"),
        Binding("pageup", "back", "Further back", priority=True),
        Binding("pagedown", "forth", "Down", show=False, priority=True),
        Binding("up", "earlier", show=False, priority=True),
        Binding("down", "later", show=False, priority=True),
        Binding("home", "top", show=False),
        Binding("end", "bottom", show=False),
        Binding("f2", "app.asks", "Questions"),
        Binding("a", "app.asks", show=False),
        Binding("q", "app.quit", "Quit", show=False),
    ]

    def __init__(self, house: House, session: SessionId) -> None:
        super().__init__(house)
        self._session = session
        self._window: Window | None = None
        self._shown: list[Moment] = []
        self._history = house.folder / "runtimes" / session / ".cmd_history"
        self._typed: list[str] = []
        self._place = 0
        self._looking = asyncio.Lock()

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield RichLog(id="said", wrap=True, markup=False, highlight=False, min_width=20)
        yield Static(id="asked", markup=False)
        if prefix_of(self._session) == "cli":
            yield Input(placeholder="say something; /help", id="line")
        else:
            where = {"discord": "Discord", "telegram": "Telegram", None: "the web"}[platform_of(self._session)]
            yield Static(f"People talk here on {where}; this terminal listens.", id="elsewhere", markup=False)
        yield Footer()

    async def on_mount(self) -> None:
        self._typed = await asyncio.to_thread(cmd_history.read, self._history)
        self._place = len(self._typed)
        self._window = await self.read(lambda: Window(self.house.folder, self._session))
        self._say(anew=True)
        self._log.focus() if prefix_of(self._session) != "cli" else self.query_one(Input).focus()
        await self._look_around()
        self.set_interval(EVERY, self._look)
        self.set_interval(2.0, self._look_around)

    @property
    def _log(self) -> RichLog:
        return self.query_one(RichLog)

    async def _look(self) -> None:
        """What was written since."""
        window = self._window
        if window is None or self._looking.locked():
            return
        async with self._looking:
            if await self.read(window.grow):
                self._say()

    async def _look_around(self) -> None:
        """How it is called, and what is asked there."""
        rows = await self.read(self.house.rows)
        row = rows.get(self._session) if rows else None
        name = row.name if row is not None else short(self._session)
        self.query_one("#title", Static).update(Text.assemble((name, "bold"), (f"  {self._session}", "dim")))
        asked = self.query_one("#asked", Static)
        asked.display = row is not None and row.open > 0
        if row is not None and row.open:
            asked.update(f"{row.open} open question{'' if row.open == 1 else 's'} here: press F2 to answer")

    def _say(self, *, anew: bool = False) -> None:
        """Show what is new; all of it anew where something further up changed, as by an edit."""
        if self._window is None:
            return
        said = items(self._window.entries)
        log, known = self._log, len(self._shown)
        at_end = log.scroll_offset.y >= log.max_scroll_y - 1
        if anew or said[:known] != self._shown:
            before = log.scroll_offset.y
            log.clear()
            new = said
        else:
            before, new = None, said[known:]
        for item in new:
            log.write(_text(item), scroll_end=False)
        self._shown = said
        if not said and anew:
            log.write(Text("Nothing was said here yet.", "dim"), scroll_end=False)
        if at_end:
            log.scroll_end(animate=False)
        elif before is not None:
            log.scroll_to(y=before, animate=False)

    async def on_resize(self, _event: events.Resize) -> None:
        self.call_after_refresh(lambda: self._say(anew=True))

    async def action_back(self) -> None:
        """A screen up; at the top the page before."""
        log = self._log
        if log.scroll_offset.y > 0:
            log.scroll_page_up(animate=False)
            return
        window = self._window
        if window is None:
            return
        async with self._looking:
            if not await self.read(window.reach_back):
                if len(window.entries) > 0 and window.is_whole:
                    self.tell("that is the beginning, or as far as this goes; `ishiki log timeline` shows all")
                return
            height = log.virtual_size.height
            self._say(anew=True)
            self.call_after_refresh(lambda: log.scroll_to(y=log.virtual_size.height - height, animate=False))

    def action_forth(self) -> None:
        self._log.scroll_page_down(animate=False)

    def action_top(self) -> None:
        self._log.scroll_home(animate=False)

    def action_bottom(self) -> None:
        self._log.scroll_end(animate=False)

    # --- talking --------------------------------------------------------------------------------------------------

    def action_earlier(self) -> None:
        self._recall(-1)

    def action_later(self) -> None:
        self._recall(1)

    def _recall(self, step: int) -> None:
        """What was typed before, where there is a line to type in; else a line up or down."""
        if prefix_of(self._session) != "cli":
            self._log.scroll_relative(y=step, animate=False)
            return
        self._place = min(max(self._place + step, 0), len(self._typed))
        line = self.query_one(Input)
        line.value = self._typed[self._place] if self._place < len(self._typed) else ""
        line.cursor_position = len(line.value)

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        text = event.value
        if not text.strip():
            return
        event.input.value = ""
        match text.strip().lower():
            case word if word in cmd_history.QUIT:
                await self.run_action("app.quit")
            case "/help":
                self.tell(_HELP)
            case "/new":
                reply = await self.command(NewSession())
                if reply is not None and reply.session_id is not None:
                    self.post_message(self.Opened(SessionId(reply.session_id)))
            case word if word.startswith("/"):
                event.input.value = text
                self.tell("there is no such command; /help names those that there are", wrong=True)
            case _:
                if await self.command(Say(session_id=self._session, content=text)) is None:
                    event.input.value = text
        await self._remember(text)

    async def _remember(self, text: str) -> None:
        self._typed = cmd_history.added(self._typed, text)
        self._place = len(self._typed)
        try:
            await asyncio.to_thread(cmd_history.write, self._history, self._typed)
        except OSError as error:
            self.tell(f"what you typed is not kept ({error.strerror})", wrong=True)


def _text(item: Moment) -> Text:
    first, *more = item.lines()
    at, rest = first[:19], first[19:]
    return Text.assemble((at, "dim"), (rest, item.style), *((f"\n{line}", item.style) for line in more))
