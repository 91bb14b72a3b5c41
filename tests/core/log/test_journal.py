"""The trial of the journal: whatever the disk does, what was acknowledged is there, and nothing is there by half."""

import asyncio
import errno
import json
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from core.errors import FolderUnusable, LogHeld, LogUnavailable
from core.log.disk import Disk
from core.log.file import FileLog
from core.log.journal import Journal
from core.log.records import Record, pack
from tests.builders import lines_of
from tests.conftest import Until
from tests.core.log.disks import FailingDisk, Fault, PowerlessDisk, dies_at, fails_at

SIDECAR = b'{"id":"a"}'


def a_line(session: str, number: int) -> bytes:
    return f'{{"s":"{session}","n":{number},"pad":"{"é" * (number * 7 % 40)}"}}'.encode()


def path_of(folder: Path, session: str) -> Path:
    return folder / "runtimes" / session / "events.jsonl"


def on_disk(folder: Path, session: str) -> list[bytes]:
    path = path_of(folder, session)
    return path.read_bytes().split(b"\n")[:-1] if path.exists() else []


def put_file(folder: Path, session: str, content: bytes) -> Path:
    path = path_of(folder, session)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def put_journal(folder: Path, content: bytes) -> None:
    (folder / ".store").mkdir(parents=True, exist_ok=True)
    (folder / ".store" / "journal").write_bytes(content)


@asynccontextmanager
async def running(folder: Path, disk: Disk | None = None, *, turn_over_at: int = 1 << 20) -> AsyncGenerator[Journal]:
    journal = Journal(folder, disk=disk, turn_over_at=turn_over_at)
    journal.start()
    try:
        yield journal
    finally:
        journal.stop()


def recover(folder: Path) -> None:
    """Start on a folder and stop in order."""
    journal = Journal(folder, disk=FailingDisk())
    journal.start()
    journal.stop()


def is_in_order(part: Sequence[bytes], whole: Sequence[bytes]) -> bool:
    rest = iter(whole)
    return all(line in rest for line in part)


# --- recovery -----------------------------------------------------------------------------------------------------

GENERATION = b"12345678"


@pytest.mark.parametrize("found", [b"", b"one\n", b"one\ntw", b"one\ntwo\n", b"one\n\x00\x00\x00\x00", b"one\nxxx"])
def test_what_a_session_file_lacks_or_holds_torn_is_put_right(tmp_path: Path, found: bytes):
    path = put_file(tmp_path, "dc-1", found)
    records = [
        Record(session="dc-1", offset=0, content=b"one\n", sidecars={}),
        Record(session="dc-1", offset=4, content=b"two\n", sidecars={"resources/assets/a.json": SIDECAR}),
        Record(session="dc-2", offset=0, content=b"other\n", sidecars={}),
    ]
    put_journal(tmp_path, b"".join(pack([record], GENERATION) for record in records))
    recover(tmp_path)
    assert path.read_bytes() == b"one\ntwo\n"
    assert on_disk(tmp_path, "dc-2") == [b"other"]
    assert (path.parent / "resources" / "assets" / "a.json").read_bytes() == SIDECAR
    assert (tmp_path / ".store" / "journal").stat().st_size == 0


def test_recovery_runs_before_the_line_feed_guard(tmp_path: Path):
    async def go_on() -> None:
        async with running(tmp_path) as journal:
            await FileLog(tmp_path / "runtimes", "dc-1", journal).append([b"three"])

    put_file(tmp_path, "dc-1", b"one\ntw")
    put_journal(tmp_path, pack([Record(session="dc-1", offset=4, content=b"two\n", sidecars={})], GENERATION))
    asyncio.run(go_on())
    assert on_disk(tmp_path, "dc-1") == [b"one", b"two", b"three"]


def test_every_cut_of_the_journal_leaves_the_records_before_it(tmp_path: Path):
    packed = [
        pack([Record(session="dc-1", offset=4 * number, content=b"%03d\n" % number, sidecars={})], GENERATION)
        for number in range(3)
    ]
    ends = [sum(map(len, packed[: index + 1])) for index in range(3)]
    journal = b"".join(packed)
    for cut in range(len(journal) + 1):
        shutil.rmtree(tmp_path / "runtimes", ignore_errors=True)
        put_journal(tmp_path, journal[:cut])
        recover(tmp_path)
        assert on_disk(tmp_path, "dc-1") == [b"000", b"001", b"002"][: sum(end <= cut for end in ends)]


