"""Links to Telegram's API carry a bot's token; neither they nor bare tokens reach the log, whoever pastes them."""

import re


class Veil:
    """Puts words in the place of such links and tokens. ``token`` is our own, known whatever it looks like."""

    def __init__(self, token: str) -> None:
        self._secrets = re.compile(
            r"https?://[\w.:\[\]-]{1,255}/(?:file/)?bot\d{5,20}(?::|%3A)[^\s<>|()\"'`]*+"
            r"|(?<![0-9A-Za-z])\d{5,20}(?::|%3A)[A-Za-z0-9_-]{30,}+"
            rf"|{re.escape(token)}",
            re.ASCII | re.IGNORECASE,
        )

    def over(self, text: str) -> str:
        """``text`` with each such link and token replaced. Markup and JSON stay well-formed: no quote is taken."""
        return self._secrets.sub(_in_words, text)


def _in_words(secret: re.Match[str]) -> str:
    return "[an address of Telegram's API]" if "/" in secret[0] else "[a bot token]"
