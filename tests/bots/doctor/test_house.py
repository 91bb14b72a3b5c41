"""The house itself: folder, disk, logs, database, clock, runtime, our own API."""

import asyncio
import os
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bots.doctor.disk import Room, look_at_writing
from bots.doctor.logs import NEWEST, look_at_logs
from bots.sandbox.runtime import RuntimeSandbox
from core.ids import discord_session
from core.sessions.directory import FolderLock
from tests.bots.doctor.conftest import Patient
from tests.builders import said
from tests.conftest import House

MIB = 1024**2


def snapshot(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file below a folder, with what a write would change."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_mode, path.read_bytes()) for path in files}


async def test_a_healthy_house_is_all_ok(patient: Patient) -> None:
    found = await patient.look()
    assert [finding for finding in found.values() if finding.status != "ok"] == []
    assert all(finding.cure == "" for finding in found.values())


async def test_nothing_is_changed_by_looking(patient: Patient, runtime: RuntimeSandbox) -> None:
    before = snapshot(patient.data)
    await patient.look()
    assert snapshot(patient.data) == before
    assert all(call.method == "GET" for call in patient.discord.calls)
    assert patient.telegram.pending_updates() == 1
    assert runtime.calls == []


async def test_a_folder_that_others_can_look_into_is_a_warning(patient: Patient) -> None:
    patient.data.chmod(0o755)
    found = (await patient.look())["folder"]
    assert (found.status, "chmod 700" in found.cure) == ("warn", True)


async def test_a_folder_that_is_not_there_yet_is_no_fault_and_is_not_made(patient: Patient, tmp_path: Path) -> None:
    found = await patient.look(ISHIKI_DATA_DIR=str(tmp_path / "a" / "b"))
    assert {found[name].status for name in ("folder", "disk.room", "disk.writing", "logs", "database")} == {"ok"}
    assert not (tmp_path / "a").exists()


async def test_a_file_in_the_place_of_the_folder_is_a_failure(patient: Patient, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert (await patient.look(ISHIKI_DATA_DIR=str(tmp_path / "file")))["folder"].status == "fail"


async def test_who_holds_the_folder_is_said_and_is_not_in_the_way(patient: Patient) -> None:
    lock = FolderLock(patient.data)
    try:
        found = (await patient.look())["holder"]
    finally:
        lock.release()
    assert (found.status, f"process {os.getpid()}" in found.message) == ("ok", True)
    FolderLock(patient.data).release()


@pytest.mark.parametrize(
    ("room", "status"),
    [
        (Room(10 * MIB, None), "fail"),
        (Room(500 * MIB, None), "warn"),
        (Room(50_000 * MIB, 400), "fail"),
        (Room(50_000 * MIB, 4000), "warn"),
        (Room(50_000 * MIB, None), "ok"),
    ],
)
async def test_a_disk_that_is_nearly_full_is_told_in_bytes_and_in_files(
    patient: Patient, room: Room, status: str
) -> None:
    assert (await patient.look(room=lambda _folder: room))["disk.room"].status == status


def test_a_slow_disk_is_a_warning(tmp_path: Path) -> None:
    seconds = iter(range(100))
    assert look_at_writing(tmp_path, lambda: float(next(seconds))).status == "warn"
    assert list(tmp_path.iterdir()) == []


async def test_a_file_of_secrets_that_others_can_read_is_a_warning(patient: Patient) -> None:
    dotenv = patient.data.parent / ".env"
    dotenv.touch()
    dotenv.chmod(0o640)
    found = (await patient.look())["dotenv"]
    assert (found.status, "chmod 600" in found.cure) == ("warn", True)
    dotenv.chmod(0o600)
    assert (await patient.look())["dotenv"].status == "ok"


async def test_a_damaged_log_is_named(patient: Patient) -> None:
    session = discord_session(patient.channel.id)
    with (patient.data / "runtimes" / session / "events.jsonl").open("ab") as log:
        log.write(b"{broken}\n")
    found = (await patient.look())["logs"]
    assert found.status == "fail"
    assert session in found.message
    assert "ishiki log repair" in found.cure


async def test_a_torn_tail_is_a_warning(patient: Patient) -> None:
    session = discord_session(patient.channel.id)
    with (patient.data / "runtimes" / session / "events.jsonl").open("ab") as log:
        log.write(b'{"type":"mess')
    assert (await patient.look())["logs"].status == "warn"


def test_a_look_into_many_logs_ends_in_time_and_says_so(patient: Patient) -> None:
    seconds = iter([0.0, 1.0, 100.0])
    found = look_at_logs(patient.data, lambda: next(seconds))
    assert found.status == "ok"
    assert found.message.startswith("1 of 2 logs")


def test_of_a_large_log_the_newest_part_is_looked_into(patient: Patient) -> None:
    path = patient.data / "runtimes" / discord_session(patient.channel.id) / "events.jsonl"
    line = path.read_bytes()
    with path.open("wb") as log:
        log.write(b"not what was written\n" + line * (NEWEST // len(line) + 2))
    found = look_at_logs(patient.data)
    assert (found.status, "newest part" in found.message) == ("ok", True)
    with path.open("ab") as log:
        log.write(b"not what was written\n")
    assert look_at_logs(patient.data).status == "fail"


async def test_a_journal_of_a_program_that_was_cut_off_is_told(patient: Patient) -> None:
    house = House(patient.data)
    await house.open()
    await house.sessions.of(discord_session(patient.channel.id)).append([said(2)])
    left = (patient.data / ".store" / "journal").read_bytes()
    await house.close()
    (patient.data / ".store" / "journal").write_bytes(left)
    found = (await patient.look())["journal"]
    assert (found.status, "holds 1 write" in found.message) == ("warn", True)


async def test_a_damaged_database_is_told(patient: Patient) -> None:
    path = patient.data / ".store" / "history.db"
    path.write_bytes(b"no database at all, but long enough to be looked at" * 100)
    found = await patient.look()
    assert found["database"].status == "fail"
    assert found["parked"].message == "not looked at, because of database"


async def test_what_was_set_aside_is_counted(patient: Patient) -> None:
    with closing(sqlite3.connect(patient.data / ".store" / "history.db")) as database, database:
        database.execute("INSERT INTO outbox VALUES ('deliver:x', 'dc-1', 'parked', 'refused', 0)")
    assert (await patient.look())["parked"].status == "warn"


async def test_a_confirmation_that_could_not_be_read_is_counted(patient: Patient) -> None:
    broken = patient.data / "runtimes" / discord_session(patient.channel.id) / "pending" / "broken"
    broken.mkdir(parents=True)
    (broken / "7d0f2b34-9a51-4f8e-9c11-0c2f5e6a7b80.json").write_text("{")
    assert (await patient.look())["pending"].status == "warn"


@pytest.mark.parametrize(("seconds", "status"), [(300, "fail"), (-300, "fail"), (10, "warn"), (-10, "warn")])
async def test_a_clock_that_is_off_is_told_by_either_platform(patient: Patient, seconds: int, status: str) -> None:
    patient.discord.shift_clock(seconds)
    found = (await patient.look())["clock"]
    assert (found.status, "Discord" in found.message) == (status, True)
    patient.discord.shift_clock(-seconds)
    patient.telegram.shift_clock(seconds)
    found = (await patient.look())["clock"]
    assert (found.status, "Telegram" in found.message) == (status, True)


async def test_the_clock_is_compared_also_where_the_token_is_refused(patient: Patient) -> None:
    patient.discord.shift_clock(300)
    assert (await patient.look(DISCORD_TOKEN="wrong"))["clock"].status == "fail"


async def test_a_runtime_that_refuses_the_token_is_a_failure(patient: Patient, runtime: RuntimeSandbox) -> None:
    found = await patient.look(ISHIKI_RUNTIME_TOKEN="another")
    assert (found["runtime"].status, runtime.calls) == ("fail", [])


async def test_a_runtime_that_is_not_there_is_a_failure_and_none_at_all_a_warning(patient: Patient) -> None:
    assert (await patient.look(ISHIKI_RUNTIME_URL="http://127.0.0.1:1"))["runtime"].status == "fail"
    assert (await patient.look(ISHIKI_RUNTIME_URL=""))["runtime"].status == "warn"


async def test_a_port_that_another_program_has_is_a_failure(patient: Patient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        asking = asyncio.create_task(patient.look(ISHIKI_HTTP_PORT=str(listener.getsockname()[1])))
        caller, _ = await asyncio.to_thread(listener.accept)
        caller.close()
        found = (await asking)["api"]
    assert (found.status, "another program" in found.message) == ("fail", True)


async def test_nobody_to_hear_and_nobody_let_in_are_warnings(patient: Patient) -> None:
    assert (await patient.look(DISCORD_TOKEN="", TELEGRAM_TOKEN=""))["settings"].status == "warn"
    found = (await patient.look(TELEGRAM_ALLOW=""))["settings"]
    assert (found.status, "TELEGRAM_ALLOW" in found.cure) == ("warn", True)
