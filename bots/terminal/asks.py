"""What is asked and still open, in all sessions, and the operator's answer."""

from typing import ClassVar, Final, cast

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import DataTable, Footer, Input, Static

from bots import typed
from bots.commands import AnswerIt
from bots.pending import asked, who
from bots.printing import span
from bots.terminal.house import House, short
from bots.terminal.screen import HouseScreen
from core.clock import now_ms
from core.confirmations.record import Record
from core.confirmations.words import LABELS, shown_args
from core.content import for_terminal
from core.errors import InvalidAnswer
from core.ids import TaskHash

EVERY: Final = 1.0
_HEADS: Final = ("time left", "session", "what is asked", "who may answer")
_NOTHING: Final = "Nothing is asked.\n\nWhat the agent wants leave for, and what it asks, appears here."


class Asks(HouseScreen):
    """Open confirmations and questions. The digits answer a confirmation, a line answers a question."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.pop_screen", "Back"),
        *(Binding(str(number), f"choose({number})", show=False) for number in range(1, 6)),
        Binding("up", "move(-1)", show=False, priority=True),
        Binding("down", "move(1)", show=False, priority=True),
        Binding("q", "app.quit", "Quit"),
    ]

    def __init__(self, house: House) -> None:
        super().__init__(house)
        self._records: list[Record] = []
        self._words: dict[TaskHash, list[str]] = {}
        """What was typed already of those with several questions."""

    def compose(self) -> ComposeResult:
        yield Static(Text("what is asked", "bold"), id="title")
        table: DataTable[Text] = DataTable(id="asks", cursor_type="row")
        table.can_focus = False
        yield table
        with VerticalScroll(id="about"):
            yield Static(id="detail", markup=False)
        yield Input(id="answer")
        yield Footer()

    async def on_mount(self) -> None:
        for head in _HEADS:
            self._table.add_column(head, key=head)
        await self._look()
        self.set_interval(EVERY, self._look)

    @property
    def _table(self) -> "DataTable[Text]":
        return cast("DataTable[Text]", self.query_one(DataTable))

    @property
    def _chosen(self) -> Record | None:
        place = self._table.cursor_row
        return self._records[place] if 0 <= place < len(self._records) else None

    async def _look(self) -> None:
        records = await self.read(self.house.asked)
        if records is None:
            return
        chosen = self._chosen
        same = [record.task_hash for record in records] == [record.task_hash for record in self._records]
        self._records = records
        if same:
            for record in records:
                self._table.update_cell(record.task_hash, _HEADS[0], _left(record))
        else:
            self._table.clear()
            for record in records:
                self._table.add_row(*_cells(record), key=record.task_hash)
            hashes = [record.task_hash for record in records]
            if chosen is not None and chosen.task_hash in hashes:
                self._table.move_cursor(row=hashes.index(chosen.task_hash))
        if not same or not records:
            self._show()

    def action_move(self, step: int) -> None:
        self._table.move_cursor(row=self._table.cursor_row + step)
        self._show()

    def _show(self) -> None:
        """The one that is chosen, and how it is answered."""
        record, line = self._chosen, self.query_one(Input)
        detail = self.query_one("#detail", Static)
        line.display = record is not None and record.kind == "ask"
        if record is None:
            detail.update(_NOTHING)
            return
        detail.update(_detail(record, len(self._words.get(record.task_hash, []))))
        if record.kind == "ask":
            line.value = ""
            line.placeholder = "your answer, a number, or several with commas; stop ends it"
            line.focus()
        else:
            self.set_focus(None)

    async def action_choose(self, number: int) -> None:
        record = self._chosen
        if record is not None and record.kind == "confirm" and number <= len(record.choices):
            await self._answer(record, [record.choices[number - 1]])

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        record = self._chosen
        if record is None or not event.value.strip():
            return
        words = [*self._words.get(record.task_hash, []), event.value]
        if event.value.strip().lower() == typed.STOP:
            words = [typed.STOP]
        elif len(words) < len(record.questions):
            try:
                typed.check(record.questions[len(words) - 1], event.value)
            except InvalidAnswer as error:
                self.tell(str(error), wrong=True)
                return
            self._words[record.task_hash] = words
            self._show()
            return
        await self._answer(record, words)

    async def _answer(self, record: Record, words: list[str]) -> None:
        try:
            said = typed.read(record, words)
        except InvalidAnswer as error:
            self.tell(str(error), wrong=True)
            return
        wanted = (
            AnswerIt(task_hash=record.task_hash, choice=said)
            if isinstance(said, str)
            else AnswerIt(task_hash=record.task_hash, answers=said)
        )
        reply = await self.command(wanted)
        if reply is not None and reply.record is not None:
            self._words.pop(record.task_hash, None)
            self.tell(f"{record.tool or 'the question'} is {reply.record.status}")
        await self._look()


def _cells(record: Record) -> tuple[Text, ...]:
    texts = (short(record.session_id), asked(record), who(record))
    return (_left(record), *(Text(for_terminal(text)) for text in texts))


def _left(record: Record) -> Text:
    return Text(span(record.expires_at - now_ms()))


def _detail(record: Record, answered: int) -> Text:
    """All that is to know before one answers, and the keys."""
    text = Text()
    if record.kind == "confirm":
        text.append(f"May I use {for_terminal(record.tool or '')}?\n", "bold")
    for piece in filter(None, (record.text, shown_args(record), record.file)):
        text.append(f"{for_terminal(piece, multiline=True)}\n")
    if record.kind == "confirm":
        text.append("\n")
        for number, choice in enumerate(record.choices, 1):
            text.append(f" {number} ", "reverse")
            text.append(f" {LABELS[choice]}   ")
        return text
    question = record.questions[answered]
    text.append(f"({answered + 1}/{len(record.questions)}) {for_terminal(question.question)}\n", "bold")
    if question.detail:
        text.append(f"{for_terminal(question.detail, multiline=True)}\n")
    for number, option in enumerate(question.options, 1):
        text.append(f" {number} ", "reverse")
        text.append(f" {for_terminal(option)}\n")
    return text
