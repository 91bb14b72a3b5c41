"""Cutting bytes into lines, forwards and backwards, from any source that can be read at an offset.

Lines end at LF and nowhere else: `str.splitlines` also cuts at U+0085, U+2028 and U+2029, which stand unescaped
inside JSON strings (log-format 1).
"""

import json
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

ReadAt = Callable[[int, int], bytes]
"""``(offset, count)`` → at most ``count`` bytes."""

_BLOCK = 64 * 1024


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


class Cut(NamedTuple):
    """Everything between two line feeds, also what is blank; ``ended``: an LF follows."""

    start: int
    raw: bytes
    ended: bool


def cuts(read_at: ReadAt, start: int, size: int, *, block: int = _BLOCK) -> Iterator[Cut]:
    """All of ``[start, size)`` in pieces; a piece without LF comes last, and is not there when the LF is."""
    position = offset = start
    kept: list[bytes] = []
    while offset < size and (chunk := read_at(offset, min(block, size - offset))):
        offset += len(chunk)
        first, *more = chunk.split(b"\n")
        kept.append(first)
        for later in more:
            raw = b"".join(kept)
            yield Cut(position, raw, ended=True)
            position += len(raw) + 1
            kept = [later]
    if raw := b"".join(kept):
        yield Cut(position, raw, ended=False)


def forward(read_at: ReadAt, start: int, size: int, *, block: int = _BLOCK) -> Iterator[Block]:
    """The lines of ``[start, size)``. A last line without LF counts if it is whole JSON; else it is a torn tail."""
    position = offset = start
    kept: list[bytes] = []
    while offset < size and (chunk := read_at(offset, min(block, size - offset))):
        offset += len(chunk)
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join([*kept, lines[0]])
            kept.clear()
            yield Block(position, offset - len(rest), lines)
            position = offset - len(rest)
        kept.append(rest)
    if (rest := b"".join(kept)).strip() and is_whole(rest):
        yield Block(position, position + len(rest), [rest])


def backward(read_at: ReadAt, size: int, *, block: int = 64 * 1024) -> Iterator[Line]:
    """The lines of ``[0, size)`` from the end, read block by block."""
    offset = end = size
    kept: list[bytes] = []
    ended = False
    while offset > 0:
        start = max(0, offset - block)
        *earlier, last = _exactly(read_at, start, offset - start).split(b"\n")
        offset = start
        kept.append(last)
        for before in reversed(earlier):
            raw = b"".join(reversed(kept))
            if raw.strip() and (ended or is_whole(raw)):
                yield Line(end - len(raw), end + ended, raw)
            end -= len(raw) + 1
            kept, ended = [before], True
    raw = b"".join(reversed(kept))
    if raw.strip() and (ended or is_whole(raw)):
        yield Line(0, end + ended, raw)


def containing(read_at: ReadAt, size: int, needle: bytes, *, block: int = 1024 * 1024) -> Iterator[Line]:
    """Lines of ``[0, size)`` that hold ``needle``, from the end; blocks without it are not cut into lines."""
    end = size
    while end > 0:
        start = max(0, end - block)
        found = _exactly(read_at, start, min(size, end + len(needle) - 1) - start).rfind(needle)
        if found < 0:
            end = start
            continue
        line = _line_around(read_at, start + found, size)
        if line.end > 0 and (line.end < size or is_whole(line.raw)):
            yield line
        end = line.start


def number_at(read_at: ReadAt, position: int, *, block: int = _BLOCK) -> int:
    """The 1-based number of the line that starts at a position."""
    starts = range(0, position, block)
    return 1 + sum(read_at(start, min(block, position - start)).count(b"\n") for start in starts)


def is_whole(raw: bytes) -> bool:
    """Whether an unended line is a whole JSON value rather than a torn one."""
    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return True


def _line_around(read_at: ReadAt, position: int, size: int) -> Line:
    start = position
    before = b""
    while start > 0 and b"\n" not in before:
        step = min(4096, start)
        before = _exactly(read_at, start - step, step)
        start -= step
    start += before.rfind(b"\n") + 1 if b"\n" in before else 0
    end, after = position, b""
    while end < size and b"\n" not in after:
        after = read_at(end, min(4096, size - end))
        if not after:
            break
        end += after.find(b"\n") if b"\n" in after else len(after)
    return Line(start, min(end + 1, size), _exactly(read_at, start, end - start))


def _exactly(read_at: ReadAt, offset: int, count: int) -> bytes:
    pieces: list[bytes] = []
    while count > 0 and (piece := read_at(offset, count)):
        pieces.append(piece)
        offset += len(piece)
        count -= len(piece)
    return b"".join(pieces)
