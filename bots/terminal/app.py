"""The program on the screen: a menu of sessions, a conversation, what is asked, and a line to type in."""

import asyncio
from pathlib import Path
from typing import ClassVar, Final

from rich.text import Text
from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Footer, Input, Static, Tab, Tabs

from bots.commands import AnswerIt, Command, NewSession, Reply, Say
from bots.control import send
from bots.terminal import menu
from bots.terminal.cmd_history import QUIT_WORDS, CommandHistory
from bots.terminal.conversation import Conversation
from bots.terminal.drawing import outcome
from bots.terminal.log_reader import LogReader
from bots.terminal.questions import Questions
from bots.terminal.session_list import SessionList
from bots.terminal.transcript import Transcript
from bots.terminal.typing_line import TypingLine
from bots.terminal.watch import Overview, Watch
from core.content import for_terminal
from core.errors import IshikiError
from core.ids import SessionId, TaskHash, platform_of

LOOK_EVERY: Final = 1.0
READ_EVERY: Final = 0.25
"""Seconds between two looks at the folder, and at the log that is shown."""
_NO_SESSION: Final = (
    "There is no session yet.\n\nType /new to make one and talk in it, or let `ishiki run` take in\n"
    "what is said on Discord and Telegram: each chat appears here by itself."
)
_NOTHING_SAID: Final = "Nothing was said here yet."
_NOBODY_THERE: Final = "written down; nobody answers until `ishiki run` runs"
_HELP: Final = (
    "/new makes a session · /quit ends · //word says /word\n"
    "Tab goes round · Esc leaves the line, then the conversation\n"
    "c answers what is asked, by its number · ← → change the tab\n"
    "PgUp reads back · End follows · n new · q quits"
)


