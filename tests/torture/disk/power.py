"""What a machine may find on its disk when the power comes back.

POSIX promises little: content is there once its file was synced, a name once its folder was. Of all that was not
synced any part may be there, in any combination; a write may be there in part, or as zeros. A rename is there or not.
"""

import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.torture.disk.machine import Machine, Step

_FOLDER: Final = -1

Names = dict[Path, int]
"""What stands under a name: the number of a content, or `_FOLDER`."""


class State(NamedTuple):
    """One disk that may be found, and what was said before the power went."""

    names: Names
    contents: dict[int, bytes]
    said: tuple[bytes, ...]

    def write(self, folder: Path, into: Path) -> None:
        for path, number in sorted(self.names.items()):
            place = into / path.relative_to(folder)
            if number == _FOLDER:
                place.mkdir(mode=0o700)
            else:
                place.write_bytes(self.contents.get(number, b""))


class _Disk:
    """What is durable for sure, and what was done since."""

    def __init__(self, top: Path, names: Names, contents: dict[int, bytes]) -> None:
        self._top = top
        self.names = names
        self.contents = contents
        self.pending: list[Step] = []

    def do(self, step: Step) -> None:
        if step.name != "sync":
            self.pending.append(step)
            return
        settled = _concerns_content_of(step.file) if step.file else _concerns_names_in(step.path)
        for done in [done for done in self.pending if settled(done)]:
            _apply(done, self.names, self.contents)
            self.pending.remove(done)

    def with_some(self, chosen: Iterable[Step]) -> tuple[Names, dict[int, bytes]]:
        names, contents = dict(self.names), dict(self.contents)
        for step in chosen:
            _apply(step, names, contents)
        reached: Names = {}
        for path, number in sorted(names.items()):
            if path.parent == self._top or path.parent in reached:
                reached[path] = number
        return reached, contents


def states(machine: Machine, before: dict[Path, bytes], chance: random.Random, *, tries: int) -> Iterator[State]:
    """Disks that a cut at any moment of a run may leave, each once. ``before`` is what stood there durably."""
    names: Names = dict.fromkeys(machine.folders_at_first, _FOLDER) | machine.names_at_first
    disk = _Disk(machine.folder, names, {machine.names_at_first[path]: content for path, content in before.items()})
    said: list[bytes] = []
    seen: set[object] = set()
    for step in [*machine.steps, Step("sync")]:
        # What may be found only grows from one sync to the next, so a cut just before each is a cut anywhere.
        if step.name in {"sync", "say"}:
            for chosen in _choices(disk.pending, chance, tries):
                found, contents = disk.with_some(chosen)
                key = (len(said), frozenset((path, contents.get(number)) for path, number in found.items()))
                if key not in seen:
                    seen.add(key)
                    yield State(found, contents, tuple(said))
        if step.name == "say":
            said.append(step.said)
        else:
            disk.do(step)


def _choices(pending: list[Step], chance: random.Random, tries: int) -> Iterator[list[Step]]:
    """Ways in which what is not synced may be there: none, all, one alone, all but one, torn, and any."""
    yield []
    yield list(pending)
    for at, step in enumerate(pending):
        yield [step]
        yield [*pending[:at], *pending[at + 1 :]]
        for torn in _torn(step, chance):
            yield [*pending[:at], torn, *pending[at + 1 :]]
            yield [torn]
    for _ in range(tries):
        yield [chance.choice([step, *_torn(step, chance)]) for step in pending if chance.random() < 0.6]


def _torn(step: Step, chance: random.Random) -> list[Step]:
    if step.name != "write" or not step.content:
        return []
    cut = chance.randrange(len(step.content))
    zeros = bytes(len(step.content) - cut)
    return [
        step._replace(content=step.content[:cut]),
        step._replace(content=step.content[:cut] + zeros),
        step._replace(content=bytes(cut) + step.content[cut:]),
    ]


def _apply(step: Step, names: Names, contents: dict[int, bytes]) -> None:
    if step.name == "write":
        content = contents.get(step.file, b"").ljust(step.offset, b"\0")
        contents[step.file] = content[: step.offset] + step.content + content[step.offset + len(step.content) :]
    elif step.name == "truncate":
        contents[step.file] = contents.get(step.file, b"")[: step.offset].ljust(step.offset, b"\0")
    elif step.name == "rename":
        # The content that had the old name has the new one, whether or not the old one had come to be durable.
        names.pop(step.path, None)
        names[step.other] = step.file
    elif step.name == "unlink":
        names.pop(step.path, None)
    elif step.name == "mkdir":
        names[step.path] = _FOLDER
    else:
        names[step.path] = step.file


def _concerns_content_of(file: int) -> Callable[[Step], bool]:
    return lambda step: step.name in {"write", "truncate"} and step.file == file


def _concerns_names_in(folder: Path) -> Callable[[Step], bool]:
    return lambda step: step.name not in {"write", "truncate"} and step.path.parent == folder
