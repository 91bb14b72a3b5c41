"""Small files are in place whole or not at all."""

import errno
import os
import stat
from pathlib import Path

import pytest

from core.files import sync_folder, write_whole


def test_a_file_is_replaced_whole_and_only_we_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for content in (b"first" * 1000, b"", b"last"):
        write_whole(path, content)
        assert path.read_bytes() == content
    sync_folder(tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_what_was_there_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.json"
    write_whole(path, b"before")

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, b"after")
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_where_there_is_no_folder_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "none" / "a.json", b"x")
    with pytest.raises(FileNotFoundError):
        sync_folder(tmp_path / "none")
