"""A backup made a data folder again: whole, or not at all."""

import hashlib
import os
import shutil
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, Final, NamedTuple

from core.backup.take import SUMS
from core.errors import BackupRefused
from core.files import make_folder, sync_folder

_UNFINISHED: Final = ".restoring"
_TOPS: Final = frozenset({"runtimes", ".store"})
_CHUNK: Final = 1024 * 1024


class Restored(NamedTuple):
    """``size`` in bytes."""

    files: int
    size: int


def restore(source: BinaryIO, folder: Path, *, progress: Callable[[int], None] = lambda _size: None) -> Restored:
    """Make ``folder`` what a backup holds; ``progress`` is told how many bytes are done. The folder's lock is the
    caller's. Blocks.

    Raises `BackupRefused` where the folder holds something already, and where this is no backup, or a damaged one;
    nothing is left of it then. Raises `OSError`.
    """
    if any((folder / top).exists() for top in _TOPS):
        raise BackupRefused(f"{folder} holds data already; set ISHIKI_DATA_DIR to a new folder, or move that one away")
    unfinished = folder / _UNFINISHED
    shutil.rmtree(unfinished, ignore_errors=True)  # of a restore that was cut off
    make_folder(unfinished)
    try:
        restored = _unpack(source, unfinished, progress)
        for top in sorted(_TOPS):
            if (unfinished / top).exists():
                (unfinished / top).rename(folder / top)
        sync_folder(folder)
    except (tarfile.TarError, EOFError, zlib.error, FileExistsError) as error:
        raise BackupRefused("that is no backup of ishiki, or it is cut off; take another one") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return restored


def _unpack(source: BinaryIO, into: Path, progress: Callable[[int], None]) -> Restored:
    """Every file of a backup, compared with its sums, durable. Raises `BackupRefused` and what `tarfile` raises."""
    sums: dict[str, str] = {}
    size = 0
    wanted: str | None = None
    with tarfile.open(fileobj=source, mode="r|*") as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isreg() else None
            if content is None or wanted is not None:
                raise BackupRefused("that is no backup of ishiki: it holds what no data folder does")
            if member.name == SUMS:
                wanted = content.read(member.size).decode("utf-8", "replace")
                continue
            sums[member.name] = _write(content, into / _path(member.name))
            size += member.size
            progress(size)
    if wanted is None or wanted != "".join(f"{digest}  {name}\n" for name, digest in sums.items()):
        raise BackupRefused("the backup is damaged or cut off; take another one")
    os.sync()  # one for all: thousands of files, each synced by itself, take minutes
    return Restored(len(sums), size)


def _path(name: str) -> PurePosixPath:
    """Where a member belongs. Raises `BackupRefused` for what would lie anywhere else."""
    path = PurePosixPath(name)
    if len(path.parts) < 2 or path.parts[0] not in _TOPS or ".." in path.parts or "\0" in name:
        raise BackupRefused("that is no backup of ishiki: it holds what no data folder does")
    return path


def _write(content: IO[bytes], path: Path) -> str:
    """A file and the folders above it, for nobody but us. Returns its SHA-256."""
    make_folder(path.parent)
    hashed = hashlib.sha256()
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123 - by descriptor
        while chunk := content.read(_CHUNK):
            hashed.update(chunk)
            file.write(chunk)
    return hashed.hexdigest()
