"""What the rest of the core asks of one session's log."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

Sidecars = Mapping[str, bytes]
"""Small files that belong to a batch: path below the session's folder → bytes. One that exists is left alone."""

NO_SIDECARS: Sidecars = {}


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line of a log: ``raw`` without its line feed, which ends at offset ``end`` of the file."""

    start: int
    end: int
    raw: bytes


class Block(msgspec.Struct, frozen=True, gc=False):
    """Lines without their line feeds, from offset ``start`` on, that stand one behind the other; the last ends at
    ``end``. Blank ones are among them, as each line starts one byte behind the one before it."""

    start: int
    end: int
    lines: list[bytes]


class Log(Protocol):
    """One session's lines, in the order in which they were appended.

    A position is a byte offset at which a line starts; 0 is the beginning, `size` the end of what is acknowledged.
    Blank lines are no lines, and neither is a torn tail. All reading blocks and goes to a thread.
    """

    @property
    def size(self) -> int:
        """Bytes that are acknowledged. Readers never see beyond."""
        ...

    def append(self, lines: Sequence[bytes], sidecars: Sidecars = NO_SIDECARS) -> asyncio.Future[list[Line]]:
        """Add a batch in one write; done when it would survive a power cut.

        Batches stand in the order of the calls and never interleave. Raises `LogUnavailable` through the future when
        the disk does not take it; nothing of the batch is then read, and the next one is not glued onto it. A batch
        without lines writes nothing.
        """
        ...

    def read(self, start: int = 0) -> Iterator[Block]:
        """All from a position on, in blocks of some 256 KiB, more where a line is longer."""
        ...

    def read_back(self, end: int | None = None) -> Iterator[Line]:
        """Lines from the end, or from a position, backwards."""
        ...

    def search_back(self, needle: bytes) -> Iterator[Line]:
        """Lines that hold these bytes, from the end backwards, without looking at lines in between."""
        ...

    def number_at(self, position: int) -> int:
        """The 1-based number of the line that starts at a position, as people and editors count."""
        ...
