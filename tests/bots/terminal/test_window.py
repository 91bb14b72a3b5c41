"""The end of a log, page by page, and on as it grows."""

from pathlib import Path

from bots.terminal.window import PAGE, Window
from core.codec import encode
from core.entries import AnyEntry, custom_message, fact_of
from tests.builders import SESSION, a_message


def write(folder: Path, numbers: range, *, ended: bool = True) -> bytes:
    path = folder / "runtimes" / SESSION / "events.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    content = b"\n".join(encode(custom_message(a_message(number), now=number)) for number in numbers)
    with path.open("ab") as file:
        file.write(content + (b"\n" if ended else b""))
    return content


def numbers(entries: list[AnyEntry]) -> list[int]:
    return [int(fact.message_id) for entry in entries if (fact := fact_of(entry)) and fact.message_id]


def test_a_log_is_read_from_its_end_a_page_at_a_time(tmp_path: Path) -> None:
    write(tmp_path, range(2 * PAGE + 10))
    window = Window(tmp_path, SESSION)
    assert numbers(window.entries) == list(range(PAGE + 10, 2 * PAGE + 10))
    assert window.reach_back()
    assert window.reach_back()
    assert numbers(window.entries) == list(range(2 * PAGE + 10))
    assert not window.reach_back()


def test_it_goes_on_without_gap_or_repeat_also_over_a_line_that_is_being_written(tmp_path: Path) -> None:
    write(tmp_path, range(3))
    path = tmp_path / "runtimes" / SESSION / "events.jsonl"
    torn = encode(custom_message(a_message(3), now=3))
    with path.open("ab") as file:
        file.write(torn[:40])
    window = Window(tmp_path, SESSION)
    assert numbers(window.entries) == [0, 1, 2]
    assert not window.grow()
    with path.open("ab") as file:
        file.write(torn[40:] + b"\n")
    write(tmp_path, range(4, 6))
    assert window.grow()
    assert numbers(window.entries) == [0, 1, 2, 3, 4, 5]


def test_a_log_that_is_not_there_yet_is_empty_and_then_grows(tmp_path: Path) -> None:
    (tmp_path / "runtimes" / SESSION).mkdir(parents=True)
    window = Window(tmp_path, SESSION)
    assert window.entries == []
    write(tmp_path, range(2))
    assert window.grow()
    assert numbers(window.entries) == [0, 1]


def test_a_log_that_a_repair_made_shorter_is_read_anew_and_bad_lines_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, range(5))
    window = Window(tmp_path, SESSION)
    path = tmp_path / "runtimes" / SESSION / "events.jsonl"
    path.write_bytes(b"no JSON\n")
    write(tmp_path, range(7, 8))
    assert window.grow()
    assert numbers(window.entries) == [7]
