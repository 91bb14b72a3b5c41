"""``.cmd_history``: what was typed in a session, for the arrow keys (sessions.md 1.4)."""

from pathlib import Path
from typing import Final

from core.files import write_whole

MOST: Final = 50
QUIT: Final = frozenset({"/quit", "/exit", "/q"})
"""The words that end the program."""
_BREAK: Final = "\x1f"


def read(path: Path) -> list[str]:
    """Entries, oldest first; none where there is no such file, or none that can be read. Blocks."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [line.replace(_BREAK, "\n") for line in text.split("\n") if line][-MOST:]


def added(entries: list[str], text: str) -> list[str]:
    """The entries after something was typed: not what is blank, ends the program, or was typed just before."""
    if not text.strip() or text.strip().lower() in QUIT or entries[-1:] == [text]:
        return entries
    return [*entries, text][-MOST:]


def write(path: Path, entries: list[str]) -> None:
    """Put them in place, whole. Blocks. Raises `OSError`, also where the session has no folder."""
    lines = (entry.replace("\r\n", "\n").replace("\r", "\n").replace("\n", _BREAK) for entry in entries)
    write_whole(path, "".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
