"""Which chats are paired: kept in history.db, answered from memory."""

import asyncio
from collections.abc import Callable

import pytest

from core.access import Admission, AllowRules, Visit
from core.clock import now_ms
from core.errors import CodeRefused, StoreUnavailable
from core.ids import ChannelId, MessageId, UserId, discord_session, telegram_session
from core.pairing import book as under_test
from core.pairing.book import Book
from core.pairing.codes import VALID_MS, Knock, OpenCode
from tests.conftest import House

FILMS = discord_session(10)
GROUP, SUPERGROUP = telegram_session(-4001), telegram_session(-1002)


def a_knock(number: int = 10) -> Knock:
    return Knock("discord", discord_session(number), "#films\x1b[2J", UserId("5"), "Mo\u202ena\ud800", MessageId("7"))


async def opened(book: Book, knock: Knock | None = None) -> OpenCode:
    code = book.offer(knock or a_knock())
    assert code is not None
    await book.keep(code)
    return code


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let so many ms pass."""
    passed = 0

    def wait(milliseconds: int) -> None:
        nonlocal passed
        passed += milliseconds

    monkeypatch.setattr(under_test, "now_ms", lambda: now_ms() + passed)
    return wait


async def test_a_chat_is_let_in_at_once_and_still_after_a_restart(house: House):
    book = await Book.load(house.store)
    admission = Admission(AllowRules(), book.paired_on("discord"))
    visit = Visit(ChannelId("10"))
    told: list[OpenCode] = []
    book.listen(told.append)
    code = await opened(book)
    assert not admission.admits(visit)
    assert await book.admit(f"{code.code[:4].lower()} {code.code[4:]}") == code
    assert told == [code]
    assert admission.admits(visit)
    assert list(book.open_codes()) == []
    await house.reopen()
    book = await Book.load(house.store)
    assert set(book.paired_on("discord")) == {"10"}
    assert set(book.paired_on("telegram")) == set()
    assert await book.revoke(FILMS)
    assert not await book.revoke(FILMS)
    await house.reopen()
    assert set((await Book.load(house.store)).paired_on("discord")) == set()


async def test_an_open_code_survives_a_restart_and_ends_after_an_hour(house: House, clock: Callable[[int], None]):
    code = await opened(await Book.load(house.store))
    assert "\x1b" not in code.title
    assert code.user_name == "Mona\N{REPLACEMENT CHARACTER}"
    await house.reopen()
    book = await Book.load(house.store)
    assert [one.code for one in book.open_codes()] == [code.code]
    assert not book.has_room("discord", FILMS)
    clock(VALID_MS)
    assert book.has_room("discord", FILMS)
    with pytest.raises(CodeRefused):
        await book.admit(code.code)
    assert list((await Book.load(house.store)).open_codes()) == []


async def test_after_five_wrong_codes_in_a_minute_not_even_a_right_one_is_taken_for_a_minute(
    house: House, clock: Callable[[int], None]
):
    book = await Book.load(house.store)
    code = await opened(book)
    for text in ("AAAAAAAA", "", "no code", "BBBBBBBB", "'; DROP TABLE paired"):
        with pytest.raises(CodeRefused, match="no open code"):
            await book.admit(text)
        clock(5_000)
    await house.reopen()  # nor by another process
    book = await Book.load(house.store)
    clock(50_000)
    with pytest.raises(CodeRefused, match="try again in"):
        await book.admit(code.code)
    clock(5_001)
    assert (await book.admit(code.code)).session == FILMS


async def test_wrong_codes_that_are_minutes_apart_do_not_add_up(house: House, clock: Callable[[int], None]):
    book = await Book.load(house.store)
    code = await opened(book)
    for _ in range(8):
        with pytest.raises(CodeRefused, match="no open code"):
            await book.admit("AAAAAAAA")
        clock(20_000)
    assert await book.admit(code.code)


async def test_a_chat_that_moves_keeps_its_pairing_and_its_code_once(house: House):
    book = await Book.load(house.store)
    await opened(book, a_knock()._replace(platform="telegram", session=GROUP))
    await book.move(GROUP, SUPERGROUP)
    await book.move(GROUP, SUPERGROUP)
    (code,) = book.open_codes()
    assert (await book.admit(code.code)).session == SUPERGROUP
    later = telegram_session(-1003)
    await book.move(SUPERGROUP, later)
    await house.reopen()
    assert set((await Book.load(house.store)).paired_on("telegram")) == {"-1003"}


async def test_a_code_that_could_not_be_written_is_not_open(house: House):
    book = await Book.load(house.store)
    code = book.offer(a_knock())
    assert code is not None
    assert book.offer(a_knock()) is None
    await house.store.run(lambda database: database.execute("DROP TABLE pairing"))
    with pytest.raises(StoreUnavailable):
        await book.keep(code)
    assert list(book.open_codes()) == []


async def test_only_one_of_two_who_use_a_code_at_once_has_to_win(house: House):
    book = await Book.load(house.store)
    code = await opened(book)
    await asyncio.gather(book.admit(code.code), book.admit(code.code), return_exceptions=True)
    assert set(book.paired_on("discord")) == {"10"}
