"""The end of one log, read without the lock: from its last lines backwards, and on as it grows. Blocks."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from core.codec import decode
from core.entries import AnyEntry
from core.errors import InvalidEntry
from core.ids import SessionId
from core.log.lines import Line, backward, forward
from core.log.view import View, read_journal

PAGE: Final = 200
"""Lines that are read at once; a log may be gigabytes."""
MOST: Final = 5_000
"""Lines that are kept; beyond that there is nothing further up than ``ishiki log timeline`` shows."""


class Window:
    """Some lines of a session, up to its newest. Raises `OSError` where the log cannot be read."""

    def __init__(self, folder: Path, session: SessionId) -> None:
        self._path = folder / "runtimes" / session / "events.jsonl"
        # What only the journal holds after a crash; a living owner writes to the log as well.
        self._records = read_journal(folder).get(session, [])
        self._start = self._end = 0
        self.entries: list[AnyEntry] = []
        self._load()

    @property
    def is_whole(self) -> bool:
        """Whether there is nothing further up that could be shown."""
        return self._start == 0 or len(self.entries) >= MOST

    def grow(self) -> bool:
        """Take in what was written since; whether that was anything."""
        with View(self._path, self._records) as log:
            if log.size < self._end:  # it was rewritten by a repair
                self._load()
                return True
            before = self._end
            for block in forward(log.read_at, self._end, log.size):
                self.entries += _read(block.lines)
                self._end = block.end
        del self.entries[: max(0, len(self.entries) - MOST)]
        return self._end != before

    def reach_back(self) -> bool:
        """Take in a page further up; whether there was one."""
        if self.is_whole:
            return False
        with View(self._path, self._records) as log:
            lines = list(islice(backward(log.read_at, self._start), PAGE))
        self._take_above(lines)
        return True

    def _load(self) -> None:
        self.entries = []
        with View(self._path, self._records) as log:
            lines = list(islice(backward(log.read_at, log.size), PAGE))
        self._end = lines[0].end if lines else 0  # what is being written at this moment is read when it is whole
        self._take_above(lines)

    def _take_above(self, lines: list[Line]) -> None:
        self._start = lines[-1].start if len(lines) == PAGE else 0
        self.entries[:0] = _read(line.raw for line in reversed(lines))


def _read(lines: Iterable[bytes]) -> Iterator[AnyEntry]:
    """The entries among them; ``ishiki log check`` names the others."""
    for raw in lines:
        if raw.strip():
            try:
                yield decode(raw)
            except InvalidEntry:
                continue
