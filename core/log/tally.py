"""What a table of sessions says of a log, by counting bytes: nearly no line is read."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from core.log.lines import ReadAt, backward
from core.log.scan import kind_of

_BLOCK: Final = 4 * 1024 * 1024
# As our codec writes them. Quotes within a text are escaped, so nobody can say this in a chat.
_START: Final = b'"type":"event","data":{"type":"turn.start"'
_DONE: Final = b'"type":"event","data":{"type":"turn.done"'
_FAILED: Final = b'"type":"event","data":{"type":"turn.failed"'
_SENT: Final = b'"type":"tool-call",'
_SENDING: Final = b'"toolName":"send_message"'
_TURN: Final = re.compile(rb'"turnId":"([^"]*)"\}\Z')


class Tally(NamedTuple):
    """``last_at`` is the time of the last line in ms, None where there is none.

    ``silent`` counts turns that came to their end and said nothing (sessions.md 6, 15), ``failed`` those that failed;
    ``turned``: there was one.
    """

    entries: int = 0
    last_at: int | None = None
    silent: int = 0
    failed: int = 0
    turned: bool = False


def tally(read_at: ReadAt, size: int) -> Tally:
    """Count the lines of ``[0, size)``; one without its line feed is none. Blocks."""
    entries = failed = 0
    turned = False
    done: set[bytes] = set()
    spoke: set[bytes] = set()
    for block in _blocks(read_at, size):
        entries += block.count(b"\n")
        if b"turn." in block:
            turned = turned or _START in block
            failed += sum(1 for _ in _holding(block, _FAILED))
            done.update(_turns(_holding(block, _DONE)))
        if _SENDING in block:
            spoke.update(_turns(line for line in _holding(block, _SENDING) if _SENT in line))
    newest = next(backward(read_at, size, block=4096), None)
    kind = None if newest is None else kind_of(newest.raw)
    last_at = kind.timestamp if kind is not None and isinstance(kind.timestamp, int) else None
    return Tally(entries, last_at, len(done - spoke), failed, turned)


def _blocks(read_at: ReadAt, size: int) -> Iterator[bytes]:
    """Whole lines, many at a time."""
    offset, rest = 0, b""
    while offset < size and (chunk := read_at(offset, min(_BLOCK, size - offset))):
        offset += len(chunk)
        end = chunk.rfind(b"\n") + 1
        if end:
            yield rest + chunk[:end]
            rest = chunk[end:]
        else:
            rest += chunk


def _holding(block: bytes, needle: bytes) -> Iterator[bytes]:
    """The lines that hold ``needle``."""
    found = block.find(needle)
    while found >= 0:
        end = block.index(b"\n", found)
        yield block[block.rfind(b"\n", 0, found) + 1 : end]
        found = block.find(needle, end)


def _turns(lines: Iterator[bytes]) -> Iterator[bytes]:
    return (match[1] for line in lines if (match := _TURN.search(line)) is not None)
