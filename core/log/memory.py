"""A log without a disk: the same contract, for tests and for trying things out."""

import asyncio
from collections.abc import Iterator, Sequence

from core.log import lines as cut
from core.log.lines import Block, Line
from core.log.port import NO_SIDECARS, Appending
from core.log.records import Sidecars


class MemoryLog:
    """One session's lines in memory."""

    def __init__(self, content: bytes = b"") -> None:
        self._content = bytearray(content)
        self.sidecars: dict[str, bytes] = {}

    @property
    def size(self) -> int:
        return len(self._content)

    def append(self, lines: Sequence[bytes], sidecars: Sidecars = NO_SIDECARS) -> Appending:
        if lines and self._content and not self._content.endswith(b"\n"):
            self._content += b"\n"
        added: list[Line] = []
        for raw in lines:
            start = len(self._content)
            self._content += raw + b"\n"
            added.append(Line(start, len(self._content), raw))
        for name, content in sidecars.items():
            self.sidecars.setdefault(name, content)
        appending = Appending()
        asyncio.get_running_loop().call_soon(appending.succeed, added)
        return appending

    def read(self, start: int = 0) -> Iterator[Block]:
        return cut.forward(self._read_at, start, self.size)

    def read_back(self, end: int | None = None) -> Iterator[Line]:
        return cut.backward(self._read_at, self.size if end is None else end)

    def search_back(self, needle: bytes) -> Iterator[Line]:
        return cut.containing(self._read_at, self.size, needle)

    def number_at(self, position: int) -> int:
        return cut.number_at(self._read_at, position)

    def _read_at(self, offset: int, count: int) -> bytes:
        return bytes(self._content[offset : offset + count])
