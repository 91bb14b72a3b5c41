"""Taking unreadable lines out of a log: nothing else changes, nothing is lost on the way, followers go on in place."""

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.audit import check, damage, loosen, remove, sweep
from core.audit.parsers import refused
from core.audit.repair import Unreadable
from core.chat.speak import Speaker
from core.errors import RuntimeUnavailable
from core.gateway import Gateway
from core.health import Health
from core.log.disk import Disk
from core.log.file import FileLog
from core.log.journal import Journal
from core.log.view import View
from core.runtime.deliver import Deliver
from core.runtime.turns import Turns
from core.sessions.reading import Reading
from core.wake import WakeRules
from tests.builders import SESSION, mention, said
from tests.conftest import House, Until
from tests.core.log.disks import FailingDisk, fails_at
from tests.fakes import FakeChat, FakeRuntime

ROOT = Path(__file__).parents[3]
SAMPLES = ROOT / "tests" / "samples"
GOOD = (b'{"id":"1"}', b'{"id":"\xe2\x80\xa8"}', b"{}", b"[1]", b"5", b'"\\ud800"', b"1e999", b"", b"  ", b"\t", b"\r")
BAD = (b'{"id":"1"', b"no", b"\xff", b'{"a":"\xff"}', b"NaN", b'{"a":Infinity}', b"\0" * 9, b"{}{}", b'{"a":"\x01"}')


def repaired(path: Path, content: bytes, disk: Disk | None = None) -> tuple[bytes, list[Unreadable]]:
    path.write_bytes(content)
    with View(path) as log:
        found = damage(log)
        if found.lines:
            remove(log, found, disk=disk)
    return path.read_bytes(), found.named


# --- what goes ----------------------------------------------------------------------------------------------------


def test_of_the_broken_sample_the_fifth_line_goes_and_the_rest_is_sound(tmp_path: Path):
    broken = (SAMPLES / "broken.jsonl").read_bytes()
    lines = broken.split(b"\n")
    content, gone = repaired(tmp_path / "events.jsonl", broken)
    assert content == b"\n".join([*lines[:4], *lines[5:]])
    assert gone == [(5, 1798, len(lines[4]) + 1, False)]
    with View(tmp_path / "events.jsonl") as log:
        assert [finding for finding in check(log, None) if finding.rule == "json"] == []


def test_a_sound_log_is_not_touched(tmp_path: Path):
    path = tmp_path / "events.jsonl"
    before = (SAMPLES / "sample-session.jsonl").read_bytes()
    assert repaired(path, before) == (before, [])
    assert [found.name for found in tmp_path.iterdir()] == ["events.jsonl"]


@given(lines=st.lists(st.sampled_from([*GOOD, *BAD]), max_size=12), ended=st.booleans())
def test_only_lines_that_no_parser_takes_go_and_every_other_byte_stays(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], ended: bool
):
    path = tmp_path_factory.mktemp("log") / "events.jsonl"
    pieces = [line + b"\n" for line in lines]
    if pieces and not ended:
        pieces[-1] = pieces[-1][:-1]
    content, gone = repaired(path, b"".join(pieces))
    kept = [piece for piece, line in zip(pieces, lines, strict=True) if line in GOOD]
    assert content == b"".join(kept)
    numbers = [number for number, line in enumerate(lines, 1) if line in BAD]
    assert [line for line, *_ in gone] == numbers
    for number, offset, length, torn in gone:
        assert (offset, length) == (sum(map(len, pieces[: number - 1])), len(pieces[number - 1]))
        assert torn == (number == len(lines) and not ended)


def test_a_torn_tail_goes_and_the_next_line_is_not_glued_to_anything(tmp_path: Path):
    content, gone = repaired(tmp_path / "events.jsonl", b'{"id":"1"}\n{"id":"2')
    assert content == b'{"id":"1"}\n'
    assert gone == [(2, 11, 8, True)]


