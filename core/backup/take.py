"""Copying a data folder while its owner writes to it.

What is copied first may be older than what is copied after it, so the order is that of what depends on what: the
database, whose receipts must not be ahead of the logs; then in each session the length of its log, the sidecars that
its lines name, the bytes that those describe, and the log up to that length. A restored folder looks like one whose
process was killed when the backup began, and goes on from there.
"""

import hashlib
import io
import os
import sqlite3
import tarfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import BinaryIO, Final, NamedTuple, Protocol, cast

from core.ids import is_session_id
from core.log.records import Record
from core.log.view import View, read_journal

SUMS: Final = "SHA256SUMS"
"""The last member of a backup: a line for each other one, as ``sha256sum`` writes and checks it."""
_DATABASE: Final = Path(".store/history.db")
_CHUNK: Final = 1024 * 1024

Progress = Callable[[int, int], None]
"""Told how many sessions are done, of how many."""


class Source(Protocol):
    def read(self, size: int, /) -> bytes: ...


class Taken(NamedTuple):
    """What a backup holds. ``size`` in bytes, before any compression; ``unreadable`` names what is not in it, and why.

    A file that went away in between was taken back, or replaced, and is not missed.
    """

    sessions: int
    files: int
    size: int
    unreadable: dict[str, str]


def take(folder: Path, into: BinaryIO, *, compress: bool, progress: Progress = lambda _done, _of: None) -> Taken:
    """Write a backup of a data folder, as tar. Blocks. Needs no lock. Raises `OSError` and `sqlite3.Error`."""
    # Streaming: the destination may be a pipe, which cannot be gone back in.
    with tarfile.open(fileobj=into, mode="w|gz" if compress else "w|", format=tarfile.PAX_FORMAT) as archive:
        packing = _Packing(folder, archive)
        packing.database()
        runtimes = folder / "runtimes"
        # A line may stand in its log a moment before its sidecar is there; the journal, read after the lengths, has it.
        lengths = dict(_lengths(runtimes))
        journal = read_journal(folder)
        names = sorted(lengths.keys() | set(filter(is_session_id, journal)))
        for number, name in enumerate(names):
            progress(number, len(names))
            packing.session(runtimes / name, lengths.get(name, 0), journal.get(name, ()))
        packing.sums()
        progress(len(names), len(names))
    return Taken(len(names), packing.files, packing.size, packing.unreadable)


class _Packing:
    def __init__(self, folder: Path, archive: tarfile.TarFile) -> None:
        self._folder = folder
        self._archive = archive
        self._sums: list[str] = []
        self.files = self.size = 0
        self.unreadable: dict[str, str] = {}

    def database(self) -> None:
        """A copy of history.db as of one moment, by SQLite's own means, and the large files that it names."""
        path = self._folder / _DATABASE
        if path.exists():
            with _copied(path) as copy:
                self._content(copy, os.fstat(copy.fileno()).st_size, _DATABASE)
        for extra in _files(path.parent / "temp"):
            self._file(extra)

    def session(self, place: Path, length: int, records: Sequence[Record]) -> None:
        """One session, whole up to the end of its log as it was before the rest was looked at, or to what the journal
        has of it."""
        log = place / "events.jsonl"
        try:
            view = View(log, records)
        except OSError as error:
            self.unreadable[place.name] = error.strerror or str(error)
            return
        with view:
            size = _whole_lines(view, max([length, *(record.offset + len(record.content) for record in records)]))
            found = dict.fromkeys(_in_order(place, beside=log))
            for path in found:
                self._file(path)
            for name, content in view.sidecars.items():
                if place / name not in found:
                    self._content(io.BytesIO(content), len(content), (place / name).relative_to(self._folder))
            self._content(_Reader(view), size, log.relative_to(self._folder))

    def sums(self) -> None:
        content = "".join(self._sums).encode()
        self._archive.addfile(_member(SUMS, len(content)), io.BytesIO(content))

    def _file(self, path: Path) -> None:
        name = path.relative_to(self._folder)
        try:
            file = path.open("rb")
        except FileNotFoundError:
            return
        except OSError as error:
            self.unreadable[str(name)] = error.strerror or str(error)
            return
        with file:
            # One that is appended to meanwhile is copied as long as it was; the others are replaced whole.
            self._content(file, os.fstat(file.fileno()).st_size, name)

    def _content(self, source: Source, size: int, name: Path) -> None:
        hashed = _Hashed(source)
        self._archive.addfile(_member(name.as_posix(), size), hashed)  # pyright: ignore[reportArgumentType] - it is only read
        self._sums.append(f"{hashed.digest}  {name.as_posix()}\n")
        self.files += 1
        self.size += size


class _Hashed:
    """A source whose bytes are hashed as they are read."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._hash = hashlib.sha256()

    def read(self, size: int, /) -> bytes:
        found = self._source.read(size)
        self._hash.update(found)
        return found

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()


class _Reader:
    """A log from its beginning on, with what the journal lays over it."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._offset = 0

    def read(self, size: int, /) -> bytes:
        found = self._view.read_at(self._offset, size)
        self._offset += len(found)
        return found


def _lengths(runtimes: Path) -> Iterator[tuple[str, int]]:
    """Every session that has a folder, and how long its log is now."""
    for place in runtimes.iterdir() if runtimes.is_dir() else ():
        if is_session_id(place.name):
            try:
                yield place.name, (place / "events.jsonl").stat().st_size
            except OSError:
                yield place.name, 0  # none yet; or what it is instead is told when it is opened


def _whole_lines(view: View, end: int) -> int:
    """Up to where a log holds whole lines: what is being written at this moment is not acknowledged yet."""
    while end:
        start = max(0, end - _CHUNK)
        found = view.read_at(start, end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _in_order(place: Path, *, beside: Path) -> list[Path]:
    """The files of a session but its log: what is pending, sidecars before the bytes that they describe."""
    found = [path for path in _files(place) if path != beside]
    return sorted(found, key=lambda path: (path.suffix != ".json", path))


def _files(folder: Path) -> Iterator[Path]:
    """Every file below a folder, but those that are being written. Links are not followed: we make none."""
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_file() and not path.is_symlink() and not path.name.startswith(".new."):
            yield path


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = size, 0o600, int(time.time())
    return member


@contextmanager
def _copied(database: Path) -> Generator[BinaryIO]:
    """A copy as of one moment, in a file that has no name any more, so that nothing can leave it behind."""
    with NamedTemporaryFile(dir=database.parent, prefix=".new.") as copy:
        with (
            closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(copy.name)) as target,
        ):
            target.execute("PRAGMA journal_mode = OFF")
            source.backup(target)
        yield cast("BinaryIO", copy.file)
