"""Links to Telegram's API carry a bot's token; neither they nor bare tokens reach the log, whoever pastes them."""

import re
from collections.abc import Callable
from typing import Final

_HOST: Final = "api.telegram.org"
_TOKEN: Final = re.compile(r":(?<=\d{5}:)|%3[Aa](?<=\d{5}%3.)", re.ASCII)
"""The middle of every token."""


class Veil:
    """Puts words in the place of such links and tokens.

    ``token`` is our own, known whatever it looks like; None where Telegram is off. ``beside`` is the other platform's
    veil: people carry links from one to the other.
    """

    def __init__(self, token: str | None, *, beside: Callable[[str], str] = str) -> None:
        self._beside = beside
        # Our own is known in full, so its secret half is hidden alone too, as a file name has it that lost its colon.
        secret = (token or "").partition(":")[2]
        self._own = ((secret if len(secret) >= 20 else token) or _HOST).casefold()
        ours = [re.escape(part) for part in (token, secret if len(secret) >= 20 else None) if part]
        self._secrets = re.compile(
            r"https?://[\w.:\[\]-]{1,255}/(?:file/)?bot\d{5,20}(?::|%3A)[^\s<>|()\"'`\\]*+"
            r"|https?://(?:[^\s/<>|()\"'`\\]{1,200}@)?api\.telegram\.org(?![\w.-])[^\s<>|()\"'`\\]*+"
            r"|(?<![0-9])\d{5,20}(?::|%3A)[A-Za-z0-9_-]{30,}+" + "".join(f"|{part}" for part in ours),
            re.ASCII | re.IGNORECASE,
        )

    def over(self, text: str) -> str:
        """``text`` with each such link and token replaced. Markup and JSON stay well-formed: no quote is taken."""
        return self._beside(self._secrets.sub(_in_words, text) if self._may_hold(text) else text)

    def _may_hold(self, text: str) -> bool:
        """Whether it is worth looking closer, which for most messages it is not."""
        folded = text.casefold()
        if _HOST in folded or self._own in folded:
            return True
        return (":" in text or "%" in text) and _TOKEN.search(text) is not None


def _in_words(secret: re.Match[str]) -> str:
    return "[an address of Telegram's API]" if "/" in secret[0] else "[a bot token]"