@pytest.mark.parametrize("line", BAD)
def test_what_is_removed_is_what_check_calls_no_json(tmp_path: Path, line: bytes):
    path = tmp_path / "events.jsonl"
    path.write_bytes(line + b"\n")
    with View(path) as log:
        assert [finding.rule for finding in check(log, None)] == ["json"]
        assert damage(log).lines == 1


@pytest.mark.parametrize("line", GOOD)
def test_bad_is_only_what_both_parsers_refuse(line: bytes):
    assert not line.strip() or refused(line) is None


# --- the backup ---------------------------------------------------------------------------------------------------


def test_the_backup_is_the_whole_old_file_is_private_and_none_is_ever_overwritten(tmp_path: Path):
    path = tmp_path / "events.jsonl"
    olds = [b"bad 1\n{}\n", b"bad 2\n{}\n", b"bad 3\n{}\n"]
    for old in olds:
        assert repaired(path, old)[0] == b"{}\n"
    backups = [found for found in tmp_path.iterdir() if found != path]
    assert sorted(backup.read_bytes() for backup in backups) == olds
    assert all(backup.name.startswith("events.jsonl.backup-") for backup in backups)
    assert {backup.stat().st_mode & 0o777 for backup in backups} == {0o600}


def test_the_repaired_file_keeps_its_rights_and_a_link_stays_a_link(tmp_path: Path):
    (tmp_path / "there").mkdir()
    real, link = tmp_path / "there" / "log", tmp_path / "link"
    real.write_bytes(b"bad\n{}\n")
    real.chmod(0o640)
    link.symlink_to(real)
    with View(link) as log:
        backup = remove(log, damage(log))
    assert link.is_symlink()
    assert real.read_bytes() == b"{}\n"
    assert real.stat().st_mode & 0o777 == 0o640
    assert backup.parent == real.parent


# --- on the way ---------------------------------------------------------------------------------------------------


def test_a_disk_that_fails_anywhere_leaves_the_log_as_it_was_or_repaired_and_another_try_works(tmp_path: Path):
    path = tmp_path / "events.jsonl"
    old, new = b'{"id":"1"}\nbad\n{"id":"2"}\n', b'{"id":"1"}\n{"id":"2"}\n'
    counting = FailingDisk()
    repaired(path, old, counting)
    for number in range(1, counting.calls + 1):
        with pytest.raises(OSError, match="No space"):
            repaired(path, old, FailingDisk(fails_at(number)))
        assert path.read_bytes() in {old, new}
        assert not [*tmp_path.glob(".*")]
        assert repaired(path, path.read_bytes())[0] == new


KILLING = """
import os, sys
from pathlib import Path
from core.audit import damage, remove, sweep
from core.log.disk import Disk
from core.log.view import View

path, old, new = Path(sys.argv[1]), b'{"id":"1"}\\nbad\\n{"id":"2"}\\n', b'{"id":"1"}\\n{"id":"2"}\\n'
last = calls = 0

def count(name, *_):
    global calls
    calls += 1
    if calls == last:
        os._exit(9)

def counted(name):
    real = getattr(Disk, name)
    def call(self, *given):
        if name == "write_at" and calls + 1 == last:
            real(self, *given[:-1], given[-1][:5])
        count(name)
        return real(self, *given)
    return call

def repair():
    with View(path) as log:
        found = damage(log)
        return remove(log, found) if found.lines else None

for name in ("open", "write_at", "sync", "sync_folder", "close"):
    setattr(Disk, name, counted(name))
sys.addaudithook(lambda event, given: count(event) if event in ("os.rename", "os.remove") else None)

for number in range(1, 100):
    path.write_bytes(old)
    child = os.fork()
    if child == 0:
        last, calls = number, 0
        repair()
        os._exit(0)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    found = path.read_bytes()
    assert found in (old, new), (number, found)
    backups = [backup.read_bytes() for backup in path.parent.glob("*.backup-*")]
    assert found == old or old in backups, (number, "no backup")
    assert all(backup == old for backup in backups), (number, backups)
    sweep(path)
    repair()
    assert path.read_bytes() == new
    assert not list(path.parent.glob(".*")), number
    for left in path.parent.glob("*.backup-*"):
        left.unlink()
    if ended == 0:
        print(number)
        break
"""


