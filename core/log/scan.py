"""One fast pass over a log: what is in it, one turn of it, which lines are bad. Memory does not grow with the file."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple, cast

import msgspec

from core.log.lines import ReadAt, cuts

MOST_NAMED = 1000
"""Bad lines that are named by number; the others are only counted."""


class Numbered(NamedTuple):
    """Everything before one LF, by the number that editors and other tools give that line, from 1."""

    number: int
    start: int
    raw: bytes
    ended: bool


@dataclass(slots=True)
class Stats:
    """``types`` and ``messages`` count as the first two recipes of log-format 13 do. Times in Unix milliseconds."""

    size: int = 0
    lines: int = 0
    types: Counter[str] = field(default_factory=Counter[str])
    messages: Counter[str] = field(default_factory=Counter[str])
    turns: Counter[str] = field(default_factory=Counter[str])
    first: int | None = None
    last: int | None = None
    bad_lines: int = 0
    bad: list[int] = field(default_factory=list[int])
    torn_tail: bool = False


class _Data(msgspec.Struct):
    type: Any = None
    role: Any = None


class Kind(msgspec.Struct, rename="camel"):
    """The members that say what a line is; None where it has none."""

    type: Any = None
    timestamp: Any = None
    turn_id: Any = None
    data: _Data = msgspec.field(default_factory=_Data)

    @property
    def name(self) -> str:
        """The entry's own type, as jq prints it."""
        return _printed(self.type)

    @property
    def message(self) -> str:
        """``.data.type // .data.role``."""
        missing = self.data.type is None or self.data.type is False
        return _printed(self.data.role if missing else self.data.type)


class _UsualData(msgspec.Struct, gc=False):
    type: str | None = None
    role: str | None = None


class _Usual(msgspec.Struct, gc=False):
    """A line as the format wants it."""

    type: str
    timestamp: int
    data: _UsualData


_kind = msgspec.json.Decoder(Kind)
_usual = msgspec.json.Decoder(_Usual)
_NAMES = attrgetter("type", "data.type", "data.role")
_TIMESTAMP = attrgetter("timestamp")
_BLOCK = 256 * 1024


def numbered(read_at: ReadAt, size: int) -> Iterator[Numbered]:
    """Every line of ``[0, size)``, also blank and bad ones."""
    for number, (start, raw, ended) in enumerate(cuts(read_at, 0, size), 1):
        yield Numbered(number, start, raw, ended)


def kind_of(raw: bytes) -> Kind | None:
    """What a line is, whatever its shape; None where it is no JSON object."""
    try:
        return _kind.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # of another shape, or with what only the standard library's parser takes
    try:
        value: object = json.loads(raw, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    line = cast("dict[str, object]", value)
    data = line.get("data")
    inner = cast("dict[str, object]", data) if isinstance(data, dict) else {}
    return Kind(
        type=line.get("type"),
        timestamp=line.get("timestamp"),
        turn_id=line.get("turnId"),
        data=_Data(type=inner.get("type"), role=inner.get("role")),
    )


def stats(read_at: ReadAt, size: int) -> Stats:
    """Count what a log holds. Blank lines do not count."""
    found = Stats(size=size)
    before = 0
    for lines, ended in _many(read_at, size):
        if not ended or not _count_together(found, lines):
            for number, raw in enumerate(lines, before + 1):
                _count_one(found, number, raw, ended=ended)
        before += len(lines)
    return found


def _many(read_at: ReadAt, size: int) -> Iterator[tuple[list[bytes], bool]]:
    """All lines, some hundreds at a time; what has no LF at the end comes last, by itself, and with False."""
    offset = 0
    kept: list[bytes] = []
    while offset < size and (chunk := read_at(offset, min(_BLOCK, size - offset))):
        offset += len(chunk)
        first, *lines = chunk.split(b"\n")
        kept.append(first)
        if lines:
            last = lines.pop()
            yield [b"".join(kept), *lines], True
            kept = [last]
    if rest := b"".join(kept):
        yield [rest], False


def _count_together(found: Stats, lines: list[bytes]) -> bool:
    """Count lines that are all as the format wants them, without a step of Python for each. False: none was counted."""
    try:
        kinds = [*map(_usual.decode, lines)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    for (entry_type, data_type, role), times in Counter(map(_NAMES, kinds)).items():
        found.types[entry_type] += times
        name = _printed(role if data_type is None else data_type)
        if entry_type == "message":
            found.messages[name] += times
        elif entry_type == "event":
            found.turns[name] += times
    found.lines += len(lines)
    moments = [moment for moment in (found.first, found.last) if moment is not None]
    moments += map(_TIMESTAMP, kinds)
    found.first, found.last = min(moments), max(moments)
    return True


def _count_one(found: Stats, number: int, raw: bytes, *, ended: bool) -> None:
    if not raw.strip():
        return
    kind = kind_of(raw)
    if kind is None and not ended:
        found.torn_tail = True
    elif kind is None:
        found.bad_lines += 1
        if len(found.bad) < MOST_NAMED:
            found.bad.append(number)
    else:
        _count(found, kind)


def of_turn(read_at: ReadAt, size: int, turn: str) -> Iterator[Numbered]:
    """The lines of one turn, wherever they stand: grouped by id, never by position (log-format 2.1)."""
    needle = turn.encode("utf-8", "replace")
    for line in numbered(read_at, size):
        if needle in line.raw and (kind := kind_of(line.raw)) is not None and kind.turn_id == turn:
            yield line


def _count(found: Stats, kind: Kind) -> None:
    found.lines += 1
    found.types[kind.name] += 1
    if kind.type == "message":
        found.messages[kind.message] += 1
    elif kind.type == "event":
        found.turns[kind.message] += 1
    if isinstance(kind.timestamp, int):
        found.first = kind.timestamp if found.first is None else min(found.first, kind.timestamp)
        found.last = kind.timestamp if found.last is None else max(found.last, kind.timestamp)


def _printed(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no JSON")