class Terminal(App[str]):
    """Over one data folder. Ends by itself only when it is told to."""

    TITLE = "ishiki"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #title { height: 1; padding: 0 1; background: $primary; color: $text; text-wrap: nowrap; text-overflow: ellipsis; }
    #tabs { display: none; }
    #main { height: 1fr; }
    #sessions { width: 28; border-right: solid $panel; }
    #talk { width: 1fr; }
    #name { height: 1; padding: 0 1; text-style: bold; text-wrap: nowrap; text-overflow: ellipsis; }
    #line { height: 1; border: none; padding: 0 1; background: $boost; }
    #line:focus { background: $primary-muted; }
    Toast { width: 56; max-width: 90%; }
    .-vast #sessions { width: 44; }
    .-narrow #sessions { width: 1fr; border-right: none; }
    .-narrow #talk { display: none; }
    .-narrow.-reading #talk { display: block; }
    .-narrow.-reading #sessions { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", "Quit", show=False, priority=True),
        Binding("c", "questions", "Confirm"),
        Binding("n", "new", "New session"),
        Binding("slash,i", "type", "Type", key_display="/"),
        Binding("escape", "leave", "Back"),
        Binding("question_mark,f1", "help", "Help", key_display="?"),
        Binding("left", "tab(-1)", show=False),
        Binding("right", "tab(1)", show=False),
    ]

    def __init__(self, folder: Path, session: SessionId | None = None) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (76, "-wide"), (130, "-vast")]
        self._folder = folder
        self._watch = Watch(folder)
        self._look_now = asyncio.Event()
        self._older_wanted = False
        self._overview = Overview([], [], [])
        self._session = session
        self._tabs: list[str] = []
        self._tab = menu.ALL
        self._conversation = Conversation()
        self._is_whole = False

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield Tabs(id="tabs")
        yield Questions(id="questions")
        with Horizontal(id="main"):
            yield SessionList(id="sessions")
            with Vertical(id="talk"):
                yield Static(id="name", markup=False)
                yield Transcript(id="transcript")
                yield TypingLine(id="line")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self.query_one(SessionList).focus()
        self.query_one(Transcript).show(self._conversation, {}, note=_NO_SESSION)
        self._keep_looking()
        self._shut_line()

    # --- the folder -----------------------------------------------------------------------------------------------

    @work(exclusive=True, group="folder")
    async def _keep_looking(self) -> None:
        """Look again soon, and later where there is so much that a look takes long."""
        clock = asyncio.get_running_loop().time
        while True:
            begun = clock()
            self._look_now.clear()
            await self._take(await asyncio.to_thread(self._watch.look))
            pause = max(LOOK_EVERY, 10 * (clock() - begun))
            try:
                async with asyncio.timeout(pause):
                    await self._look_now.wait()
            except TimeoutError:
                pass

    async def _take(self, overview: Overview) -> None:
        self._overview = overview
        if self._session is None and (newest := menu.newest(overview.rows)) is not None:
            self._open(newest)
        elif self._session is not None and not self._is_reading:
            self._open(self._session)
        await self._show_tabs(menu.tabs(overview.rows))
        self._show_rows()
        names = {row.session: row.name for row in overview.rows}
        self.query_one(Questions).show(overview.asked, names)
        for record in overview.decided:
            self.notify(for_terminal(f"{record.tool or 'question'}: {outcome(record)}"), markup=False)
        self._show_asked(overview)
        self._show_title()

    async def _show_tabs(self, tabs: list[str]) -> None:
        if tabs == self._tabs:
            return
        self._tabs = tabs
        shown = self.query_one("#tabs", Tabs)
        shown.display = bool(tabs)
        self._tab = self._tab if self._tab in tabs else menu.ALL
        wanted = self._tab
        await shown.clear()
        for tab in tabs:
            await shown.add_tab(Tab(menu.title(tab), id=tab))
        if tabs:
            shown.active = wanted

    def _show_rows(self) -> None:
        rows = menu.listed(self._overview.rows, self._tab, self._session)
        self.query_one(SessionList).show(rows, self._session)

    def _show_title(self) -> None:
        rows, asked = self._overview.rows, len(self._overview.asked)
        text = f"ishiki · {len(rows)} {'session' if len(rows) == 1 else 'sessions'} · {asked} open · {self._folder}"
        title = self.query_one("#title", Static)
        title.update(Text(for_terminal(self._overview.trouble or text), "bold red" if self._overview.trouble else ""))
        row = next((row for row in rows if row.session == self._session), None)
        name = row.display if row is not None else menu.short(self._session) if self._session is not None else ""
        more = f" · {self._session}" if self._session is not None and name != self._session else ""
        self.query_one("#name", Static).update(Text(for_terminal(name)).append(more, "dim"))

    @on(Tabs.TabActivated)
    def _tab_chosen(self, event: Tabs.TabActivated) -> None:
        if event.tab.id in self._tabs and event.tab.id != self._tab:
            self._tab = event.tab.id or menu.ALL
            self._show_rows()

    def action_tab(self, by: int) -> None:
        if self._tabs:
            place = (self._tabs.index(self._tab) + by) % len(self._tabs)
            self.query_one("#tabs", Tabs).active = self._tabs[place]

    # --- the conversation -----------------------------------------------------------------------------------------

    @property
    def _is_reading(self) -> bool:
        return any(worker.group == "log" and not worker.is_finished for worker in self.workers)

    @on(SessionList.Opened)
    def _opened(self, event: SessionList.Opened) -> None:
        self._open(event.session)
        self.screen.add_class("-reading")
        self.query_one(TypingLine if self._may_talk else Transcript).focus()

    def _open(self, session: SessionId) -> None:
        self._session = session
        self._read(session)
        self._shut_line()
        self._show_rows()
        self._show_title()

    @work(exclusive=True, group="log")
    async def _read(self, session: SessionId) -> None:
        """Show a log from its end, and what comes; a log that cannot be read is one sentence, and tried again."""
        transcript = self.query_one(Transcript)
        history = await asyncio.to_thread(CommandHistory, self._folder / "runtimes" / session)
        self.query_one(TypingLine).history = history
        while True:
            try:
                reader = await asyncio.to_thread(LogReader, self._folder, session)
                try:
                    await self._follow(reader, session, transcript)
                finally:
                    reader.close()
            except OSError as error:
                path = self._folder / "runtimes" / session / "events.jsonl"
                note = f"{path} cannot be read ({error.strerror}); check its owner, rights and disk"
                transcript.show(Conversation(), {}, note=note)
                await asyncio.sleep(LOOK_EVERY)

    async def _follow(self, reader: LogReader, session: SessionId, transcript: Transcript) -> None:
        """Returns when the log is another one."""
        conversation, self._older_wanted = Conversation(), False
        conversation.prepend(await asyncio.to_thread(reader.newest), whole=reader.at_beginning)
        decided = await asyncio.to_thread(self._watch.decided_in, session)
        conversation.ask(decided, whole=reader.at_beginning)
        self._conversation, self._is_whole = conversation, reader.at_beginning
        self._show_asked(self._overview)
        transcript.show(conversation, reader.stored, note=_NOTHING_SAID)
        looks = 0
        while True:
            if self._older_wanted and not reader.at_beginning:
                conversation.prepend(await asyncio.to_thread(reader.older), whole=reader.at_beginning)
                self._is_whole = reader.at_beginning
                transcript.refresh_items(in_front=True)
            self._older_wanted = False
            found = await asyncio.to_thread(reader.new)
            if found is None:
                return
            looks += 1
            files = looks % 4 == 0 and await asyncio.to_thread(reader.look_again)
            if found:
                conversation.append(found)
            if found or files:
                transcript.refresh_items(files=files)
            await asyncio.sleep(READ_EVERY if not self._older_wanted else 0)

    @on(Transcript.NearTop)
    def _near_top(self) -> None:
        self._older_wanted = True

    def _show_asked(self, overview: Overview) -> None:
        """What is asked in the chat that is shown, and what becomes of it."""
        here = [record for record in (*overview.asked, *overview.decided) if record.deliver_to == self._session]
        if here and self._is_reading:
            self._conversation.ask(here, whole=self._is_whole)
            self.query_one(Transcript).refresh_items()

    # --- commands -------------------------------------------------------------------------------------------------

    @property
    def _may_talk(self) -> bool:
        return self._session is None or platform_of(self._session) is None

    def _shut_line(self) -> None:
        """The line is for sessions without a platform."""
        line = self.query_one(TypingLine)
        platform = None if self._session is None else platform_of(self._session)
        line.disabled = not self._may_talk
        line.placeholder = (
            f"read only: people write on {platform.title()} (n: a session to talk in)"
            if platform is not None
            else "say something, or /help"
            if self._session is not None
            else "/new makes a session"
        )

    @on(Input.Submitted, "#line")
    async def _typed(self, event: Input.Submitted) -> None:
        line = self.query_one(TypingLine)
        text = line.whole
        line.clear()
        if not text.strip():
            return
        word = text.strip().lower()
        if line.history is not None:
            try:
                await asyncio.to_thread(line.history.add, text)
            except OSError as error:
                self._complain(f"what was typed is not kept ({error.strerror}); check the disk")
        if word in QUIT_WORDS:
            self.exit()
        elif word == "/new":
            self.action_new()
        elif word == "/help":
            self.action_help()
        elif word.startswith("/") and not word.startswith("//"):
            self._complain(f"there is no {for_terminal(text.split()[0][:20])}; /help shows what there is")
        elif self._session is None:
            self._complain("there is no session to say it in; /new makes one")
        else:
            self._say(self._session, text[1:] if text.startswith("//") else text)

    @work(group="commands")
    async def _say(self, session: SessionId, text: str) -> None:
        try:
            command = Say(session_id=session, content=text)
        except ValueError:
            self._complain("that is too long to be said at once; say it in parts")
            return
        reply, by_owner = await self._sent(command)
        if not reply.ok:
            line = self.query_one(TypingLine)
            line.value = line.value or text  # nothing that was typed is lost
        elif not by_owner:
            self.notify(_NOBODY_THERE, severity="warning", markup=False)

    @work(group="commands")
    async def action_new(self) -> None:
        """Make a session and go into it."""
        reply, _ = await self._sent(NewSession())
        if reply.ok and reply.session_id is not None:
            self._open(SessionId(reply.session_id))
            self.screen.add_class("-reading")
            self.query_one(TypingLine).focus()

    @on(Questions.Answered)
    def _answered(self, event: Questions.Answered) -> None:
        self._answer(event.command)

    @work(group="commands")
    async def _answer(self, command: AnswerIt) -> None:
        reply, by_owner = await self._sent(command)
        if not reply.ok:
            self.query_one(Questions).again(TaskHash(command.task_hash))
        elif not by_owner:
            self.notify("`ishiki run` hands it on at its next start", severity="warning", markup=False)

    async def _sent(self, command: Command) -> tuple[Reply, bool]:
        """What came of it; where it was nothing that is said."""
        try:
            reply, by_owner = await send(self._folder, command)
        except (IshikiError, OSError) as error:
            reply, by_owner = Reply(ok=False, message=str(error)), False
        if not reply.ok:
            self._complain(reply.message)
        self._look_now.set()
        return reply, by_owner

    def _complain(self, sentence: str) -> None:
        self.notify(for_terminal(sentence), severity="error", timeout=8, markup=False)

    # --- keys -----------------------------------------------------------------------------------------------------

    def action_questions(self) -> None:
        if self._overview.asked:
            self.query_one(Questions).begin()
        else:
            self.notify("nothing is asked", markup=False)

    def action_type(self) -> None:
        if self._may_talk:
            self.screen.add_class("-reading")
            self.query_one(TypingLine).focus()

    def action_leave(self) -> None:
        """From the line to the conversation, from there to the menu."""
        if self.query_one(TypingLine).has_focus:
            self.query_one(Transcript).focus()
        else:
            self.screen.remove_class("-reading")
            self.query_one(SessionList).focus()

    def action_help(self) -> None:
        self.notify(_HELP, title="Keys and words", timeout=15, markup=False)
