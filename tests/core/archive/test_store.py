"""history.db: receipts that are on disk when they should be, and a database that cannot be used."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import core.archive.store
from core.archive.store import Store
from core.errors import FolderUnusable, StoreUnavailable
from core.ids import EntryId
from core.sessions.receipts import Receipt
from tests.builders import SESSION
from tests.conftest import Until


def on_disk(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT name, value FROM cursor ORDER BY name").fetchall()


def moved_aside(folder: Path) -> list[Path]:
    return list(folder.glob("history.db.damaged-*"))


async def test_receipts_outlive_the_process(tmp_path: Path, until: Until) -> None:
    path = tmp_path / "history.db"
    store = Store.open(path)
    await store.put_durably("wake", SESSION, Receipt(EntryId("a"), 5, "turn t"))
    assert on_disk(path) == [("wake", "a 5 turn t")]
    store.put("deliver", SESSION, Receipt(EntryId("b"), 7))
    await until(lambda: len(on_disk(path)) == 2)
    await store.close()
    store = Store.open(path)
    assert store.get("wake", SESSION) == Receipt(EntryId("a"), 5, "turn t")
    assert store.get("deliver", SESSION) == Receipt(EntryId("b"), 7)
    await store.close()


async def test_a_receipt_that_is_not_on_disk_is_said_so_and_never_overtaken_by_an_older_one(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    store = Store.open(path, patience=0)
    other = sqlite3.connect(path, timeout=0, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable):
        await store.put_durably("wake", SESSION, Receipt(EntryId("old"), 1))
    other.execute("COMMIT")
    await store.put_durably("wake", SESSION, Receipt(EntryId("new"), 2))
    await store.close()
    other.close()
    assert on_disk(path) == [("wake", "new 2")]


async def test_a_damaged_database_is_moved_aside_and_a_locked_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    path.write_bytes(b"this is no database" * 100)
    store = Store.open(path)
    await store.close()
    assert len(moved_aside(tmp_path)) == 1
    path.unlink()
    path.mkdir()
    with pytest.raises(FolderUnusable, match=r"history\.db"):
        Store.open(path)
    assert path.is_dir()


async def test_what_was_sent_and_what_was_parked_is_kept(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "history.db")
    assert await store.outbox("k") is None
    await store.put_outbox("k", SESSION, "sending", "{}")
    await store.put_outbox("k", SESSION, "sent", "{1}")
    assert await store.outbox("k") == ("sent", "{1}")
    await store.park("telegram", "message: KeyError", "{}")
    assert await store.parked() == [("telegram", "message: KeyError", "{}")]
    await store.close()


async def test_what_was_kept_long_enough_goes_at_the_start_and_while_it_runs(
    tmp_path: Path, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core.archive.store, "KEPT_MS", -60_000)
    monkeypatch.setattr(core.archive.store, "PRUNED_EVERY_MS", -1)
    path = tmp_path / "history.db"
    store = Store.open(path)
    await store.put_outbox("speech:k", SESSION, "sent", "{}")
    await store.put_outbox("deliver:k", SESSION, "parked", "{}")
    store.put("deliver", SESSION, Receipt(EntryId("e"), 1))
    await until(lambda: count(path, "outbox") == 1)
    assert await store.outbox("deliver:k")
    await store.park("telegram", "reason", "raw")
    await store.close()
    store = Store.open(path)
    assert await store.parked() == []
    await store.close()


def count(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as database:
        return database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
