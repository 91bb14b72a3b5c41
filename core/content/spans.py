"""From the platforms' flat "bold from 3 to 9" to nested elements."""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from msgspec import Struct, field

from core.content.markup import MAX_DEPTH, Element, Node

# These have no text of their own: such a span replaces what it covers.
_REPLACING: Final = frozenset({"at", "sharp", "emoji", "img", "audio", "video", "file"})


class Span(Struct, frozen=True):
    """Code points `start` to `end` (exclusive) of a text are one element.

    An `<at>`, `<sharp>`, `<emoji>` or media span replaces the text it covers; every other one holds it.
    """

    start: int
    end: int
    tag: str
    attributes: Mapping[str, str | Literal[True]] = field(default_factory=dict[str, str | Literal[True]])


@dataclass(slots=True)
class _Open:
    span: Span
    end: int
    children: list[Node]


def nest(text: str, spans: Iterable[Span]) -> list[Node]:
    """`text` with `spans` as nested elements.

    Of two spans the longer is the outer one, of two equal ones the first. Where spans overlap, the one that starts
    later is split at the other's end; a replacing span stays whole, and what starts under it begins behind it.
    Spans are cut to the text; empty ones and those below `MAX_DEPTH` levels leave their text as it is.
    """
    waiting = [(max(span.start, 0), -min(span.end, len(text)), index, span) for index, span in enumerate(spans)]
    heapq.heapify(waiting)
    tree = _Tree(text)
    while waiting:
        start, minus_end, index, span = heapq.heappop(waiting)
        end = -minus_end
        if start < tree.position:
            start = tree.position
            if start < end:
                heapq.heappush(waiting, (start, minus_end, index, span))
            continue
        if start >= end:
            continue
        tree.advance(start)
        if span.tag in _REPLACING:
            tree.replace(span, end)
            continue
        boundary = tree.innermost_end
        if boundary < end:
            heapq.heappush(waiting, (boundary, minus_end, index, span))
            end = boundary
        tree.open(span, end)
    return tree.finish()


class _Tree:
    """The tree up to `position`; each open element ends no later than the one around it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._open = [_Open(Span(0, len(text), ""), len(text), [])]
        self.position = 0

    @property
    def innermost_end(self) -> int:
        return self._open[-1].end

    def advance(self, to: int) -> None:
        while len(self._open) > 1 and self._open[-1].end <= to:
            self._close()
        self._write(to)

    def open(self, span: Span, end: int) -> None:
        if len(self._open) <= MAX_DEPTH:
            self._open.append(_Open(span, end, []))

    def replace(self, span: Span, end: int) -> None:
        self._open[-1].children.append(Element(span.tag, span.attributes))
        self.position = end

    def finish(self) -> list[Node]:
        while len(self._open) > 1:
            self._close()
        self._write(len(self._text))
        return self._open[0].children

    def _write(self, to: int) -> None:
        if self.position < to:
            self._open[-1].children.append(self._text[self.position : to])
            self.position = to

    def _close(self) -> None:
        done = self._open.pop()
        if self.position < done.end:
            done.children.append(self._text[self.position : done.end])
            self.position = done.end
        self._open[-1].children.append(Element(done.span.tag, done.span.attributes, tuple(done.children)))
