"""Bytes that are not what was written: cut off, zeros or flipped. It is told of, and nothing good is skipped."""

import asyncio
import errno
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from core.errors import LogUnavailable
from core.log.file import FileLog
from core.log.journal import Journal
from core.log.records import Record, pack, unpack
from core.log.scan import stats
from core.log.view import View, read_journal
from tests.builders import lines_of
from tests.core.log.disks import FailingDisk, fails_at
from tests.torture.disk.logs import open_and_close, path_of

SESSIONS = ("dc-1", "tg-2")
LINES = [b'{"type":"state","n":%d}' % number for number in range(6)]
GENERATION = b"12345678"


def frames() -> list[bytes]:
    """Each line of both sessions as a commit of its own, in turn."""
    return [
        pack([Record(session, len(joined(LINES[:number])), line + b"\n", {})], GENERATION)
        for number, line in enumerate(LINES)
        for session in SESSIONS
    ]


def joined(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def put(folder: Path, journal: bytes, *, logs: bytes | None = None) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    (folder / ".store").mkdir(parents=True)
    (folder / ".store" / "journal").write_bytes(journal)
    for session in SESSIONS if logs is not None else ():
        path_of(folder, session).parent.mkdir(parents=True)
        path_of(folder, session).write_bytes(logs or b"")


def flips(content: bytes) -> Iterator[tuple[int, bytes]]:
    for at in range(len(content)):
        yield at, content[:at] + bytes([content[at] ^ (1 << at % 8)]) + content[at + 1 :]


def names_of(logs: Iterable[Mapping[str, object]]) -> set[object]:
    return {entry["event"] for entry in logs}


# --- the journal --------------------------------------------------------------------------------------------------


def test_a_journal_cut_at_every_byte_of_its_last_frame_gives_all_before_it() -> None:
    *before, last = frames()
    whole = unpack(b"".join(before)).records
    for cut in range(len(last)):
        found = unpack(b"".join(before) + last[:cut])
        assert found == (whole, 0, cut)
        for tail in (bytes(len(last) - cut), b"\xff" * 30):
            found = unpack(b"".join(before) + last[:cut] + tail)
            assert (found.records, found.damaged) == (whole, 0)


def test_a_flipped_bit_anywhere_costs_one_frame_and_is_told() -> None:
    packed = frames()
    journal = b"".join(packed)
    whole = unpack(journal).records
    ends = [sum(map(len, packed[: number + 1])) for number in range(len(packed))]
    for at, flipped in flips(journal):
        hit = sum(end <= at for end in ends)
        found = unpack(flipped)
        assert found.records == [*whole[:hit], *whole[hit + 1 :]], f"byte {at}"
        damaged, torn = (0, len(packed[hit])) if hit == len(packed) - 1 else (len(packed[hit]), 0)
        assert (found.damaged, found.torn) == (damaged, torn), f"byte {at}"


def test_a_damaged_journal_over_whole_files_changes_nothing_and_is_kept_aside(tmp_path: Path) -> None:
    """After a crash without a power cut: the files have what the journal lost."""
    journal = b"".join(frames())
    for at, flipped in list(flips(journal))[: -len(frames()[-1]) : 37]:
        put(tmp_path / "data", flipped, logs=joined(LINES))
        with capture_logs() as logs:
            open_and_close(tmp_path / "data")
        assert all(path_of(tmp_path / "data", session).read_bytes() == joined(LINES) for session in SESSIONS), at
        assert "journal_damaged" in names_of(logs)
        [copy] = (tmp_path / "data" / ".store").glob("journal.damaged-*")
        assert copy.read_bytes() == flipped


def test_what_is_lost_for_good_is_one_bad_line_before_the_good_ones(tmp_path: Path) -> None:
    """The power went too: nobody has the line, and those behind it stand where they stood."""
    packed = frames()
    for lost in range(len(LINES) - 1):
        hit = SESSIONS[0]
        at = 2 * lost
        broken = [*packed[:at], b"\0" * len(packed[at]), *packed[at + 1 :]]
        put(tmp_path / "data", b"".join(broken), logs=b"")
        before = read_journal(tmp_path / "data")
        with View(path_of(tmp_path / "data", hit), before[hit]) as view:
            seen = view.read_at(0, view.size)
        with capture_logs() as logs:
            open_and_close(tmp_path / "data")
        found = path_of(tmp_path / "data", hit).read_bytes()
        assert found == joined([*LINES[:lost], bytes(len(LINES[lost])), *LINES[lost + 1 :]])
        assert seen == found, "readers without the lock see the same"
        counted = stats(lambda offset, count, found=found: found[offset : offset + count], len(found))
        assert counted.bad == [lost + 1]
        assert path_of(tmp_path / "data", SESSIONS[1]).read_bytes() == joined(LINES)
        assert {"journal_damaged", "log_lacks_bytes"} <= names_of(logs)
        open_and_close(tmp_path / "data")
        assert path_of(tmp_path / "data", hit).read_bytes() == found


# --- a session's file ---------------------------------------------------------------------------------------------


def log_of(folder: Path, content: bytes) -> tuple[Path, bytes]:
    """What an append makes of a file; the journal is empty."""

    async def append() -> None:
        journal = Journal(folder)
        journal.start()
        log = FileLog(folder / "runtimes", SESSIONS[0], journal)
        await log.append([b'{"type":"state","new":1}'])
        journal.stop()

    put(folder, b"", logs=content)
    asyncio.run(append())
    path = path_of(folder, SESSIONS[0])
    return path, path.read_bytes()


def test_a_log_cut_at_every_byte_of_its_last_line_loses_that_line_at_most(tmp_path: Path) -> None:
    whole = joined(LINES)
    for cut in range(len(joined(LINES[:-1])), len(whole)):
        for tail in (b"", bytes(5)):
            _, found = log_of(tmp_path / "data", whole[:cut] + tail)
            lines = found.split(b"\n")
            assert lines[: len(LINES) - 1] == LINES[:-1]
            assert lines[-2:] == [b'{"type":"state","new":1}', b""], "it is not glued to what was cut off"
            counted = stats(lambda offset, count, found=found: found[offset : offset + count], len(found))
            torn = cut > len(joined(LINES[:-1])) and cut < len(whole) - 1
            assert counted.bad == ([len(LINES)] if torn or tail else []), (cut, tail)


def test_a_flipped_bit_in_a_log_spoils_at_most_the_lines_it_is_in(tmp_path: Path) -> None:
    for at, flipped in flips(joined(LINES)):
        journal = Journal(tmp_path / "none")
        put(tmp_path / "data", b"", logs=flipped)
        read = [line.raw for line in lines_of(FileLog(tmp_path / "data" / "runtimes", SESSIONS[0], journal).read())]
        hit = joined(LINES)[:at].count(b"\n")
        behind = LINES[hit + (2 if joined(LINES)[at] == ord("\n") else 1) :]
        assert read[:hit] == LINES[:hit]
        assert read[len(read) - len(behind) :] == behind


# --- a session's file that cannot be opened ----------------------------------------------------------------------


def test_a_log_that_cannot_be_opened_waits_while_others_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    put(folder, b"".join(frames()), logs=b"")
    odd = path_of(folder, SESSIONS[0])
    odd.unlink()
    odd.mkdir()

    async def use() -> None:
        journal = Journal(folder)
        journal.start()
        assert SESSIONS[0] in (journal.health.problem or "")
        held, free = (FileLog(folder / "runtimes", session, journal) for session in SESSIONS)
        with pytest.raises(LogUnavailable, match="start again"):
            await held.append([b"{}"])
        await free.append([b'{"type":"state","new":1}'])
        assert not journal.health.ready, "a session waits for somebody"
        journal.stop()

    for _ in range(3):
        asyncio.run(use())
        assert (folder / ".store" / "journal").stat().st_size == 0
        kept = unpack((folder / ".store" / "journal.kept").read_bytes()).records
        assert joined(LINES) == b"".join(record.content for record in kept), "however often, it is kept once"
        assert b"".join(record.content for record in read_journal(folder)[SESSIONS[0]]) == joined(LINES)
    odd.rmdir()
    open_and_close(folder)
    assert odd.read_bytes() == joined(LINES)
    assert path_of(folder, SESSIONS[1]).read_bytes() == joined(LINES) + b'{"type":"state","new":1}\n' * 3
    assert {path.name for path in (folder / ".store").iterdir()} == {"journal"}


def test_a_log_that_cannot_be_opened_any_more_does_not_keep_a_failure_from_being_mended(tmp_path: Path) -> None:
    async def use() -> None:
        disk = FailingDisk()
        journal = Journal(tmp_path, disk=disk)
        journal.start()
        odd, free = (FileLog(tmp_path / "runtimes", session, journal) for session in SESSIONS)
        await odd.append([b"{}"])
        path_of(tmp_path, SESSIONS[0]).unlink()
        path_of(tmp_path, SESSIONS[0]).mkdir()
        disk.fault = fails_at(disk.calls + 4, code=errno.EIO)
        with pytest.raises(LogUnavailable):
            await free.append([b"[]"])
        await free.append([b"[1]"])
        with pytest.raises(LogUnavailable):
            await odd.append([b"{}"])
        await free.append([b"[2]"])
        journal.stop()

    asyncio.run(use())
    assert path_of(tmp_path, SESSIONS[1]).read_bytes() == b"[1]\n[2]\n"
    assert [record.content for record in read_journal(tmp_path)[SESSIONS[0]]] == [b"{}\n"]
