"""What sessions are called and how they are set up."""

import sqlite3

import pytest

from core.archive.profiles import Profile, Profiles
from core.errors import InvalidRequest, NameTaken
from core.ids import SessionId
from tests.conftest import House

A, B = SessionId("dc-5"), SessionId("tg-5")


async def test_nothing_is_known_of_a_session_that_nobody_set_up(house: House) -> None:
    profile = await Profiles(house.store).get(A)
    assert profile == Profile(A)
    assert profile.display == A


async def test_a_name_set_by_hand_comes_before_the_title_of_the_platform(house: House) -> None:
    profiles = Profiles(house.store)
    await profiles.entitle(A, "#general", guild_id="1", channel_id="5")
    assert (await profiles.get(A)).display == "#general"
    await profiles.set(A, name="the hall")
    await profiles.entitle(A, "#renamed")
    await house.reopen()
    profile = await Profiles(house.store).get(A)
    assert (profile.display, profile.title) == ("the hall", "#renamed")
    assert (await Profiles(house.store).all()) == {A: profile}


async def test_a_persona_is_written_twice_and_role_is_read_first(house: House) -> None:
    profiles = Profiles(house.store)
    assert (await profiles.set(A, persona="kind")).persona == "kind"

    def columns(database: sqlite3.Connection) -> tuple[str, str]:
        return database.execute("SELECT role, rule FROM session").fetchone()

    assert await house.store.run(columns) == ("kind", "kind")
    await house.store.run(lambda database: database.execute("UPDATE session SET role = '', rule = 'of old'"))
    assert (await profiles.get(A)).persona == "of old"


async def test_an_alias_belongs_to_one_session(house: House) -> None:
    profiles = Profiles(house.store)
    await profiles.set(A, self_id="mona")
    with pytest.raises(NameTaken):
        await profiles.set(B, self_id="mona", name="lost")
    assert await profiles.get(B) == Profile(B)
    await profiles.set(A, self_id="")
    assert (await profiles.set(B, self_id="mona")).self_id == "mona"


@pytest.mark.parametrize("wrong", ["Mona", "a b", "ä", "x" * 33])
async def test_an_alias_of_another_shape_is_refused(house: House, wrong: str) -> None:
    with pytest.raises(InvalidRequest):
        await Profiles(house.store).set(A, self_id=wrong)


async def test_what_is_forgotten_is_blank_again(house: House) -> None:
    profiles = Profiles(house.store)
    await profiles.set(A, name="x")
    await profiles.forget(A)
    assert await profiles.get(A) == Profile(A)
