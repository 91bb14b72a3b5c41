"""Small files, in place whole or not at all. Everything here blocks."""

import os
import secrets
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """By temporary file, flush and rename, 0600. Durable once its folder is synced. Raises `OSError`."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
    finally:
        temporary.unlink(missing_ok=True)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
