"""What the rest of the core asks of one session's log."""

import asyncio
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Protocol

from core.log.lines import Block, Line
from core.log.records import Sidecars

NO_SIDECARS: Sidecars = {}


class Appending:
    """Lines on their way to the disk. Awaited, it tells where they stand, once they would survive a power cut.

    Raises `LogUnavailable` where the disk does not take them. Belongs to one event loop.
    """

    __slots__ = ("_failure", "_lines", "_then")

    def __init__(self) -> None:
        self._lines: list[Line] | None = None
        self._failure: Exception | None = None
        self._then: list[Callable[[Appending], None]] = []

    def then(self, callback: "Callable[[Appending], None]") -> None:
        """Have a function called when this is settled: at once, where a future would take a turn of the loop."""
        if self.settled:
            callback(self)
        else:
            self._then.append(callback)

    @property
    def settled(self) -> bool:
        return self._lines is not None or self._failure is not None

    def result(self) -> list[Line]:
        if self._failure is not None:
            raise self._failure
        return self._lines or []

    def succeed(self, lines: list[Line]) -> None:
        self._lines = lines
        self._tell()

    def fail(self, error: Exception) -> None:
        self._failure = error
        self._tell()

    def _tell(self) -> None:
        for callback in self._then:
            try:
                callback(self)
            except Exception as error:  # noqa: BLE001 - as of a future: it keeps nobody else from being told
                context = {"message": "what was to be done after an append failed", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)

    def __await__(self) -> Generator[Any, None, list[Line]]:
        if not self.settled:
            settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.then(lambda _: None if settled.done() else settled.set_result(None))
            yield from settled
        return self.result()


class Log(Protocol):
    """One session's lines, in the order in which they were appended.

    A position is a byte offset at which a line starts; 0 is the beginning, `size` the end of what is acknowledged.
    Blank lines are no lines, and neither is a torn tail. All reading blocks and goes to a thread.
    """

    @property
    def size(self) -> int:
        """Bytes that are acknowledged. Readers never see beyond."""
        ...

    def append(self, lines: Sequence[bytes], sidecars: Sidecars = NO_SIDECARS) -> Appending:
        """Add a batch in one write; done when it would survive a power cut.

        Batches stand in the order of the calls and never interleave. Where the disk does not take it nothing of the
        batch is read, and the next one is not glued onto it. A batch without lines writes nothing.
        """
        ...

    def read(self, start: int = 0) -> Iterator[Block]:
        """All from a position on, in blocks of some 64 KiB, more where a line is longer."""
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
