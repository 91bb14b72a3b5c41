"""Who knocks is answered, and admins are told, as far as the platform lets us."""

from collections.abc import AsyncIterator

import pytest

from core.chat.port import Chat
from core.errors import ChatRefused, ChatUnavailable
from core.ids import MessageId, Platform, SessionId, ThreadId, UserId, telegram_session
from core.pairing.bell import WELCOME, Bell
from core.pairing.book import Book
from core.pairing.codes import Knock
from tests.conftest import House, Until
from tests.fakes import FakeChat

GROUP = telegram_session(-100)
KNOCK = Knock("telegram", GROUP, "Film <b>club", UserId("5"), "Mona", MessageId("7"), ThreadId("3"))
ADMINS = (("telegram", "90"), ("discord", "91"), ("telegram", "5"), ("telegram", "92"))


class Street:
    """Chats by session, and people by number."""

    def __init__(self) -> None:
        self.chats: dict[SessionId, FakeChat] = {GROUP: FakeChat()}
        self.people: dict[UserId, FakeChat] = {UserId(user): FakeChat() for _, user in ADMINS}

    async def direct(self, platform: Platform, user: UserId) -> Chat:
        assert platform == "telegram"
        return self.people[user]


@pytest.fixture
async def street(house: House) -> AsyncIterator[tuple[Street, Bell, Book]]:
    street, book = Street(), await Book.load(house.store)
    bell = Bell(book, street.chats.get, street.direct, ADMINS)
    yield street, bell, book
    await bell.stop()


async def test_the_chat_is_answered_once_in_its_topic_and_the_other_admins_of_its_platform_are_told(
    street: tuple[Street, Bell, Book], until: Until
):
    there, bell, book = street
    for _ in range(3):
        bell.ring(KNOCK)
    await until(lambda: there.people[UserId("92")].sent)
    (code,) = book.open_codes()
    (told,) = there.chats[GROUP].sent
    assert (told.quote, told.thread) == ("7", "3")
    assert f"ishiki pair {code.code}" in told.text
    (heard,) = there.people[UserId("90")].sent
    assert "Mona (5) asks to let in Film &lt;b&gt;club (tg--100)" in heard.text
    assert there.people[UserId("91")].sent == there.people[UserId("5")].sent == []
    assert not bell.is_due("telegram", GROUP)
    await book.admit(code.code)
    await until(lambda: there.chats[GROUP].sent[-1].text == WELCOME)


async def test_a_platform_that_is_away_for_a_moment_is_asked_again_and_one_that_refuses_holds_up_nobody(
    street: tuple[Street, Bell, Book], until: Until
):
    there, bell, book = street
    there.chats[GROUP].refusals += [ChatUnavailable("away", retry_after=0.0)] * 2
    there.people[UserId("90")].refusals.append(ChatRefused("never wrote to the bot"))
    bell.ring(KNOCK)
    await until(lambda: there.people[UserId("92")].sent)
    assert len(there.chats[GROUP].sent) == 1
    assert there.people[UserId("90")].sent == []
    assert len(list(book.open_codes())) == 1


async def test_a_code_that_the_disk_does_not_take_is_told_to_nobody(
    street: tuple[Street, Bell, Book], house: House, until: Until
):
    there, bell, _ = street
    await house.store.run(lambda database: database.execute("ALTER TABLE pairing RENAME TO away"))
    bell.ring(KNOCK)
    await until(lambda: bell.is_due("telegram", GROUP))
    assert there.chats[GROUP].sent == []
    await house.store.run(lambda database: database.execute("ALTER TABLE away RENAME TO pairing"))
    bell.ring(KNOCK)
    await until(lambda: there.chats[GROUP].sent)
