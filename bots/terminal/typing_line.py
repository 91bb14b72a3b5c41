"""The line that a person types in, with what was typed before."""

from typing import Final

from textual import events
from textual.binding import Binding
from textual.widgets import Input

from bots.commands import MOST_SAID
from bots.terminal.cmd_history import CommandHistory

_BREAK: Final = "⏎"
"""Stands for a line feed, which a line cannot show."""


class TypingLine(Input):
    """Up and down go through ``history``; pasted line feeds are kept."""

    BINDINGS = [  # noqa: RUF012 - textual's own way
        Binding("up", "earlier", show=False),
        Binding("down", "later", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - textual's name for it
        super().__init__(id=id, max_length=MOST_SAID)
        self.history: CommandHistory | None = None

    @property
    def whole(self) -> str:
        """What was typed, with its line feeds."""
        return self.value.replace(_BREAK, "\n")

    def action_earlier(self) -> None:
        if self.history is not None:
            self._put(self.history.earlier(self.whole))

    def action_later(self) -> None:
        if self.history is not None:
            self._put(self.history.later(self.whole))

    def _on_paste(self, event: events.Paste) -> None:
        """The field of the library takes the first line alone."""
        self.insert_text_at_cursor(
            event.text.replace("\r\n", "\n").replace("\r", "\n").strip("\n").replace("\n", _BREAK)
        )
        event.prevent_default()
        event.stop()

    def _put(self, text: str) -> None:
        self.value = text.replace("\n", _BREAK)
        self.cursor_position = len(self.value)