def test_killed_before_any_step_it_leaves_the_log_whole_and_never_repaired_without_a_backup(tmp_path: Path):
    killing = [sys.executable, "-c", KILLING, str(tmp_path / "events.jsonl")]
    ran = subprocess.run(killing, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    assert int(ran.stdout) > 12


def test_a_file_that_grows_meanwhile_is_left_alone(tmp_path: Path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"bad\n{}\n")
    with View(path) as log:
        found = damage(log)
        with path.open("ab") as file:
            file.write(b'{"id":"new"}\n')
        with pytest.raises(OSError, match="somebody writes to it"):
            remove(log, found)
    assert path.read_bytes() == b'bad\n{}\n{"id":"new"}\n'
    assert [found.name for found in tmp_path.iterdir()] == ["events.jsonl"]


def test_what_a_killed_repair_left_is_swept_away_and_nothing_else(tmp_path: Path):
    for name in ("events.jsonl", ".events.jsonl.repair-00ff", "events.jsonl.backup-1", ".cmd_history"):
        (tmp_path / name).touch()
    sweep(tmp_path / "events.jsonl")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".cmd_history", "events.jsonl", "events.jsonl.backup-1"]


def test_memory_does_not_grow_with_the_file_nor_with_the_noise_in_it(tmp_path: Path):
    path = tmp_path / "events.jsonl"
    good = b'{"id":"' + b"x" * 990 + b'"}\n'
    path.write_bytes((good * 1000 + b"noise\n" * 5_000) * 8)
    tracemalloc.start()
    with View(path) as log:
        found = damage(log)
        remove(log, found)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (found.lines, len(found.named), len(found.stretches)) == (40_000, 1000, 8)
    assert path.read_bytes() == good * 8000
    assert peak < 6_000_000


# --- the followers go on ------------------------------------------------------------------------------------------


