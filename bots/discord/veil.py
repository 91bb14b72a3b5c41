"""Links to Discord's own files and API, which carry signatures and tokens, never reach the log."""

import re
from collections.abc import Callable, Collection
from typing import Final

_OWN: Final = "discord"
"""A part of the name of every host of Discord's own."""


class Veil:
    """Puts words in the place of such links, wherever people paste them.

    ``hosts`` are those of the CDN. ``beside`` is the other platform's veil: people carry links from one to the other.
    Also without a scheme, with a user, a port or a dot behind the host, as programs that fetch links take them all.
    """

    def __init__(self, hosts: Collection[str], *, beside: Callable[[str], str] = str) -> None:
        self._beside = beside
        self._others = [host.casefold() for host in hosts if _OWN not in host]
        named = "".join(f"|{re.escape(host)}" for host in hosts)
        self._links = re.compile(
            r"(?:https?:)?(?://)?(?:[^\s/<>|()\"`\\@]{1,200}@)?(?<![\w-])"
            rf"(?:(?:(?:[\w-]{{1,63}}\.){{1,4}}discordapp\.(?:com|net){named})(?=\.?(?::\d{{1,5}})?/)"
            r"|(?:[\w-]{1,63}\.)?discord(?:app)?\.com(?=\.?(?::\d{1,5})?/+api\b))"
            r"\.?(?::\d{1,5})?(?P<path>/(?:[^\s<>|()\"`\\?#]|\([^\s<>()\"`\\]*\))*+)"
            r"(?:[^\s<>|()\"`\\]|\([^\s<>()\"`\\]*\))*+",
            re.ASCII | re.IGNORECASE,
        )

    def over(self, text: str) -> str:
        """``text`` with each such link replaced. Markup and JSON stay well-formed: no quote or bracket is taken."""
        return self._beside(self._links.sub(_in_words, text) if self._may_hold(text) else text)

    def _may_hold(self, text: str) -> bool:
        """Whether it is worth looking closer, which for most messages it is not."""
        if "/" not in text:
            return False
        folded = text.casefold()
        return _OWN in folded or any(host in folded for host in self._others)


def _in_words(link: re.Match[str]) -> str:
    path = link["path"].lstrip("/")
    if path.startswith("api"):
        return "[an address of Discord's API]"
    name = "".join(character for character in path.rpartition("/")[2] if character.isalnum() or character in "._-")
    return f"[a file on Discord: {name}]" if name else "[a file on Discord]"
