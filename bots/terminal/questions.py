"""The panel of what is asked, in all sessions: one at a time, answered by keys."""

from collections.abc import Mapping, Sequence
from itertools import islice
from time import monotonic

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, Static

from bots.commands import AnswerIt
from bots.terminal.menu import short
from bots.terminal.sheet import Sheet
from core.confirmations.record import Record
from core.content import for_terminal
from core.ids import SessionId, TaskHash

SETTLES_WITHIN = 0.7
"""Seconds after another question came up by itself in which a key may still mean the one before."""
_KEYS = frozenset("123456789s") | {"up", "down", "space", "enter"}


class Questions(Vertical, can_focus=True):
    """Answers only while it has the focus, so that a key meant for something else allows nothing."""

    DEFAULT_CSS = """
    Questions {
        height: auto; max-height: 60%; padding: 0 1; display: none; border-left: outer $warning;
        & > #question-words { display: none; height: 1; border: none; padding: 0; }
        &.-words:focus-within > #question-words { display: block; }
        &:focus-within { background: $boost; }
        & > Static { width: 1fr; height: auto; }
    }
    """
    BINDINGS = [  # noqa: RUF012 - textual's own way
        Binding("left", "turn(-1)", "Previous"),
        Binding("right", "turn(1)", "Next"),
    ]

    class Answered(Message):
        """Somebody answered."""

        def __init__(self, command: AnswerIt) -> None:
            super().__init__()
            self.command = command

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - textual's name for it
        super().__init__(id=id)
        self._sheets: dict[TaskHash, Sheet] = {}
        self._names: Mapping[SessionId, str] = {}
        self._shown: TaskHash | None = None
        self._deaf_until = 0.0

    def compose(self) -> ComposeResult:
        yield Static(id="question-text", markup=False)
        yield Input(id="question-words", placeholder="your answer", compact=True)

    def show(self, records: Sequence[Record], names: Mapping[SessionId, str]) -> None:
        """These are open; what was begun to be answered is kept."""
        known, self._sheets = self._sheets, {}
        for record in records:
            sheet = known.get(record.task_hash)
            if sheet is None:
                sheet = Sheet(record)
            sheet.record = record
            self._sheets[record.task_hash] = sheet
        self._names = names
        if self._shown not in self._sheets:
            self._deaf_until = monotonic() + SETTLES_WITHIN if self.has_focus_within else 0.0
            self._shown = next(iter(self._sheets), None)
        if not self._sheets and self.has_focus_within:
            self.screen.focus_next()
        self.display = bool(self._sheets)
        self._draw()

    def begin(self) -> None:
        """Take the keys."""
        if self._sheets:
            self.focus()
            if self.has_class("-words"):
                self.call_after_refresh(self.query_one("#question-words", Input).focus)

    def again(self, task: TaskHash) -> None:
        """The answer did not count: it may be given anew."""
        if task in self._sheets:
            self._sheets[task] = Sheet(self._sheets[task].record)
            self._draw()

    def on_key(self, event: events.Key) -> None:
        sheet = self._sheet
        if sheet is None or not self.has_focus or event.key not in _KEYS:
            return
        event.stop()
        if monotonic() < self._deaf_until:
            return
        self._sent(sheet.press(event.key))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if (sheet := self._sheet) is not None:
            event.input.clear()
            self._sent(sheet.say(event.value))

    def action_turn(self, by: int) -> None:
        tasks = list(self._sheets)
        if self._shown is not None and self._shown in tasks:
            self._shown = tasks[(tasks.index(self._shown) + by) % len(tasks)]
            self._draw()

    def on_focus(self) -> None:
        self._draw()

    def on_blur(self) -> None:
        self._draw()

    @property
    def _sheet(self) -> Sheet | None:
        return None if self._shown is None else self._sheets.get(self._shown)

    def _sent(self, command: AnswerIt | None) -> None:
        if command is not None:
            self.post_message(self.Answered(command))
        self._draw()

    def _draw(self) -> None:
        sheet = self._sheet
        if sheet is None:
            return
        chat = sheet.record.deliver_to
        place = list(self._sheets).index(sheet.record.task_hash) + 1
        head = f"? {place} of {len(self._sheets)} · {for_terminal(self._names.get(chat) or short(chat))} · "
        hint = "" if self.has_focus_within else " · press c, then a key"
        text = Text(f"{head}{sheet.left()} left{hint}", "dim")
        shown = sheet.lines() if self.has_focus_within else islice(sheet.lines(), 1)
        for line, style in shown:
            text.append("\n").append(line, style)
        self.query_one("#question-text", Static).update(text)
        in_words = self.has_class("-words")
        self.set_class(sheet.wants_words, "-words")
        if in_words != sheet.wants_words and self.has_focus_within:
            self.begin()