def test_a_flipped_bit_ends_the_journal_there(tmp_path: Path):
    first, second = (
        bytearray(
            pack([Record(session="dc-1", offset=4 * number, content=b"%03d\n" % number, sidecars={})], GENERATION)
        )
        for number in range(2)
    )
    second[len(second) // 2] ^= 1
    put_journal(tmp_path, bytes(first + second))
    recover(tmp_path)
    assert on_disk(tmp_path, "dc-1") == [b"000"]


def test_bytes_of_an_earlier_generation_behind_the_end_are_not_taken_for_newer_ones(tmp_path: Path):
    now = pack([Record(session="dc-1", offset=0, content=b"now\n", sidecars={})], b"generat2")
    before = pack([Record(session="dc-1", offset=0, content=b"old\n", sidecars={})], b"generat1")
    put_journal(tmp_path, now + before)
    recover(tmp_path)
    assert on_disk(tmp_path, "dc-1") == [b"now"]


@pytest.mark.parametrize("garbage", [b"\x00" * 64, b"\xff" * 64, b"not a journal", b"\x00"])
def test_a_journal_of_garbage_is_an_empty_one(tmp_path: Path, garbage: bytes):
    put_journal(tmp_path, garbage)
    recover(tmp_path)
    assert not [*(tmp_path / "runtimes").iterdir()]


def test_a_sidecar_that_has_grown_since_is_left_alone(tmp_path: Path):
    path = put_file(tmp_path, "dc-1", b"")
    sidecar = path.parent / "resources" / "assets" / "a.json"
    sidecar.parent.mkdir(parents=True)
    sidecar.write_bytes(b'{"id":"a","fetchedAt":1}')
    content = {"resources/assets/a.json": SIDECAR, "resources/assets/torn.json": SIDECAR}
    (sidecar.parent / "torn.json").write_bytes(b'{"id"')
    put_journal(tmp_path, pack([Record(session="dc-1", offset=0, content=b"one\n", sidecars=content)], GENERATION))
    recover(tmp_path)
    assert sidecar.read_bytes() == b'{"id":"a","fetchedAt":1}'
    assert (sidecar.parent / "torn.json").read_bytes() == SIDECAR


# --- a plain life -------------------------------------------------------------------------------------------------


def assert_private(folder: Path) -> None:
    for path in folder.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


async def test_a_clean_stop_leaves_an_empty_journal_and_private_files(tmp_path: Path):
    async with running(tmp_path) as journal:
        log = FileLog(tmp_path / "runtimes", "dc-1", journal)
        await log.append([b"{}"], {"resources/assets/a.json": SIDECAR})
        assert (tmp_path / ".store" / "journal").stat().st_size > 0
    assert (tmp_path / ".store" / "journal").stat().st_size == 0
    assert_private(tmp_path)


async def test_the_journal_turns_over_in_a_lull_before_it_is_full(tmp_path: Path, until: Until):
    lines = [a_line("x", number) for number in range(4)]
    async with running(tmp_path, turn_over_at=2000) as journal:
        await FileLog(tmp_path / "runtimes", "dc-1", journal).append(lines)
        await until(lambda: (tmp_path / ".store" / "journal").stat().st_size == 0)
        assert on_disk(tmp_path, "dc-1") == lines


async def test_the_journal_turns_over_while_lines_keep_coming(tmp_path: Path):
    async with running(tmp_path, turn_over_at=2000) as journal:
        logs = [FileLog(tmp_path / "runtimes", f"dc-{session}", journal) for session in range(5)]
        for number in range(60):
            await asyncio.gather(*(log.append([a_line("x", number)]) for log in logs))
            assert (tmp_path / ".store" / "journal").stat().st_size < 4000
    for session in range(5):
        assert on_disk(tmp_path, f"dc-{session}") == [a_line("x", number) for number in range(60)]


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    """The limit that most systems start a process with."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("few_descriptors")
async def test_more_sessions_than_a_process_may_have_files_open_are_written_at_once(tmp_path: Path):
    async with running(tmp_path) as journal:
        logs = [FileLog(tmp_path / "runtimes", f"dc-{session}", journal) for session in range(1500)]
        await asyncio.gather(*(log.append([b"{}"]) for log in logs))
        await asyncio.gather(*(log.append([b"[]"]) for log in logs))
    assert all(on_disk(tmp_path, f"dc-{session}") == [b"{}", b"[]"] for session in range(1500))


async def test_who_comes_after_the_stop_is_told_so(tmp_path: Path):
    async with running(tmp_path) as journal:
        log = FileLog(tmp_path / "runtimes", "dc-1", journal)
        await log.append([b"{}"])
    async with asyncio.timeout(5):
        with pytest.raises(LogUnavailable):
            await log.append([b"[]"])


async def test_a_file_in_the_place_of_the_folder_is_named_with_the_cure(tmp_path: Path):
    (tmp_path / "data").write_bytes(b"")
    with pytest.raises(FolderUnusable, match=r"ISHIKI_DATA_DIR"):
        Journal(tmp_path / "data").start()


async def test_one_file_that_cannot_be_opened_does_not_stop_the_others(tmp_path: Path):
    (path_of(tmp_path, "dc-1")).mkdir(parents=True)
    async with running(tmp_path) as journal:
        logs = [FileLog(tmp_path / "runtimes", f"dc-{session}", journal) for session in (0, 1, 2)]
        for number in range(3):
            taken = await asyncio.gather(*(log.append([a_line("x", number)]) for log in logs), return_exceptions=True)
            assert [isinstance(answer, LogUnavailable) for answer in taken] == [False, True, False]
        path_of(tmp_path, "dc-1").rmdir()
        await logs[1].append([b"{}"])
    assert [len(on_disk(tmp_path, f"dc-{session}")) for session in (0, 1, 2)] == [3, 1, 3]


async def test_a_file_that_stops_opening_meanwhile_does_not_stop_the_others(tmp_path: Path):
    disk = FailingDisk()
    async with running(tmp_path, disk) as journal:
        logs = [FileLog(tmp_path / "runtimes", f"dc-{session}", journal) for session in (0, 1)]
        await asyncio.gather(*(log.append([b"{}"]) for log in logs))
        path = path_of(tmp_path, "dc-1")
        path.rename(path.with_name("aside"))
        path.symlink_to(path.name)
        disk.fault = fails_at(disk.calls + 1)  # every file is opened anew
        with pytest.raises(LogUnavailable):
            await logs[0].append([b"[]"])
        disk.fault = fails_at()
        await logs[0].append([b"[]"])
        with pytest.raises(LogHeld, match="mend"):
            await logs[1].append([b"[]"])
    assert on_disk(tmp_path, "dc-0") == [b"{}", b"[]"]
    path.unlink()
    async with running(tmp_path):
        assert on_disk(tmp_path, "dc-1") == [b"{}"]


async def test_a_session_that_was_removed_does_not_keep_the_journal_from_mending(tmp_path: Path):
    disk = FailingDisk()
    async with running(tmp_path, disk) as journal:
        gone, stays = (FileLog(tmp_path / "runtimes", session, journal) for session in ("temp-1", "dc-1"))
        await gone.append([b"{}"])
        await stays.append([b"{}"])
        shutil.rmtree(tmp_path / "runtimes" / "temp-1")
        disk.fault = fails_at(disk.calls + 1)
        with pytest.raises(LogUnavailable):
            await stays.append([b"[]"])
        await stays.append([b"[]"])
    assert on_disk(tmp_path, "dc-1") == [b"{}", b"[]"]


# --- a disk that fails --------------------------------------------------------------------------------------------

SESSIONS = ("dc-1", "tg-2")
ROUNDS = 5


async def write_all(folder: Path, journal: Journal, *, tries: int) -> tuple[dict[str, list[bytes]], list[bytes]]:
    """Append one after the other, each up to ``tries`` times. Returns what was acknowledged, and what never was."""
    logs = {session: FileLog(folder / "runtimes", session, journal) for session in SESSIONS}
    acknowledged: dict[str, list[bytes]] = {session: [] for session in SESSIONS}
    refused: list[bytes] = []
    for number in range(ROUNDS):
        for session, log in logs.items():
            batch = [a_line(session, 2 * number), a_line(session, 2 * number + 1)]
            sidecars = {f"resources/assets/{number}.json": SIDECAR}
            for _ in range(tries):
                try:
                    added = await log.append(batch, sidecars)
                except LogUnavailable:
                    continue
                assert [line.raw for line in added] == batch
                acknowledged[session] += batch
                break
            else:
                refused += batch
            assert [line.raw for line in lines_of(log.read())] == acknowledged[session]
    return acknowledged, refused


async def calls_of_a_whole_run(folder: Path) -> tuple[int, int]:
    """How many calls the start takes, and how many all of it."""
    disk = FailingDisk()
    async with running(folder, disk, turn_over_at=900) as journal:
        start = disk.calls
        await write_all(folder, journal, tries=1)
    return start, disk.calls


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
async def test_one_failure_at_any_call_loses_nothing_and_repeats_nothing(tmp_path: Path, code: int):
    start, last = await calls_of_a_whole_run(tmp_path / "dry")
    assert last > 80
    for number in range(start + 1, last + 1):
        folder = tmp_path / str(number)
        async with running(folder, FailingDisk(fails_at(number, code=code)), turn_over_at=900) as journal:
            acknowledged, refused = await write_all(folder, journal, tries=2)
        assert not refused
        recover(folder)
        for session in SESSIONS:
            assert on_disk(folder, session) == acknowledged[session], f"call {number}"
        assert len([*folder.rglob("assets/*.json")]) == ROUNDS * 2


async def test_a_failure_while_mending_is_mended_too(tmp_path: Path):
    start, last = await calls_of_a_whole_run(tmp_path / "dry")
    for number in range(start + 1, last + 1, 11):
        for after in range(1, 10):
            folder = tmp_path / f"{number}-{after}"
            disk = FailingDisk(fails_at(number, number + after, code=errno.EIO))
            async with running(folder, disk, turn_over_at=900) as journal:
                acknowledged, refused = await write_all(folder, journal, tries=3)
            assert not refused
            recover(folder)
            assert {session: on_disk(folder, session) for session in SESSIONS} == acknowledged, f"{number}+{after}"


async def test_a_disk_that_is_full_for_a_while_takes_appends_again_by_itself(tmp_path: Path):
    full = False

    def fault(_number: int, name: str) -> int | None:
        return errno.ENOSPC if full and name in {"write_at", "write_new"} else None

    async with running(tmp_path, FailingDisk(fault)) as journal:
        log = FileLog(tmp_path / "runtimes", "dc-1", journal)
        await log.append([a_line("x", 0)])
        full = True
        for number in range(1, 4):
            with pytest.raises(LogUnavailable, match="No space left"):
                await log.append([a_line("x", number)])
            assert journal.health.problem is not None
        assert [line.raw for line in lines_of(log.read())] == [a_line("x", 0)]
        full = False
        await log.append([a_line("x", 9)])
        assert journal.health.problem is None
    assert on_disk(tmp_path, "dc-1") == [a_line("x", 0), a_line("x", 9)]


async def test_a_failed_sync_is_never_acknowledged_on_the_same_descriptor(tmp_path: Path):
    class Witness(FailingDisk):
        """Linux reports a failed sync once; the next one on the same descriptor says that all is well."""

        failed: int | None = None
        synced_after_failure = False

        def open(self, path: Path, *, make: bool = True) -> int:
            descriptor = super().open(path, make=make)
            if descriptor == self.failed:
                self.failed = None  # the number is used again for another opening
            return descriptor

        def sync(self, descriptor: int) -> None:
            if descriptor == self.failed:
                self.synced_after_failure = True
            try:
                super().sync(descriptor)
            except OSError:
                self.failed = descriptor
                raise

    def no_sync(_number: int, name: str) -> int | None:
        return errno.EIO if name == "sync" else None

    disk = Witness()
    async with running(tmp_path, disk) as journal:
        log = FileLog(tmp_path / "runtimes", "dc-1", journal)
        await log.append([b"{}"])
        disk.fault = no_sync
        with pytest.raises(LogUnavailable):
            await log.append([b"[]"])
        disk.fault = fails_at()
        await log.append([b"[]"])
    assert not disk.synced_after_failure
    assert on_disk(tmp_path, "dc-1") == [b"{}", b"[]"]


async def test_a_disk_that_dies_at_any_call_keeps_what_was_acknowledged(tmp_path: Path):
    """The process is gone with it: a new one opens the folder as it was left."""
    _, last = await calls_of_a_whole_run(tmp_path / "dry")
    for number in range(1, last + 1):
        await die_and_recover(tmp_path / str(number), FailingDisk(), dies_at(number))


async def test_a_power_cut_at_any_call_keeps_what_was_acknowledged(tmp_path: Path):
    """What was not synced is gone, in the journal as in the session files."""
    _, last = await calls_of_a_whole_run(tmp_path / "dry")
    for number in range(1, last + 1):
        await die_and_recover(tmp_path / str(number), PowerlessDisk(), dies_at(number))


async def die_and_recover(folder: Path, disk: FailingDisk, fault: Fault) -> None:
    disk.fault = fault
    acknowledged: dict[str, list[bytes]] = {}
    try:
        async with running(folder, disk, turn_over_at=900) as journal:
            acknowledged, _ = await write_all(folder, journal, tries=1)
    except FolderUnusable:
        pass
    if isinstance(disk, PowerlessDisk):
        found = folder.with_name(f"{folder.name} after")
        disk.cut_power(folder, found)
        folder = found
    recover(folder)
    for session in SESSIONS:
        handed_in = [a_line(session, number) for number in range(2 * ROUNDS)]
        found = on_disk(folder, session)
        assert found[: len(acknowledged.get(session, []))] == acknowledged.get(session, [])
        assert is_in_order(found, handed_in)
        assert len(found) % 2 == 0, "a batch is there whole or not at all"
        sidecars = [*(folder / "runtimes" / session).rglob("assets/*.json")]
        assert len(sidecars) >= len(found) // 2


async def test_a_write_that_the_system_cuts_short_leaves_no_half_line(tmp_path: Path):
    """A limit on the size of files makes the kernel itself write a part and then refuse, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    async with running(tmp_path) as journal:
        log = FileLog(tmp_path / "runtimes", "dc-1", journal)
        await log.append([b'{"n":0}'])
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
        try:
            with pytest.raises(LogUnavailable, match="too large"):
                await log.append([b'{"n":1,"long":"' + b"x" * 50_000 + b'"}'])
            assert (tmp_path / ".store" / "journal").stat().st_size == 10_000, "half of it was written"
            await log.append([b'{"n":2}'])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        await log.append([b'{"n":3}'])
    assert on_disk(tmp_path, "dc-1") == [b'{"n":0}', b'{"n":2}', b'{"n":3}']


# --- a process that is killed -------------------------------------------------------------------------------------

CHILD = """
import asyncio, sys
from pathlib import Path
from core.log.file import FileLog
from core.log.journal import Journal

async def write(log, session):
    for number in range(100_000):
        line = b'{"s":%d,"n":%d}' % (session, number)
        await log.append([line])
        sys.stdout.buffer.write(line + b"\\n")
        sys.stdout.buffer.flush()

async def main():
    folder = Path(sys.argv[1])
    journal = Journal(folder, turn_over_at=20_000)
    journal.start()
    await asyncio.gather(*(write(FileLog(folder / "runtimes", f"dc-{n}", journal), n) for n in range(8)))

asyncio.run(main())
"""


def test_a_process_killed_under_load_has_lost_nothing_that_it_acknowledged(tmp_path: Path):
    said: dict[int, list[int]] = {session: [] for session in range(8)}
    for life in range(4):
        with subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path / str(life))],
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[3],
        ) as child:
            assert child.stdout is not None
            printed = [child.stdout.readline() for _ in range(200 + 37 * life)]
            child.send_signal(signal.SIGKILL)
            printed += child.stdout.readlines()
        recover(tmp_path / str(life))
        said = {session: [] for session in range(8)}
        for line in printed:
            if line.endswith(b"\n"):
                document = json.loads(line)
                said[document["s"]].append(document["n"])
        for session, numbers in said.items():
            kept = [json.loads(line)["n"] for line in on_disk(tmp_path / str(life), f"dc-{session}")]
            assert numbers == list(range(len(numbers)))
            assert kept == list(range(len(kept)))
            assert len(numbers) <= len(kept) <= len(numbers) + 1


