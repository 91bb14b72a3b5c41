"""``.cmd_history``: what was typed in a session, to have it again (sessions.md 1.4)."""

from pathlib import Path
from typing import Final

from core.files import write_whole

MOST: Final = 50
QUIT_WORDS: Final = frozenset({"/quit", "/exit", "/q"})
_LINE_FEED: Final = "\x1f"
"""How a line feed within an entry is written."""


class CommandHistory:
    """The lines of one session, oldest first, and a place among them. Reading and adding block."""

    def __init__(self, session_folder: Path) -> None:
        self._path = session_folder / ".cmd_history"
        self.entries = self._read()
        self._place = len(self.entries)
        self._draft = ""

    def add(self, text: str) -> None:
        """Keep a line, unless it is the last one again or a word that quits. Raises `OSError`."""
        if text.strip() and text.strip() not in QUIT_WORDS and self.entries[-1:] != [text]:
            self.entries = [*self.entries, text][-MOST:]
            written = "".join(f"{entry.replace(chr(10), _LINE_FEED)}\n" for entry in self.entries)
            write_whole(self._path, written.encode("utf-8", "replace"))
        self._place = len(self.entries)

    def earlier(self, typed: str) -> str:
        """The entry before; what is ``typed`` meanwhile is kept for `later`."""
        if self._place == len(self.entries):
            self._draft = typed
        self._place = max(self._place - 1, 0)
        return self.entries[self._place] if self.entries else typed

    def later(self, typed: str) -> str:
        """The entry after, in the end what was being typed."""
        if self._place >= len(self.entries):
            return typed
        self._place += 1
        return self.entries[self._place] if self._place < len(self.entries) else self._draft

    def _read(self) -> list[str]:
        """None where the file is not there or cannot be read: what was typed once is no reason to stop."""
        try:
            text = self._path.read_bytes().decode("utf-8", "replace")
        except OSError:
            return []
        return [line.replace(_LINE_FEED, "\n") for line in text.split("\n") if line][-MOST:]
