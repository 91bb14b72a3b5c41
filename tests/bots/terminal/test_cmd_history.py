"""What was typed, kept as sessions.md 1.4 says."""

import stat
from pathlib import Path

import pytest

from bots.terminal.cmd_history import CommandHistory


def kept(folder: Path) -> bytes:
    return (folder / ".cmd_history").read_bytes()


def test_at_most_fifty_are_kept_the_oldest_first(tmp_path: Path):
    history = CommandHistory(tmp_path)
    for number in range(60):
        history.add(f"line {number}")
    assert kept(tmp_path).decode().splitlines() == [f"line {number}" for number in range(10, 60)]
    assert CommandHistory(tmp_path).entries == history.entries
    assert stat.S_IMODE((tmp_path / ".cmd_history").stat().st_mode) == 0o600


def test_line_breaks_survive_as_one_byte(tmp_path: Path):
    CommandHistory(tmp_path).add("first\nsecond 你好")
    assert kept(tmp_path) == "first\x1fsecond 你好\n".encode()
    assert CommandHistory(tmp_path).entries == ["first\nsecond 你好"]


def test_repeats_blanks_and_words_that_quit_are_left_out(tmp_path: Path):
    history = CommandHistory(tmp_path)
    for text in ("a", "a", "/quit", " /exit ", "  ", "b", "a"):
        history.add(text)
    assert history.entries == ["a", "b", "a"]


def test_one_goes_back_and_comes_back_to_what_was_being_typed(tmp_path: Path):
    history = CommandHistory(tmp_path)
    assert history.earlier("draft") == "draft"
    history.add("a")
    history.add("b")
    assert [history.earlier("draft"), history.earlier("b"), history.earlier("a")] == ["b", "a", "a"]
    assert [history.later("a"), history.later("b"), history.later("draft")] == ["b", "draft", "draft"]


@pytest.mark.parametrize("content", [b"\xff\xfe\nok\n", b"\n\nok\n", b"ok"])
def test_a_file_of_somebody_else_is_read_as_far_as_it_can_be(tmp_path: Path, content: bytes):
    (tmp_path / ".cmd_history").write_bytes(content)
    assert CommandHistory(tmp_path).entries[-1] == "ok"