async def test_a_sidecar_that_has_no_place_fails_its_own_batch_only(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.start()
    (tmp_path / "runtimes" / "dc-1").mkdir(parents=True)
    (tmp_path / "runtimes" / "dc-1" / "resources").write_text("in the way")
    odd, other = FileLog(tmp_path / "runtimes", "dc-1", journal), FileLog(tmp_path / "runtimes", "dc-2", journal)
    refused = odd.append([b"{}"], {"resources/assets/a.json": b"{}"})
    taken = other.append([b"{}"])
    assert len(await taken) == 1
    with pytest.raises(LogUnavailable):
        await refused
    journal.stop()


def test_a_sidecar_that_lost_its_place_does_not_keep_the_log_from_being_put_back(tmp_path: Path) -> None:
    record = Record("dc-1", 0, b"{}\n", {"resources/assets/a.json": b"{}"})
    (tmp_path / ".store").mkdir()
    (tmp_path / ".store" / "journal").write_bytes(pack([record], b"8 bytes."))
    (tmp_path / "runtimes" / "dc-1").mkdir(parents=True)
    (tmp_path / "runtimes" / "dc-1" / "resources").write_text("in the way")
    journal = Journal(tmp_path)
    journal.start()
    journal.stop()
    assert (tmp_path / "runtimes" / "dc-1" / "events.jsonl").read_bytes() == b"{}\n"
