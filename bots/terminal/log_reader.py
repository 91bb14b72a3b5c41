"""The log of one session for somebody who reads it: from its end backwards in pages, and what is new. Blocks."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from core.codec import decode
from core.entries import AnyEntry, Attachment, fact_of
from core.errors import InvalidEntry, ResourceError
from core.ids import SessionId
from core.log.lines import Line, backward, cuts
from core.log.view import View, read_journal
from core.resources.store import Resources

PAGE: Final = 200
"""Lines that are read at once."""


class Unreadable(NamedTuple):
    """A line that is no entry."""

    start: int


class Stored(NamedTuple):
    """What became of a file: ``path`` where its bytes are here, else why not. ``settled``: nothing more is to come."""

    path: Path | None
    note: str
    settled: bool


Found = AnyEntry | Unreadable


class LogReader:
    """A context manager; belongs to one thread at a time. Its methods raise `OSError`."""

    def __init__(self, folder: Path, session: SessionId) -> None:
        self._session = session
        self._resources = Resources(folder / "runtimes")
        self._path = folder / "runtimes" / session / "events.jsonl"
        self._view = View(self._path, read_journal(folder).get(session, []))
        self._back: Iterator[Line] = backward(self._view.read_at, self._view.size)
        self._position = 0
        self._identity = _identity(self._path)
        self.at_beginning = False
        self.stored: dict[str, Stored] = {}
        """By URL, of all files that were read of."""

    def newest(self) -> list[Found]:
        """The last page, the newest first; called once, before `older`."""
        lines = [*islice(self._back, PAGE)]
        self._position = lines[0].end if lines else 0
        return self._taken(lines)

    def older(self) -> list[Found]:
        """The page before those that were read, the newest first; empty at the beginning."""
        return self._taken([*islice(self._back, PAGE)])

    def new(self) -> list[Found] | None:
        """What was written since, the oldest first; None where the log is another one by now."""
        identity = _identity(self._path)
        if identity == self._identity:
            return []
        if self._identity is not None and (
            identity is None or identity[0] != self._identity[0] or identity[1] < self._identity[1]
        ):
            return None
        self._identity = identity
        found: list[Found] = []
        with View(self._path) as log:
            if log.size < self._position:  # what the journal holds is not put in its place yet
                return []
            for start, raw, ended in cuts(log.read_at, self._position, log.size):
                if not ended:
                    break
                self._position = start + len(raw) + 1
                if raw.strip():
                    found.append(self._read(raw, start))
        return found

    def look_again(self) -> bool:
        """Whether something became of a file that was on its way."""
        waiting = [url for url, stored in self.stored.items() if not stored.settled]
        changed = [url for url in waiting if self._look(url)]
        return bool(changed)

    def close(self) -> None:
        self._view.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _taken(self, lines: list[Line]) -> list[Found]:
        self.at_beginning = len(lines) < PAGE
        return [self._read(line.raw, line.start) for line in lines]

    def _read(self, raw: bytes, start: int) -> Found:
        try:
            entry = decode(raw)
        except InvalidEntry:
            return Unreadable(start)
        fact = fact_of(entry)
        if isinstance(fact, Attachment):
            for item in fact.items:
                self._look(item.url)
        return entry

    def _look(self, url: str) -> bool:
        """Whether something else became of it than was known."""
        try:
            stored = Stored(self._resources.open(self._session, url).path, "", settled=True)
        except ResourceError as error:
            on_its_way = error.code == "resource_unavailable"
            stored = Stored(None, "being fetched" if on_its_way else str(error), settled=not on_its_way)
        changed, self.stored[url] = self.stored.get(url) != stored, stored
        return changed


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file stands there, and how long it is; None: none yet."""
    try:
        found = os.stat(path)  # noqa: PTH116 - asked four times a second, and a `Path` takes longer than the answer
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size
