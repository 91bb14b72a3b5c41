"""The operating system as a trial sees it: every call that changes a disk has a number and can go wrong.

The calls themselves are replaced, not our seams to them, so that all code is tried as it is: the log, small files in
place whole, folders, the bytes of resources. What was done is kept as steps, from which `power` makes what a power
cut leaves.
"""

import errno
import os
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, NamedTuple, Self

CALLS: Final = (
    *("open", "close", "write", "pwrite", "ftruncate", "fsync", "fdatasync"),
    *("rename", "replace", "link", "unlink", "mkdir", "rmdir"),
)
"""What is replaced in `os`. pathlib calls these too."""
ENDED: Final = 77
"""The exit code of a process that a fault ended."""

Kind = Literal["end", "torn end", "EIO", "ENOSPC", "short"]
"""``end``: the process ends before the call. ``torn end``: a write has written half by then. ``EIO`` and ``ENOSPC``:
the call fails, a write after half of it. ``short``: a write writes half and says so."""


class Step(NamedTuple):
    """One thing that was done. ``file`` is the number of some content, whatever name it stands under."""

    name: str
    path: Path = Path()
    other: Path = Path()
    file: int = 0
    offset: int = 0
    content: bytes = b""
    said: bytes = b""


class Machine:
    """While it is entered, all calls that change something below ``folder`` go through it, one at a time.

    ``at`` are the numbers of the calls, from 1, that go wrong.
    """

    def __init__(self, folder: Path, fault: Kind | None = None, at: Iterable[int] = ()) -> None:
        self.folder = folder
        self.calls = 0
        self.writes: list[int] = []
        """The numbers of the calls that can be cut short."""
        self.steps: list[Step] = []
        self.trusted_after_failure: list[Path] = []
        """Files that were synced again by a descriptor whose sync had failed: what it says is worth nothing."""
        self._fault = fault
        self._at = frozenset(at)
        self._real: dict[str, Callable[..., Any]] = {}
        self._turn = threading.RLock()
        self._names: dict[Path, int] = {path: number for number, path in enumerate(_files_in(folder), 1)}
        self._descriptors: dict[int, tuple[Path, int]] = {}
        self._failed: set[int] = set()
        self.names_at_first = dict(self._names)
        self.folders_at_first = [path for path in folder.rglob("*") if path.is_dir()]

    def say(self, fact: bytes) -> None:
        """Note that something was promised now."""
        with self._turn:
            self.steps.append(Step("say", said=fact))

    def said(self) -> list[bytes]:
        return [step.said for step in self.steps if step.name == "say"]

    def __enter__(self) -> Self:
        for name in CALLS:
            self._real[name] = getattr(os, name)
            setattr(os, name, self._guarded(getattr(self, f"_do_{name}")))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name, call in self._real.items():
            setattr(os, name, call)

    def _guarded(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def one_at_a_time(*args: Any, **named: Any) -> Any:
            with self._turn:
                return call(*args, **named)

        return one_at_a_time

    def _meet(self, half: Callable[[], int] | None = None) -> int | None:
        """Count a call, which goes wrong if it is its turn. Returns how much a write that is cut short has written."""
        self.calls += 1
        if half is not None:
            self.writes.append(self.calls)
        if self.calls not in self._at or self._fault is None:
            return None
        if self._fault == "short":
            return half() if half else None
        if half is not None and self._fault != "end":
            half()
        if self._fault in {"end", "torn end"}:
            os._exit(ENDED)
        code = errno.EIO if self._fault == "EIO" else errno.ENOSPC
        raise OSError(code, os.strerror(code))

    def _ours(self, path: Any) -> Path | None:
        found = Path(os.fsdecode(path))
        return found if found.is_relative_to(self.folder) else None

    # --- descriptors ----------------------------------------------------------------------------------------------

    def _do_open(self, path: Any, flags: int, mode: int = 0o777, **named: Any) -> int:
        ours = self._ours(path)
        if ours is None or named:
            return self._real["open"](path, flags, mode, **named)
        makes = flags & os.O_CREAT and not ours.exists()
        if makes or flags & os.O_TRUNC:
            self._meet()
        descriptor: int = self._real["open"](path, flags, mode)
        if makes:
            self._names[ours] = len(self.steps) + 1_000_000
            self.steps.append(Step("link", ours, file=self._names[ours]))
        elif flags & os.O_TRUNC:
            self.steps.append(Step("truncate", ours, file=self._names[ours]))
        self._descriptors[descriptor] = (ours, self._names.get(ours, 0))
        self._failed.discard(descriptor)
        return descriptor

    def _do_close(self, descriptor: int) -> None:
        self._descriptors.pop(descriptor, None)
        self._real["close"](descriptor)

    def _do_write(self, descriptor: int, content: Any) -> int:
        if descriptor not in self._descriptors:
            return self._real["write"](descriptor, content)
        return self._put(descriptor, bytes(content), os.lseek(descriptor, 0, os.SEEK_CUR), self._append)

    def _do_pwrite(self, descriptor: int, content: Any, offset: int) -> int:
        if descriptor not in self._descriptors:
            return self._real["pwrite"](descriptor, content, offset)
        return self._put(descriptor, bytes(content), offset, self._real["pwrite"])

    def _append(self, descriptor: int, content: bytes, _offset: int) -> int:
        return self._real["write"](descriptor, content)

    def _put(self, descriptor: int, content: bytes, offset: int, write: Callable[[int, bytes, int], int]) -> int:
        path, file = self._descriptors[descriptor]

        def put(piece: bytes) -> int:
            written = write(descriptor, piece, offset)
            self.steps.append(Step("write", path, file=file, offset=offset, content=piece[:written]))
            return written

        half = len(content) // 2
        short = self._meet((lambda: put(content[:half])) if half else None)
        return put(content) if short is None else short

    def _do_ftruncate(self, descriptor: int, size: int) -> None:
        if descriptor in self._descriptors:
            path, file = self._descriptors[descriptor]
            self._meet()
            self.steps.append(Step("truncate", path, file=file, offset=size))
        self._real["ftruncate"](descriptor, size)

    def _do_fsync(self, descriptor: int) -> None:
        self._sync(descriptor, "fsync")

    def _do_fdatasync(self, descriptor: int) -> None:
        self._sync(descriptor, "fdatasync")

    def _sync(self, descriptor: int, name: str) -> None:
        if descriptor not in self._descriptors:
            self._real[name](descriptor)
            return
        path, file = self._descriptors[descriptor]
        if descriptor in self._failed:
            self.trusted_after_failure.append(path)
        try:
            self._meet()
        except OSError:
            self._failed.add(descriptor)
            raise
        self.steps.append(Step("sync", path, file=file))

    # --- names ----------------------------------------------------------------------------------------------------

    def _do_rename(self, source: Any, target: Any, **named: Any) -> None:
        ours, other = self._ours(source), self._ours(target)
        if ours is not None and other is not None:
            self._meet()
        self._real["replace"](source, target, **named)
        if ours is not None and other is not None:
            self._names[other] = self._names.pop(ours)
            self.steps.append(Step("rename", ours, other, file=self._names[other]))

    _do_replace = _do_rename

    def _do_link(self, source: Any, target: Any, **named: Any) -> None:
        ours, other = self._ours(source), self._ours(target)
        if ours is not None and other is not None:
            self._meet()
        self._real["link"](source, target, **named)
        if ours is not None and other is not None:
            self._names[other] = self._names[ours]
            self.steps.append(Step("link", other, file=self._names[ours]))

    def _do_unlink(self, path: Any, **named: Any) -> None:
        self._drop("unlink", path, named)

    def _do_rmdir(self, path: Any, **named: Any) -> None:
        self._drop("rmdir", path, named)

    def _drop(self, name: str, path: Any, named: dict[str, Any]) -> None:
        ours = self._ours(path)
        if ours is not None and os.path.lexists(ours):
            self._meet()
        self._real[name](path, **named)
        if ours is not None:
            self._names.pop(ours, None)
            self.steps.append(Step("unlink", ours))

    def _do_mkdir(self, path: Any, mode: int = 0o777, **named: Any) -> None:
        ours = self._ours(path)
        if ours is not None and not ours.exists():
            self._meet()
        self._real["mkdir"](path, mode, **named)
        if ours is not None:
            self.steps.append(Step("mkdir", ours))


def attempt(folder: Path, work: Callable[[Machine], object], fault: Kind, at: int) -> tuple[bool, list[bytes]]:
    """Do it in a process of its own that ends at a call. Returns whether it did, and what was said until then.

    What is said there is bytes without a line feed.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the thread that reports to pytest holds nothing of ours
        child = os.fork()
    if child == 0:
        status = 1
        try:
            with _Telling(folder, fault, {at}, writing) as machine:
                work(machine)
            status = 0
        except BaseException:  # noqa: BLE001 - this process is a copy of the one that tests: it never goes on from here
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().split(b"\n")[:-1]
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in {0, ENDED}, f"the child ended with {code}"
    return code == ENDED, said


class _Telling(Machine):
    """Says what is promised through a pipe: it is out when the process ends a moment later."""

    def __init__(self, folder: Path, fault: Kind, at: Iterable[int], pipe: int) -> None:
        super().__init__(folder, fault, at)
        self._pipe = pipe

    def say(self, fact: bytes) -> None:
        os.write(self._pipe, fact + b"\n")


def _files_in(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if not path.is_dir()]
