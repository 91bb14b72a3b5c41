import threading
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import ids
from core.errors import InvalidId
from core.ids import SessionId, discord_session, new_session, session_id, telegram_session

A_UUID = "0f0e6a2c-3f7e-4a57-9b57-2f0f6c0f8e11"
GOOD = [
    "dc-900000000000000002",
    "tg-7000000002",
    "tg--1002000000001",
    "tg-7000000002~Ab_c-9%C3%A9",
    f"cli-{A_UUID}",
    f"chat-{A_UUID}",
    f"temp-{A_UUID}",
]
BAD = [
    "",
    "dc-",
    "dc--5",
    "dc-123456789012345678901",
    "dc-1\n",
    "dc-٣",
    "dc-1/../tg-2",
    "tg--",
    "tg-1~",
    "tg-1~%c3",
    "tg-1~a/b",
    "tg-1~" + "a" * 193,
    "cli-5",
    f"cli-{A_UUID.upper()}",
    f"web-{A_UUID}",
    "../../etc/passwd",
    "events.jsonl",
]


@pytest.mark.parametrize("text", GOOD)
def test_an_id_of_the_contract_is_read_as_it_is(text: str):
    assert session_id(text) == text


@pytest.mark.parametrize("text", BAD)
def test_anything_else_is_refused_before_it_could_become_a_path(text: str):
    with pytest.raises(InvalidId):
        session_id(text)


def test_the_prefix_alone_tells_the_platform():
    assert [ids.prefix_of(SessionId(text)) for text in GOOD] == ["dc", "tg", "tg", "tg", "cli", "chat", "temp"]
    assert ids.platform_of(discord_session(1)) == "discord"
    assert ids.platform_of(telegram_session(-1)) == "telegram"
    assert ids.platform_of(new_session("temp")) is None
    with pytest.raises(InvalidId):
        ids.prefix_of(SessionId("web-1"))


def test_a_chat_keeps_its_sign_and_its_number():
    assert ids.channel_of(telegram_session(-1002000000001)) == "-1002000000001"
    assert ids.channel_of(telegram_session(5, "abc")) == "5"
    assert ids.channel_of(discord_session("42")) == "42"
    with pytest.raises(InvalidId):
        ids.channel_of(new_session("chat"))


@given(st.text(min_size=1, max_size=16, alphabet=st.characters(codec="utf-8")))
def test_a_business_connection_of_any_letters_is_read_back(connection: str):
    session = telegram_session(7, connection)
    assert session_id(session) == session
    assert ids.business_connection_of(session) == connection
    assert ids.business_connection_of(telegram_session(7)) is None


def test_a_business_connection_that_is_no_text_is_refused():
    with pytest.raises(InvalidId):
        ids.business_connection_of(session_id("tg-1~%FF"))


def test_an_asset_keeps_its_id_and_two_messages_never_share_one():
    session = discord_session(1)
    first = ids.asset_id(session, "discord", "10", "f")
    expected = uuid.uuid5(uuid.uuid5(uuid.NAMESPACE_URL, "ishiki:asset"), "dc-1/discord/10/f")
    assert first == ids.asset_id(session, "discord", "10", "f") == str(expected)
    assert first != ids.asset_id(session, "discord", "11", "f")
    assert first != ids.asset_id(discord_session(2), "discord", "10", "f")


def test_new_ids_are_uuids_of_version_4_and_no_two_are_equal_whoever_asks():
    made: list[list[str]] = [[] for _ in range(4)]

    def make(mine: list[str]) -> None:
        mine.extend(ids.new_uuid() for _ in range(5000))

    threads = [threading.Thread(target=make, args=(mine,)) for mine in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    every = [one for mine in made for one in mine]
    assert len(every) == len(set(every)) == 20_000
    assert all(ids.is_uuid(one) and one[14] == "4" and one[19] in "89ab" for one in every)
