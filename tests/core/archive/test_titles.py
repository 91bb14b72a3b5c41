"""What platforms call their chats: kept when new or changed, in few writes."""

import asyncio

import pytest

from core.archive import titles as under_test
from core.archive.profiles import Profiles, Title
from core.archive.titles import MOST_TITLE, Titles
from core.ids import discord_session
from tests.conftest import House

FILMS = discord_session(10)


def writes(house: House) -> "asyncio.Future[int]":
    return asyncio.ensure_future(house.store.run(lambda database: database.total_changes))


async def test_many_titles_are_written_together_and_again_only_when_they_change(house: House):
    titles, profiles = Titles(Profiles(house.store)), Profiles(house.store)
    for number in range(50):
        titles.note(discord_session(number), Title(f"#room {number}", guild_id="7", channel_id=str(number)))
    await titles.close()
    known = await profiles.all()
    assert known[FILMS].display == "#room 10"
    before = await writes(house)
    titles.note(FILMS, Title("#room 10", guild_id="7", channel_id="10"))
    later = Titles(profiles)  # as after a restart
    later.note(FILMS, Title("#room 10", guild_id="7", channel_id="10"))
    await titles.close()
    await later.close()
    assert await writes(house) == before
    later.note(FILMS, Title("#room ten", guild_id="7", channel_id="10"))
    await later.close()
    assert (await profiles.get(FILMS)).title == "#room ten"


async def test_a_name_set_by_hand_stays_and_a_hostile_title_is_cleaned_and_cut(house: House):
    profiles = Profiles(house.store)
    await profiles.set(FILMS, name="Films")
    titles = Titles(profiles, lambda text: text.replace("123:token", "***"))
    titles.note(FILMS, Title("\x1b[2J\u202e\ud800123:token" + "x" * 500))
    titles.note(discord_session(11), Title(""))
    await titles.close()
    known = await profiles.all()
    assert set(known) == {FILMS}
    assert known[FILMS].display == "Films"
    assert known[FILMS].title.startswith("[2J\N{REPLACEMENT CHARACTER}***x")
    assert len(known[FILMS].title) == MOST_TITLE


async def test_what_the_disk_refused_is_told_again_with_the_next_message(house: House, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(under_test, "GATHERED", 0.0)
    titles, profiles = Titles(Profiles(house.store)), Profiles(house.store)
    await house.store.run(lambda database: database.execute("ALTER TABLE session RENAME TO away"))
    titles.note(FILMS, Title("#films"))
    await asyncio.sleep(0.05)
    await house.store.run(lambda database: database.execute("ALTER TABLE away RENAME TO session"))
    titles.note(FILMS, Title("#films"))
    await titles.close()
    assert (await profiles.get(FILMS)).title == "#films"
