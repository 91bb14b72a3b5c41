"""The seam of the log: what both implementations promise."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.log import lines as cut
from core.log.file import FileLog
from core.log.journal import Journal
from core.log.lines import Line
from core.log.memory import MemoryLog
from core.log.port import Log
from tests.builders import lines_of

Opening = Callable[[bytes], Log]


@pytest.fixture(params=["memory", "file"])
async def opened(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opening]:
    """Opens a log that holds these bytes already."""
    if request.param == "memory":
        yield MemoryLog
        return
    journal = Journal(tmp_path)
    journal.start()

    def open_file(content: bytes) -> Log:
        path = tmp_path / "runtimes" / "dc-1" / "events.jsonl"
        if content:
            path.parent.mkdir(parents=True)
            path.write_bytes(content)
        return FileLog(tmp_path / "runtimes", "dc-1", journal)

    yield open_file
    journal.stop()


def raws(log: Log) -> list[bytes]:
    return [line.raw for line in lines_of(log.read())]


# --- empty --------------------------------------------------------------------------------------------------------


async def test_a_log_that_is_not_there_is_empty(opened: Opening):
    log = opened(b"")
    assert log.size == 0
    assert lines_of(log.read()) == [*log.read_back()] == [*log.search_back(b"x")] == []


async def test_an_empty_batch_writes_nothing(opened: Opening):
    log = opened(b'{"n":0}')
    assert await log.append([]) == []
    assert log.size == 7
    await log.append([b'{"n":1}'])
    assert raws(log) == [b'{"n":0}', b'{"n":1}']


# --- appending ----------------------------------------------------------------------------------------------------


async def test_what_is_appended_is_read_where_the_answer_says_that_it_stands(opened: Opening):
    log = opened(b"")
    added = await log.append([b'{"n":1}', b'{"n":2}'])
    added += await log.append([b'{"n":3}'])
    assert added == [Line(0, 8, b'{"n":1}'), Line(8, 16, b'{"n":2}'), Line(16, 24, b'{"n":3}')]
    assert lines_of(log.read()) == added
    assert [*log.read_back()] == added[::-1]
    assert log.size == 24


async def test_batches_stand_in_the_order_of_the_calls_and_never_interleave(opened: Opening):
    log = opened(b"")
    batches = [[f'{{"b":{batch},"n":{n}}}'.encode() for n in range(1 + batch % 4)] for batch in range(200)]
    answers = await asyncio.gather(*(log.append(batch) for batch in batches))
    assert raws(log) == [raw for batch in batches for raw in batch]
    assert lines_of(log.read()) == [line for added in answers for line in added]


async def test_all_who_wait_for_an_append_are_told(opened: Opening):
    loop, told, failed = asyncio.get_running_loop(), list[list[Line]](), list[object]()
    loop.set_exception_handler(lambda _loop, context: failed.append(context["exception"]))
    log = opened(b"")
    first, second = log.append([b'{"n":1}']), log.append([b'{"n":2}'])

    def fail(_: object) -> None:
        raise ArithmeticError

    async def wait() -> list[Line]:
        return await first

    first.then(fail)
    first.then(lambda appending: told.append(appending.result()))
    line = Line(0, 8, b'{"n":1}')
    assert await asyncio.wait_for(asyncio.gather(wait(), wait(), second), 5) == [
        [line], [line], [Line(8, 16, b'{"n":2}')],
    ]  # fmt: skip
    assert told == [[line]]
    assert [type(error) for error in failed] == [ArithmeticError]


async def test_only_a_line_feed_ends_a_line(opened: Opening):
    log = opened(b"")
    lines = ['{"a":"\u2028 \u2029 \u0085 \x0b \x0c \x1c"}'.encode(), b'{"a":"\\n\\r"}', '{"a":"阿岚 🐈"}'.encode()]
    await log.append(lines)
    assert raws(log) == lines
    assert [line.raw for line in log.search_back("\u2028".encode())] == lines[:1]


async def test_a_very_long_line_is_one_line(opened: Opening):
    log = opened(b"")
    long = b'{"a":"' + b"x" * 3_000_000 + b'needle"}'
    await log.append([b'{"n":1}', long, b'{"n":2}'])
    assert raws(log) == [b'{"n":1}', long, b'{"n":2}']
    assert [line.raw for line in log.read_back()] == [b'{"n":2}', long, b'{"n":1}']
    assert [line.raw for line in log.search_back(b"needle")] == [long]


# --- what a crash or another writer left --------------------------------------------------------------------------


async def test_a_torn_tail_is_no_line_and_the_next_append_is_not_glued_onto_it(opened: Opening):
    log = opened(b'{"n":1}\n{"n":2,"text":"cut he')
    assert raws(log) == [b'{"n":1}']
    assert [line.raw for line in log.read_back()] == [b'{"n":1}']
    assert [*log.search_back(b"cut")] == []
    (line,) = await log.append([b'{"n":3}'])
    assert raws(log)[0] == b'{"n":1}'
    assert raws(log)[-1] == b'{"n":3}'
    assert lines_of(log.read(line.start)) == [line]
    assert next(iter(log.read_back())) == line


async def test_a_last_line_that_lacks_only_its_line_feed_is_read_and_kept(opened: Opening):
    log = opened(b'{"n":1}\n{"n":2}')
    assert raws(log) == [b'{"n":1}', b'{"n":2}']
    assert [*log.read_back()] == lines_of(log.read())[::-1]
    assert [line.raw for line in log.search_back(b'"n":2')] == [b'{"n":2}']
    await log.append([b'{"n":3}'])
    assert raws(log) == [b'{"n":1}', b'{"n":2}', b'{"n":3}']


async def test_blank_lines_are_skipped(opened: Opening):
    log = opened(b'\n\n{"n":1}\n  \t\n{"n":2}\n\n')
    assert [(line.start, line.raw) for line in lines_of(log.read())] == [(2, b'{"n":1}'), (14, b'{"n":2}')]
    assert [*log.read_back()] == lines_of(log.read())[::-1]


async def test_a_bad_line_is_handed_on_for_others_to_judge(opened: Opening):
    log = opened(b'{"n":1}\nnot json\n{"n":2}\n')
    assert raws(log) == [b'{"n":1}', b"not json", b'{"n":2}']


# --- positions ----------------------------------------------------------------------------------------------------


async def test_reading_goes_on_from_any_position_and_ends_at_any_other(opened: Opening):
    log = opened(b"")
    added = await log.append([f'{{"n":{n}}}'.encode() for n in range(50)])
    for index, line in enumerate(added):
        assert lines_of(log.read(line.start)) == added[index:]
        assert [*log.read_back(line.end)] == added[index::-1]
    assert lines_of(log.read(log.size)) == [*log.read_back(0)] == []


async def test_a_long_log_is_read_in_blocks_that_stand_one_behind_the_other(opened: Opening):
    log = opened(b"")
    added = await log.append([f'{{"n":{n},"x":"{"y" * (n * 37 % 900)}"}}'.encode() for n in range(3000)])
    blocks = [*log.read(added[5].start)]
    assert lines_of(blocks) == added[5:]
    assert len(blocks) > 2
    assert all(len(block.lines) > 1 for block in blocks)
    assert [block.start for block in blocks] == [added[5].start, *(block.end for block in blocks[:-1])]


async def test_a_search_finds_what_holds_the_words_from_the_end_on(opened: Opening):
    log = opened(b"")
    added = await log.append(
        [f'{{"n":{n},"messageId":"{n % 7}","x":"{"y" * (n * 37 % 900)}"}}'.encode() for n in range(3000)]
    )
    assert [*log.search_back(b'"messageId":"3"')] == [line for line in added if b'"messageId":"3"' in line.raw][::-1]
    assert [*log.search_back(b'"messageId":"9"')] == []
    assert [*log.search_back(b'"n":0,')] == added[:1]


async def test_a_reader_sees_no_further_than_what_was_durable_when_it_began(opened: Opening):
    log = opened(b"")
    await log.append([b'{"n":1}'])
    reading = log.read()
    assert next(reading).lines == [b'{"n":1}']
    await log.append([b'{"n":2}'])
    assert log.size == 16
    assert len([*reading]) <= 1


# --- cutting, for any block size ----------------------------------------------------------------------------------

line_text = st.text(alphabet=st.characters(codec="utf-8"), max_size=30)
documents = st.one_of(
    st.dictionaries(line_text, line_text, max_size=3).map(lambda value: json.dumps(value, ensure_ascii=False).encode()),
    st.sampled_from([b"", b"  ", b"{", b"7", b"\r", b"x" * 200]),
)
contents = st.tuples(
    st.lists(documents, max_size=12), st.sampled_from([b"", b"\n", b"\n\n", b'{"cut', b'{"whole":1}'])
).map(lambda pieces: b"\n".join(pieces[0]) + pieces[1])


def source(content: bytes, short: int) -> cut.ReadAt:
    """Bytes that come in pieces of at most ``short``, as a pipe or a signal may cut them."""
    return lambda offset, count: content[offset : offset + min(count, short)]


@given(contents, st.integers(1, 64), st.integers(1, 64), st.integers(1, 64))
def test_backwards_is_forwards_reversed_whatever_the_blocks(content: bytes, ahead: int, back: int, short: int):
    read_at = source(content, short)
    forwards = lines_of(cut.forward(read_at, 0, len(content), block=ahead))
    assert [*cut.backward(read_at, len(content), block=back)] == forwards[::-1]
    for line in forwards:
        assert content[line.start : line.start + len(line.raw)] == line.raw
        assert b"\n" not in line.raw
    pieces = [*cut.cuts(read_at, 0, len(content), block=ahead)]
    assert b"".join(piece.raw + b"\n" * piece.ended for piece in pieces) == content


@given(
    contents, st.integers(1, 64), st.integers(1, 64), st.sampled_from([b"x", b'"', b"{", b"xx", b'"whole"', b"\xc3"])
)
def test_a_search_finds_each_line_once_whatever_the_blocks(content: bytes, block: int, short: int, needle: bytes):
    read_at = source(content, short)
    found = [*cut.containing(read_at, len(content), needle, block=block)]
    whole = [line for line in lines_of(cut.forward(read_at, 0, len(content))) if needle in line.raw]
    assert [line for line in found if cut.is_whole(line.raw) or line.end < len(content)] == [
        line for line in whole[::-1] if cut.is_whole(line.raw) or line.end < len(content)
    ]


@given(st.lists(st.dictionaries(line_text, line_text, min_size=1, max_size=3), min_size=1, max_size=5), st.data())
def test_any_cut_of_the_last_line_is_survived(values: list[dict[str, str]], data: st.DataObject):
    lines = [json.dumps(value, ensure_ascii=False).encode() for value in values]
    whole = b"\n".join(lines) + b"\n"
    kept = len(whole) - data.draw(st.integers(0, len(lines[-1]) + 1), label="bytes lost")
    torn = whole[:kept]

    async def go_on() -> list[bytes]:
        log = MemoryLog(torn)
        before = raws(log)
        await log.append([b'{"next":1}'])
        after = [raw for raw in raws(log) if cut.is_whole(raw)]
        assert after == [*before, b'{"next":1}']
        return before

    survived = asyncio.run(go_on())
    assert survived == (lines if kept >= len(whole) - 1 else lines[:-1])
