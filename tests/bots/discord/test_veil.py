"""Links to Discord's files and API, however they are written."""

import time

import pytest

from bots.discord.veil import Veil

VEIL = Veil(("cdn.discordapp.com", "media.discordapp.net", "127.0.0.1:5"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://u@cdn.discordapp.com/a?hm=SIG", "[a file on Discord: a]"),
        ("https://cdn.discordapp.com./a?hm=SIG x", "[a file on Discord: a] x"),
        ("HTTPS://CDN.DISCORDAPP.COM:443/a?hm=SIG", "[a file on Discord: a]"),
        ("cdn.discordapp.com/a?hm=SIG", "[a file on Discord: a]"),
        ("//media.discordapp.net/a?hm=SIG", "[a file on Discord: a]"),
        ("https://cdn.discordapp.com/1/a(1).png?ex=1&hm=SIG", "[a file on Discord: a1.png]"),
        ("https://cdn.discordapp.com/1/a'b~~c~~.png?**SIG**", "[a file on Discord: abc.png]"),
        ("[t](https://cdn.discordapp.com/1/a.png?hm=SIG) z", "[t]([a file on Discord: a.png]) z"),
        ("http://127.0.0.1:5/x/y.png", "[a file on Discord: y.png]"),
        ("https://discord.com:443/api/webhooks/1/SIG", "[an address of Discord's API]"),
        ("https://discord.com//api/webhooks/1/ab*SIG*c", "[an address of Discord's API]"),
        ("https://x@canary.discord.com/api/webhooks/1/SIG", "[an address of Discord's API]"),
        ('"https://cdn.discordapp.com/a?hm=SIG"', '"[a file on Discord: a]"'),
        ("https://discord.com/channels/1/2", "https://discord.com/channels/1/2"),
        ("I like discord.com and cdn.discordapp.com", "I like discord.com and cdn.discordapp.com"),
    ],
)
def test_a_link_is_words_however_it_is_written(text: str, shown: str) -> None:
    assert VEIL.over(text) == shown
    assert "SIG" not in VEIL.over(text)


@pytest.mark.parametrize("piece", ["a@", "/", "a.", "cdn.discordapp.com/(", "https://", "discord.com/"])
def test_no_text_takes_long(piece: str) -> None:
    started = time.perf_counter()
    VEIL.over(piece * 20_000 + "/")
    assert time.perf_counter() - started < 2
