"""The conversation on the screen: only what is in sight is drawn, and what is drawn is kept."""

from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate
from typing import Final

from rich.text import Text
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from bots.terminal.conversation import Conversation, Item
from bots.terminal.drawing import CONSOLE, day, draw
from bots.terminal.log_reader import Stored

NEAR: Final = 20
"""Lines before the first that is read at which more are asked for."""


class Transcript(ScrollView, can_focus=True):
    """Stays at the end while it is there; elsewhere what is in sight stays in its place."""

    DEFAULT_CSS = "Transcript { height: 1fr; padding: 0 1; scrollbar-size-vertical: 1; overflow-x: hidden; }"

    class NearTop(Message):
        """Older lines are wanted."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - textual's name for it
        super().__init__(id=id)
        self._conversation = Conversation()
        self._stored: Mapping[str, Stored] = {}
        self._drawn: dict[Item, tuple[tuple[int, int, int], list[Text]]] = {}
        self._starts: list[int] = []
        self._blocks: list[list[Text]] = []
        self._note = ""
        self._generation = 0
        self._follows = True

    def show(self, conversation: Conversation, stored: Mapping[str, Stored], *, note: str) -> None:
        """Another conversation, from its end. ``note`` is shown where it is empty."""
        self._drawn.clear()
        self._conversation, self._stored, self._note = conversation, stored, note
        self._follows = True
        self._lay_out()

    def refresh_items(self, *, files: bool = False, in_front: bool = False) -> None:
        """Something was changed in the conversation; ``files``: or with its files; ``in_front``: more before it."""
        height, offset = self.virtual_size.height, self.scroll_offset.y
        self._generation += files
        self._lay_out()
        if in_front:
            self._go_to(offset + self.virtual_size.height - height)

    def on_resize(self) -> None:
        self._lay_out()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._follows = new_value >= self.max_scroll_y - 1
        if new_value < NEAR and new_value < old_value:
            self.post_message(self.NearTop())

    def action_scroll_home(self) -> None:
        super().action_scroll_home()
        self.post_message(self.NearTop())

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        number = self.scroll_offset.y + y
        block = bisect_right(self._starts, number) - 1
        if block < 0 or number >= self.virtual_size.height or number - self._starts[block] >= len(self._blocks[block]):
            return Strip.blank(width, self.rich_style)
        text = self._blocks[block][number - self._starts[block]]
        segments = [segment for segment in text.render(CONSOLE) if segment.text]
        return Strip(segments).adjust_cell_length(width).apply_style(self.rich_style)

    def _lay_out(self) -> None:
        width = max(self.scrollable_content_region.width, 20)
        blocks: list[list[Text]] = []
        drawn: dict[Item, tuple[tuple[int, int, int], list[Text]]] = {}
        today = ""
        for item in self._conversation.items:
            state = item.version, width, self._generation if item.files is not None or item.entry is not None else 0
            kept = self._drawn.get(item)
            lines = kept[1] if kept is not None and kept[0] == state else draw(item, width, self._stored)
            drawn[item] = state, lines
            if lines and (date := day(item.at)) and date != today:
                today = date
                blocks.append([Text(f"── {date} ".ljust(width, "─")[:width], "dim")])
            if lines:
                blocks.append(lines)
        if not blocks:
            blocks = [[Text(line, "dim") for line in self._note.split("\n")]]
        self._drawn, self._blocks = drawn, blocks
        *starts, height = accumulate((len(block) for block in blocks), initial=0)
        self._starts = starts
        follows = self._follows
        self.virtual_size = Size(width, height)
        self.refresh()
        if follows:
            self._go_to(height)

    def _go_to(self, line: int) -> None:
        """Once the screen knows how long the conversation is now; beyond its end is its end."""
        self._follows = line >= self.virtual_size.height
        self.call_after_refresh(self.scroll_to, y=line, animate=False, force=True, immediate=True)
