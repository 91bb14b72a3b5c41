"""A data folder in one file, and back: while it is written to, whole or not at all."""

import asyncio
import io
import json
import random
import tarfile
from pathlib import Path

import pytest

from core.archive.store import Store
from core.backup import restore, take
from core.errors import BackupRefused
from core.ids import EntryId, SessionId
from core.log.view import read_journal
from core.sessions.facts import Said
from core.sessions.receipts import Receipt
from tests.builders import SESSION, a_message, a_picture, said
from tests.conftest import House


def taken(folder: Path, *, compress: bool = False) -> bytes:
    into = io.BytesIO()
    assert take(folder, into, compress=compress).unreadable == {}
    return into.getvalue()


def with_a_picture(number: int) -> Said:
    return Said(a_message(number), media=(a_picture(number),))


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix not in {".db", ".db-wal", ".db-shm"} and path.name != "journal"
    }


@pytest.mark.parametrize("compress", [True, False])
async def test_what_is_restored_is_what_was_there(house: House, tmp_path: Path, *, compress: bool) -> None:
    await house.sessions.of(SESSION).append([said(1), with_a_picture(2)])
    house.store.put("deliver", SESSION, Receipt(EntryId("e"), 5))
    (house.folder / "runtimes" / SESSION / "bot.json").write_text("of an older layout")
    await house.reopen()
    backup = taken(house.folder, compress=compress)
    restore(io.BytesIO(backup), tmp_path / "new")
    before = {name: content for name, content in files(house.folder).items() if name != "ishiki.lock"}
    assert files(tmp_path / "new") == before
    store = Store.open(tmp_path / "new" / ".store" / "history.db")
    assert store.get("deliver", SESSION) == Receipt(EntryId("e"), 5)
    await store.close()
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "new").rglob("*") if path.is_dir()} == {0o700}


async def test_a_backup_taken_under_load_holds_whole_lines_without_gap(house: House, tmp_path: Path) -> None:
    stop = asyncio.Event()

    async def talk(session: SessionId) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            await house.sessions.of(session).append([with_a_picture(number)])
            house.store.put("fetch", session, Receipt(EntryId(str(number)), house.sessions.of(session).size))

    talking = [asyncio.create_task(talk(SessionId(f"dc-{number}"))) for number in range(5)]
    await asyncio.sleep(0.3)
    backups = [await asyncio.to_thread(taken, house.folder) for _ in range(3)]
    stop.set()
    await asyncio.gather(*talking)
    for number, backup in enumerate(backups):
        folder = tmp_path / f"new-{number}"
        restore(io.BytesIO(backup), folder)
        store = Store.open(folder / ".store" / "history.db")
        for log in folder.glob("runtimes/*/events.jsonl"):
            content = log.read_bytes()
            created = [line for line in map(json.loads, content.splitlines()) if line["type"] == "message"]
            numbers = [int(line["data"]["data"]["messageId"]) for line in created]
            assert numbers == [each for each in range(1, len(numbers) // 2 + 1) for _ in range(2)]
            assert content.endswith(b"\n")
            assets = {path.stem for path in (log.parent / "resources" / "assets").glob("*.json")}
            urls = [item["url"] for line in created[1::2] for item in line["data"]["data"]["items"]]
            assert {url.removeprefix("asset://") for url in urls} <= assets
            receipt = store.get("fetch", SessionId(log.parent.name))
            assert receipt is None or receipt.position <= len(content)  # or what it tells of would be skipped
        await store.close()


def a_backup(**members: bytes) -> bytes:
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w|") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return into.getvalue()


LINK = tarfile.TarInfo("runtimes/x/link")
LINK.type, LINK.linkname = tarfile.SYMTYPE, "/etc"


@pytest.mark.parametrize(
    "hostile",
    [
        b"",
        b"no archive at all" * 100,
        a_backup(**{"../evil": b"x"}),
        a_backup(**{"/etc/evil": b"x"}),
        a_backup(**{"runtimes/../../evil": b"x"}),
        a_backup(**{"elsewhere/x": b"x"}),
        a_backup(**{"runtimes/x": b"x"}),
        a_backup(**{"runtimes/x": b"x", "SHA256SUMS": b"0000  runtimes/x\n"}),
        a_backup(SHA256SUMS=b"runtimes"),
    ],
)
def test_what_is_no_backup_leaves_nothing(tmp_path: Path, hostile: bytes) -> None:
    with pytest.raises(BackupRefused):
        restore(io.BytesIO(hostile), tmp_path / "new")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


async def test_a_damaged_backup_is_refused_wherever_it_is_damaged(house: House, tmp_path: Path) -> None:
    await house.sessions.of(SESSION).append([said(number) for number in range(50)])
    backup = taken(house.folder)
    chance = random.Random(3)
    for _ in range(40):
        place = chance.randrange(len(backup.rstrip(b"\0")))
        for damaged in (backup[:place], backup[:place] + bytes([backup[place] ^ 0x55]) + backup[place + 1 :]):
            try:
                restore(io.BytesIO(damaged), tmp_path / "new")
            except BackupRefused:
                assert not (tmp_path / "new" / "runtimes").exists()
            else:  # in a member's date, or its padding
                log = tmp_path / "new" / "runtimes" / SESSION / "events.jsonl"
                assert log.read_bytes() == (house.folder / "runtimes" / SESSION / "events.jsonl").read_bytes()
                for top in ("runtimes", ".store"):
                    (tmp_path / "new" / top).rename(tmp_path / f"{top}-{place}-{len(damaged)}")


async def test_nothing_that_is_there_is_overwritten(house: House) -> None:
    await house.sessions.of(SESSION).append([said(1)])
    backup, before = taken(house.folder), files(house.folder)
    with pytest.raises(BackupRefused):
        restore(io.BytesIO(backup), house.folder)
    assert files(house.folder) == before


async def test_what_only_the_journal_holds_is_in_the_backup(house: House, tmp_path: Path) -> None:
    await house.sessions.of(SESSION).append([said(1), said(2)])
    log = house.folder / "runtimes" / SESSION / "events.jsonl"
    whole = log.read_bytes()
    log.write_bytes(whole[: len(whole) // 2])  # as a crash may leave it, with the journal still there
    assert SESSION in read_journal(house.folder)
    restore(io.BytesIO(taken(house.folder)), tmp_path / "new")
    assert (tmp_path / "new" / "runtimes" / SESSION / "events.jsonl").read_bytes() == whole
