"""Cutting bytes into lines, forwards and backwards, from any source that can be read at an offset.

Lines end at LF and nowhere else: `str.splitlines` also cuts at U+0085, U+2028 and U+2029, which stand unescaped
inside JSON strings (log-format 1).
"""

import json
from collections.abc import Callable, Iterator

from core.log.port import Line

ReadAt = Callable[[int, int], bytes]
"""``(offset, count)`` → at most ``count`` bytes."""

_BLOCK = 256 * 1024


def forward(read_at: ReadAt, start: int, size: int, *, block: int = _BLOCK) -> Iterator[Line]:
    """Lines of ``[start, size)``. A last line without LF counts if it is whole JSON; else it is a torn tail."""
    position, kept = start, b""
    offset = start
    while offset < size:
        chunk = read_at(offset, min(block, size - offset))
        if not chunk:
            break
        offset += len(chunk)
        *lines, kept = (kept + chunk).split(b"\n")
        for raw in lines:
            end = position + len(raw) + 1
            if raw.strip():
                yield Line(position, end, raw)
            position = end
    if kept.strip() and is_whole(kept):
        yield Line(position, position + len(kept), kept)


def backward(read_at: ReadAt, size: int, *, block: int = 64 * 1024) -> Iterator[Line]:
    """The lines of ``[0, size)`` from the end, read block by block."""
    offset = end = size
    kept, ended = b"", False
    while offset > 0:
        start = max(0, offset - block)
        kept = _exactly(read_at, start, offset - start) + kept
        offset = start
        first, *rest = kept.split(b"\n")
        for raw in reversed(rest):
            if raw.strip() and (ended or is_whole(raw)):
                yield Line(end - len(raw), end + ended, raw)
            end -= len(raw) + 1
            ended = True
        kept = first
    if kept.strip() and (ended or is_whole(kept)):
        yield Line(0, end + ended, kept)


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
