"""``action.log`` on disk: lines are added, and what is old is cut off. All of this blocks and raises `OSError`."""

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from core.actionlog.line import Line, Replayed, replay
from core.files import write_all, write_whole

NAME: Final = "action.log"
MOST_BYTES: Final = 1024 * 1024
KEPT_BYTES: Final = 768 * 1024
_REPLAYED_BYTES: Final = 2 * MOST_BYTES


def add(folder: Path, lines: Sequence[Line], *, most: int = MOST_BYTES, kept: int = KEPT_BYTES) -> None:
    """Add lines in one write, behind a line feed where a crash left a torn one; nothing where the folder is gone."""
    path = folder / NAME
    text = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
    with suppress(FileNotFoundError):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            write_all(descriptor, b"\n" + text if torn else text)
        finally:
            os.close(descriptor)
        if size + len(text) > most:
            write_whole(path, _end_of(path, kept))


def added_already(folder: Path, lines: Sequence[Line]) -> Counter[Line]:
    """Which of these lines stand near the end of the file, as another window wrote them: as often as they do."""
    wanted = {_anonymous(line) for line in lines}
    room = sum(len(str(line)) * 4 for line in lines) + KEPT_BYTES // 8
    found = (_anonymous(line) for line, _ in _replayed(folder, room, len(lines) * 2 + 4096).events)
    return Counter(line for line in found if line in wanted)


def without(lines: Sequence[Line], there: Counter[Line]) -> list[Line]:
    """Those that do not stand there; each that does is taken for one of them."""
    left: list[Line] = []
    for line in lines:
        if there[_anonymous(line)] > 0:
            there[_anonymous(line)] -= 1
        else:
            left.append(line)
    return left


def load(folder: Path) -> Replayed:
    """What the end of the file tells; nothing where there is none."""
    return _replayed(folder, _REPLAYED_BYTES)


def _replayed(folder: Path, room: int, most: int | None = None) -> Replayed:
    path = folder / NAME
    try:
        end = _end_of(path, room)
    except FileNotFoundError:
        return Replayed([], 0)
    lines = end.decode("utf-8", "replace").split("\n")[:-1]
    return replay(lines) if most is None else replay(lines, most=most)


def _end_of(path: Path, most: int) -> bytes:
    """The whole lines in the last bytes of a file; its last line where that alone is longer."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - most - 1))
        end = file.read()
        if size <= most:
            return end
        whole = end[end.find(b"\n") + 1 :]
        if whole:
            return whole
        file.seek(0)
        return file.read()[:-1].rpartition(b"\n")[2] + b"\n"


def _anonymous(line: Line) -> Line:
    return line._replace(window="")
