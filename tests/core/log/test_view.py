"""Reading without the lock: the file and the journal as one, and nothing is written."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.log.lines import forward
from core.log.records import Record, pack
from core.log.view import View, read_journal
from tests.builders import SESSION, lines_of, said
from tests.conftest import House


def raws(view: View) -> list[bytes]:
    return [line.raw for line in lines_of(forward(view.read_at, 0, view.size))]


def test_a_folder_without_a_journal_has_nothing_waiting(tmp_path: Path):
    assert read_journal(tmp_path) == {}
    with View(tmp_path / "events.jsonl") as view:
        assert (view.size, raws(view)) == (0, [])


@pytest.mark.parametrize("found", [None, b"", b"1\n", b"1\n2", b"1\n2\n3\n", b"1\n\0\0\0\0", b"1\n2\n3\n4\n"])
def test_what_the_journal_holds_is_read_as_if_it_stood_in_the_file(tmp_path: Path, found: bytes | None):
    path = tmp_path / "events.jsonl"
    if found is not None:
        path.write_bytes(found)
    records = [Record("dc-1", 0, b"1\n", {}), Record("dc-1", 2, b"2\n", {"s": b"x"}), Record("dc-1", 4, b"3\n", {})]
    with View(path, records) as view:
        assert raws(view)[:3] == [b"1", b"2", b"3"]
        assert view.sidecars == {"s": b"x"}
    assert (path.read_bytes() if path.exists() else None) == found


@given(
    st.binary(max_size=40),
    st.lists(st.tuples(st.integers(0, 50), st.binary(min_size=1, max_size=12)), max_size=4),
    st.data(),
)
def test_any_stretch_reads_as_a_file_that_was_really_put_right(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, over: list[tuple[int, bytes]], data: st.DataObject
):
    path = tmp_path_factory.mktemp("view") / "file"
    path.write_bytes(content)
    expected = bytearray(content)
    for offset, piece in over:
        if offset > len(expected):
            expected.extend(b"\0" * (offset - 1 - len(expected)) + b"\n")
        expected.extend(b"\0" * (offset + len(piece) - len(expected)))
        expected[offset : offset + len(piece)] = piece
    with View(path, [Record("s", offset, piece, {}) for offset, piece in over]) as view:
        start, count = data.draw(st.integers(0, 60)), data.draw(st.integers(0, 60))
        assert view.size == len(expected)
        assert view.read_at(start, count) == expected[start : start + count]


async def test_a_journal_of_a_living_gateway_reads_without_touching_it(house: House):
    await house.sessions.of(SESSION).append([said(1), said(2)])
    journal = (house.folder / ".store" / "journal").read_bytes()
    records = read_journal(house.folder)
    with View(house.sessions.folder(SESSION) / "events.jsonl", records[SESSION]) as view:
        assert raws(view) == [recorded.raw for recorded in house.sessions.of(SESSION).read()]
    assert (house.folder / ".store" / "journal").read_bytes() == journal


def test_a_torn_journal_gives_what_is_whole(tmp_path: Path):
    (tmp_path / ".store").mkdir()
    packed = (
        pack([Record("dc-1", 0, b"1\n", {})], b"12345678") + pack([Record("dc-1", 2, b"2\n", {})], b"12345678")[:-1]
    )
    (tmp_path / ".store" / "journal").write_bytes(packed)
    assert read_journal(tmp_path) == {"dc-1": [Record("dc-1", 0, b"1\n", {})]}
