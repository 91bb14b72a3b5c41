"""Which chat is which session, and who owns the folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import FolderHeld, FolderUnusable, LogHeld, UnknownSession
from core.ids import discord_session, new_session, telegram_session
from core.sessions import directory
from core.sessions.directory import FolderLock
from core.sessions.state import key_of
from tests.builders import SESSION, a_message, said
from tests.conftest import House

ROOT = Path(__file__).parents[3]
HOLD = """
import sys
from pathlib import Path
from core.sessions.directory import FolderLock
lock = FolderLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_owner_is_told_who_holds_the_folder(tmp_path: Path):
    lock = FolderLock(tmp_path / "data")
    with pytest.raises(FolderHeld, match=rf"process {os.getpid()} on .+ISHIKI_DATA_DIR"):
        FolderLock(tmp_path / "data")
    lock.release()
    FolderLock(tmp_path / "data").release()


def test_a_lock_is_free_again_when_its_process_was_killed(tmp_path: Path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(FolderHeld, match=f"process {holder.pid} "):
            FolderLock(tmp_path)
        holder.kill()
        holder.wait()
    FolderLock(tmp_path).release()


def test_a_lock_file_is_private(tmp_path: Path):
    lock = FolderLock(tmp_path / "data")
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "data" / "ishiki.lock").stat().st_mode & 0o777 == 0o600
    lock.release()


def test_a_file_in_the_folders_place_is_named_with_the_cure(tmp_path: Path):
    (tmp_path / "data").write_bytes(b"")
    with pytest.raises(FolderUnusable, match=r"ISHIKI_DATA_DIR"):
        FolderLock(tmp_path / "data")
    (tmp_path / "other" / "ishiki.lock").mkdir(parents=True)
    with pytest.raises(FolderUnusable):
        FolderLock(tmp_path / "other")


async def test_a_chat_is_one_session_however_often_it_is_asked_for(house: House):
    assert house.sessions.of(SESSION) is house.sessions.of(SESSION)
    assert house.sessions.of(telegram_session(5)) is not house.sessions.of(telegram_session(5, "b"))


async def test_what_stands_in_a_logs_place_is_named_and_the_others_are_found(house: House):
    await house.sessions.of(SESSION).append([said(1)])
    (house.folder / "runtimes" / "tg-5").write_bytes(b"")
    assert [session for session, _ in house.sessions.sizes()] == [SESSION]
    with pytest.raises(LogHeld, match="mend"):
        await house.sessions.of(telegram_session(5)).append([said(2)])


async def test_a_session_exists_from_its_first_line_on(house: House):
    assert not house.sessions.exists(SESSION)
    with pytest.raises(UnknownSession, match="ishiki log stats"):
        house.sessions.existing(SESSION)
    assert not house.sessions.exists(SESSION), "asking makes nothing"
    await house.sessions.of(SESSION).append([said(1)])
    assert house.sessions.exists(SESSION)
    assert house.sessions.existing(SESSION) is house.sessions.of(SESSION)


async def test_sessions_are_listed_with_the_size_of_their_logs_and_strange_folders_are_not(house: House):
    web = new_session("chat")
    for session in (SESSION, web):
        await house.sessions.of(session).append([said(1)])
    (house.folder / "runtimes" / "lost+found").mkdir()
    (house.folder / "runtimes" / "dc-9").mkdir()
    assert set(house.sessions.ids()) == {SESSION, web, discord_session(9)}
    assert dict(house.sessions.sizes()) == {
        session: (house.sessions.folder(session) / "events.jsonl").stat().st_size for session in (SESSION, web)
    }


async def test_a_folder_without_sessions_lists_none(tmp_path: Path):
    house = House(tmp_path / "data")
    await house.open()
    (house.folder / "runtimes").rmdir()
    assert [*house.sessions.ids()] == []
    await house.close()


async def test_more_sessions_than_memory_keeps_still_write_each_thing_once(house: House):
    sessions = [discord_session(number) for number in range(1, directory.MOST_REMEMBERED + 20)]
    for session in sessions[:3]:
        await house.sessions.of(session).append([said(1)])
    for session in sessions[3:]:
        house.sessions.of(session)
    for session in sessions[:3]:
        assert await house.sessions.of(session).append([said(1)]) == []
        assert await house.sessions.of(session).standing(key_of(a_message(1))) is not None


async def test_close_waits_for_what_was_handed_in(tmp_path: Path):
    house = House(tmp_path / "data")
    await house.open()
    waiting = house.sessions.of(SESSION).append([said(1)])
    await house.close()
    assert len(await waiting) == 1
