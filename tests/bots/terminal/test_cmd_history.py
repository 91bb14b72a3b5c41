"""What was typed, kept as sessions.md 1.4 says."""

from pathlib import Path

import pytest

from bots.terminal.cmd_history import MOST, added, read, write


def test_what_was_typed_comes_back_with_its_line_breaks(tmp_path: Path) -> None:
    path = tmp_path / ".cmd_history"
    write(path, ["one", "two\nlines", "三\r\nfour"])
    assert path.read_bytes() == "one\ntwo\x1flines\n三\x1ffour\n".encode()
    assert read(path) == ["one", "two\nlines", "三\nfour"]
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "  ", "/quit", " /EXIT ", "same"])
def test_what_says_nothing_new_is_left_out(text: str) -> None:
    assert added(["same"], text) == ["same"]


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    entries: list[str] = []
    for number in range(MOST + 5):
        entries = added(entries, str(number))
    assert entries == [str(number) for number in range(5, MOST + 5)]
    path = tmp_path / ".cmd_history"
    path.write_text("\n".join(map(str, range(200))))
    assert read(path) == [str(number) for number in range(150, 200)]


def test_a_file_that_is_not_there_or_not_text_is_no_trouble(tmp_path: Path) -> None:
    assert read(tmp_path / "none") == []
    (tmp_path / "odd").write_bytes(b"\xff\xfe\nx\n")
    assert read(tmp_path / "odd")[-1] == "x"
