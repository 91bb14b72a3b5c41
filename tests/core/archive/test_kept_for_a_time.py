"""Versions of files, and what models cost: kept as long as they should be, and no longer."""

import os
import time
from datetime import datetime
from pathlib import PurePath
from zoneinfo import ZoneInfo

from core.archive.file_history import KEPT_FILES_SECONDS, MOST_INSIDE, FileHistory
from core.archive.upkeep import Upkeep, until_next
from core.archive.usage import Usage
from tests.builders import SESSION
from tests.conftest import House

NOTES = PurePath("/work/notes.md")


def history(house: House) -> FileHistory:
    return FileHistory(house.store, house.folder / ".store" / "temp")


async def test_of_a_task_the_first_version_counts_and_without_one_each(house: House) -> None:
    files = history(house)
    assert await files.keep(NOTES, b"first", "modify", session=SESSION, task="t1")
    assert not await files.keep(NOTES, b"second", "modify", session=SESSION, task="t1")
    assert [version.content for version in await files.versions(NOTES)] == [b"first"]
    for content in (b"a", b"b"):
        assert await files.keep(NOTES, content, "modify", session=SESSION)
    assert [version.content for version in await files.versions(NOTES)] == [b"b", b"a", b"first"]


async def test_a_long_version_is_a_file_of_its_own_until_it_is_old(house: House) -> None:
    files = history(house)
    content = b"x" * (MOST_INSIDE + 1)
    assert await files.keep(NOTES, content, "modify", session=SESSION, task="t1")
    assert not await files.keep(NOTES, content, "modify", session=SESSION, task="t1")
    (path,) = (house.folder / ".store" / "temp").iterdir()
    assert (await files.versions(NOTES))[0].content == content
    await files.clean()
    assert (await files.versions(NOTES))[0].content == content
    old = time.time() - KEPT_FILES_SECONDS - 1
    os.utime(path, (old, old))
    await files.clean()
    assert list((house.folder / ".store" / "temp").iterdir()) == []
    assert (await files.versions(NOTES))[0].content is None


async def test_only_what_is_old_and_beyond_the_newest_goes(house: House) -> None:
    insert = "INSERT INTO file_history (dir, name, action, changed_at) VALUES ('/work', 'notes.md', 'modify', ?)"
    ages = [time.time_ns() - number * 86_400_000_000_000 for number in range(40)]

    await house.store.run(lambda database: [database.execute(insert, (age,)) for age in ages] and database.commit())
    await history(house).clean()
    assert len(await history(house).versions(NOTES)) == 32


async def test_totals_are_by_window_and_speed_only_over_replies_that_took_a_known_time(house: House) -> None:
    insert = "INSERT INTO usage (send_at, model, input, output, elapsed_ms) VALUES (?, 'openai@gpt-5', 10, ?, ?)"
    now = int(time.time())
    made = [(now, 20, 1000), (now, 99, 0), (now - 3 * 86_400, 40, 1000), (now - 29 * 86_400, 7, 7)]
    await house.store.run(lambda database: database.executemany(insert, made) and database.commit())
    await Upkeep(house.store, history(house)).clean()
    totals = await Usage(house.store).totals()
    assert [(name, one.replies, one.output, one.output_tps) for name, (one,) in totals.items()] == [
        ("24h", 2, 119, 20.0), ("7d", 3, 159, 30.0), ("28d", 3, 159, 30.0),
    ]  # fmt: skip


def test_the_next_four_in_the_morning() -> None:
    zone = ZoneInfo("UTC")
    assert until_next(datetime(2026, 5, 1, 3, 0, tzinfo=zone)) == 3600
    assert until_next(datetime(2026, 5, 1, 4, 0, tzinfo=zone)) == 86_400
