"""Answering one confirmation or question key by key. Pure: keys in, a command out."""

from collections.abc import Iterator

from bots.commands import AnswerIt
from bots.terminal.drawing import asked, left
from core.confirmations.record import Answer, Question, Record
from core.confirmations.words import LABELS, shown_args
from core.content import for_terminal

MOST_LINES = 6
"""Of a text or of arguments that are shown."""
_OPTIONS_SHOWN = 9


class Sheet:
    """What is asked, and the answers given to it so far. Questions are answered one by one, and sent together."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.answers: list[Answer] = []
        self.cursor = 0
        self.ticked: set[int] = set()

    @property
    def question(self) -> Question | None:
        """The one that is next; None for a confirmation."""
        if self.record.kind == "confirm":
            return None
        return self.record.questions[min(len(self.answers), len(self.record.questions) - 1)]

    @property
    def wants_words(self) -> bool:
        return self.question is not None and not self.question.options

    def press(self, key: str) -> AnswerIt | None:
        """What a key answers: a digit from 1, ``up``, ``down``, ``space``, ``enter``, or ``s`` to stop a question."""
        number = int(key) - 1 if key.isascii() and key.isdigit() and key != "0" else None
        question = self.question
        if question is None:
            # A confirmation is answered by its number alone, so that nobody allows something by habit.
            choice = None if number is None else next(iter(self.record.choices[number : number + 1]), None)
            return None if choice is None else AnswerIt(task_hash=self.record.task_hash, choice=choice)
        if key == "s":
            return AnswerIt(task_hash=self.record.task_hash, choice="stop")
        return self._chosen(question, key, number) if question.options else None

    def say(self, text: str) -> AnswerIt | None:
        """Answer in one's own words."""
        return self._answered(text) if self.wants_words and text.strip() else None

    def lines(self) -> Iterator[tuple[str, str]]:
        """What is shown: text that may be printed, and its style."""
        question = self.question
        if question is None:
            yield from _cut(asked(self.record), "bold")
            yield from _cut(shown_args(self.record), "")
            keys = "   ".join(f"[{place}] {LABELS[choice]}" for place, choice in enumerate(self.record.choices, 1))
            yield keys, "bold yellow"
            return
        count = f"({len(self.answers) + 1}/{len(self.record.questions)}) " if len(self.record.questions) > 1 else ""
        yield from _cut(f"{count}{question.question}", "bold")
        yield from _cut("\n".join(text for text in (self.record.text, question.detail) if text), "")
        yield from self._options(question)
        if self.wants_words:
            yield "type the answer below, Enter sends it", "dim"
        else:
            pick = "digits or Space tick, Enter sends" if question.multi_select else "a digit, or ↑ ↓ and Enter"
            yield f"{pick} · s stops", "dim"

    def left(self) -> str:
        return left(self.record)

    def _options(self, question: Question) -> Iterator[tuple[str, str]]:
        first = min(max(self.cursor - _OPTIONS_SHOWN // 2, 0), max(len(question.options) - _OPTIONS_SHOWN, 0))
        for place, option in enumerate(question.options[first : first + _OPTIONS_SHOWN], first):
            tick = ("[x] " if place in self.ticked else "[ ] ") if question.multi_select else ""
            mark = "›" if place == self.cursor else " "
            yield f"{mark}{place + 1:2} {tick}{for_terminal(option)}", "bold yellow" if place == self.cursor else ""
        if len(question.options) > _OPTIONS_SHOWN:
            yield f"   of {len(question.options)}; ↑ ↓ show the others", "dim"

    def _chosen(self, question: Question, key: str, number: int | None) -> AnswerIt | None:
        if key in {"up", "down"}:
            self.cursor = (self.cursor + (1 if key == "down" else -1)) % len(question.options)
        elif number is not None and number < len(question.options):
            self.cursor = number
            return self._pick(question)
        elif key == "space" and question.multi_select:
            self.ticked ^= {self.cursor}
        elif key == "enter" and question.multi_select and self.ticked:
            return self._answered(tuple(question.options[place] for place in sorted(self.ticked)))
        elif key == "enter" and not question.multi_select:
            return self._answered(question.options[self.cursor])
        return None

    def _pick(self, question: Question) -> AnswerIt | None:
        if question.multi_select:
            self.ticked ^= {self.cursor}
            return None
        return self._answered(question.options[self.cursor])

    def _answered(self, answer: str | tuple[str, ...]) -> AnswerIt | None:
        question = self.question
        assert question is not None
        self.answers.append(Answer(question=question.question, answer=answer))
        self.cursor, self.ticked = 0, set()
        if len(self.answers) < len(self.record.questions):
            return None
        return AnswerIt(task_hash=self.record.task_hash, answers=tuple(self.answers))


def _cut(text: str, style: str) -> Iterator[tuple[str, str]]:
    lines = for_terminal(text, multiline=True).split("\n") if text else []
    yield from ((line, style) for line in lines[:MOST_LINES])
    if len(lines) > MOST_LINES:
        yield f"… {len(lines) - MOST_LINES} more lines; `ishiki answer` shows them all", "dim"
