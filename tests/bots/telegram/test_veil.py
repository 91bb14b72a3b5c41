"""Links to Telegram's API and tokens, wherever they stand."""

import time

import pytest

from bots.telegram.veil import Veil

TOKEN = "123456789:AAE" + "x" * 32
OURS = "42:short"
VEIL = Veil(OURS)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"https://api.telegram.org/bot{TOKEN}/getMe?a=1 x", "[an address of Telegram's API] x"),
        (f"http://127.0.0.1:5/file/bot{TOKEN}/photos/1.jpg", "[an address of Telegram's API]"),
        (TOKEN.replace(":", "%3A"), "[a bot token]"),
        (f'{{"token": "{TOKEN}"}}', '{"token": "[a bot token]"}'),
        (f"ours is {OURS}, you know", "ours is [a bot token], you know"),
        ("see https://t.me/bot at 12:30", "see https://t.me/bot at 12:30"),
    ],
)
def test_an_address_or_token_is_words(text: str, shown: str) -> None:
    assert VEIL.over(text) == shown


@pytest.mark.parametrize("piece", ["http://", "1", "12345:", "https://a/bot12345:", "42:"])
def test_no_text_takes_long(piece: str) -> None:
    started = time.perf_counter()
    VEIL.over(piece * 20_000)
    assert time.perf_counter() - started < 2


def test_the_secret_half_of_our_own_token_is_hidden_alone() -> None:
    assert Veil(TOKEN).over(f"123456789_{TOKEN.partition(':')[2]}.txt") == "123456789_[a bot token].txt"
    assert Veil(None).over("nothing to hide") == "nothing to hide"