class Delivering:
    """A house whose lines are delivered, one session of it."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.path = house.folder / "runtimes" / SESSION / "events.jsonl"
        self.runtime = FakeRuntime()

    async def start(self, *, waking: bool = False) -> None:
        store = self.house.store
        deliver = Deliver(self.runtime, store, store, Health("runtime", problem=None))
        speaker = Speaker(self.house.sessions, lambda _: FakeChat(), store, _no_file)
        turns = Turns(self.runtime, deliver, speaker, store, WakeRules.parse("mention"))
        self.gateway = Gateway(self.house.sessions, [deliver, turns] if waking else [deliver], store)
        await self.gateway.start()

    async def stop(self) -> None:
        await self.gateway.stop()
        await self.house.close()

    async def restart(self, *, waking: bool = False) -> None:
        await self.house.open()
        await self.start(waking=waking)

    def delivered(self) -> list[str]:
        lines = [json.loads(line) for _, lines, _ in self.runtime.delivered for line in lines]
        return [line["data"]["data"]["messageId"] for line in lines]

    def rewrite(self, change: Callable[[list[bytes]], Sequence[bytes]]) -> None:
        """Change the file by hand, as nobody should."""
        self.path.write_bytes(b"\n".join(change(self.path.read_bytes().split(b"\n"))))

    async def repair(self, *, until_removed: bool = True) -> None:
        await self.house.open()
        session = Reading(SESSION, FileLog(self.house.folder / "runtimes", SESSION, Journal(self.house.folder)))
        with View(self.path) as log:
            found = damage(log)
            assert found.lines
            await loosen(self.house.store, session)
            if until_removed:
                remove(log, found)
        await self.house.close()


async def _no_file(_session: object, url: str) -> Any:
    raise AssertionError(url)


async def eight_of_which_five_are_delivered(house: House, until: Until) -> Delivering:
    delivering = Delivering(house)
    await delivering.start()
    session = house.sessions.of(SESSION)
    await session.append([said(number) for number in range(1, 6)])
    await until(lambda: len(delivering.delivered()) == 5)
    delivering.runtime.errors = [RuntimeUnavailable("down", retry_after=60) for _ in range(9)]
    await session.append([said(number) for number in range(6, 9)])
    await delivering.stop()
    delivering.runtime.errors = []
    return delivering


def broken(*numbers: int) -> Callable[[list[bytes]], Sequence[bytes]]:
    """Lines whose first byte was flipped."""
    return lambda lines: [b"[" + line[1:] if number in numbers else line for number, line in enumerate(lines, 1)]


EIGHT = [str(number) for number in range(1, 9)]


@pytest.mark.parametrize("lines", [(1,), (2, 4), (5,), (3, 4, 5), (1, 2, 3, 4, 5), (6,), (5, 6), (8,), (5, 8)])
async def test_after_a_repair_nothing_is_delivered_twice_and_nothing_readable_is_skipped(
    house: House, until: Until, lines: tuple[int, ...]
):
    delivering = await eight_of_which_five_are_delivered(house, until)
    delivering.rewrite(broken(*lines))
    await delivering.repair()
    await delivering.restart()
    readable = [number for number in EIGHT if int(number) <= 5 or int(number) not in lines]
    await until(lambda: delivering.delivered() == readable)
    await house.sessions.of(SESSION).append([said(9)])
    await until(lambda: delivering.delivered() == [*readable, "9"])
    await delivering.gateway.stop()


async def test_a_repair_that_was_killed_before_it_changed_anything_loses_no_place(house: House, until: Until):
    delivering = await eight_of_which_five_are_delivered(house, until)
    delivering.rewrite(broken(2))
    await delivering.repair(until_removed=False)
    await delivering.restart()
    await until(lambda: delivering.delivered() == EIGHT)
    await delivering.stop()
    await delivering.repair()
    await delivering.restart()
    await house.sessions.of(SESSION).append([said(9)])
    await until(lambda: delivering.delivered() == [*EIGHT, "9"])
    await delivering.gateway.stop()


async def test_a_file_that_was_mended_by_hand_is_taken_up_where_it_was_left(house: House, until: Until):
    """The old position then lies within a line that was never delivered."""
    delivering = await eight_of_which_five_are_delivered(house, until)
    delivering.rewrite(lambda lines: [lines[0][:-200], *lines[1:]])
    await delivering.restart()
    await until(lambda: delivering.delivered() == EIGHT)
    receipt = house.store.get("deliver", SESSION)
    assert receipt is not None
    assert receipt.position == delivering.path.stat().st_size
    await delivering.gateway.stop()


async def test_a_wake_that_is_owed_comes_once_though_all_was_delivered_before_the_repair(house: House, until: Until):
    delivering = Delivering(house)
    await delivering.start()
    await house.sessions.of(SESSION).append([said(1), said(2, mention(), at=10**15), said(3)])
    await until(lambda: len(delivering.delivered()) == 3)
    await delivering.stop()
    delivering.rewrite(broken(1))
    await delivering.repair()
    for _ in range(2):
        await delivering.restart(waking=True)
        await until(lambda: b"turn.done" in delivering.path.read_bytes())
        await delivering.stop()
    assert len(delivering.runtime.woken) == 1
    assert delivering.delivered() == ["1", "2", "3"]
    await house.open()


async def test_a_receipt_is_put_right_before_anybody_compares_its_position(house: House, until: Until):
    """What was taken out is as long as what is undelivered: by its size alone the log looks dealt with."""
    delivering = await eight_of_which_five_are_delivered(house, until)
    delivering.rewrite(broken(1, 2, 3))
    await delivering.repair()
    await delivering.restart()
    await until(lambda: delivering.delivered() == EIGHT)
    await delivering.gateway.stop()
