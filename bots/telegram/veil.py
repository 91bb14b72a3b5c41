"""Links to Telegram's API carry a bot's token; neither they nor bare tokens reach the log, whoever pastes them."""

import re
from typing import Final

_SECRETS: Final = re.compile(
    r"https?://[\w.:\[\]-]{1,255}/(?:file/)?bot\d{5,20}(?::|%3A)[^\s<>|()\"'`]*+"
    r"|(?<![0-9A-Za-z])\d{5,20}(?::|%3A)[A-Za-z0-9_-]{30,}+",
    re.ASCII | re.IGNORECASE,
)


def veiled(markup: str) -> str:
    """``markup`` with each such link and token replaced by words; it stays well-formed."""
    return _SECRETS.sub(_in_words, markup)


def _in_words(secret: re.Match[str]) -> str:
    return "[an address of Telegram's API]" if "/" in secret[0] else "[a bot token]"
