"""Links to Discord's own files and API, which carry signatures and tokens, never reach the log."""

import re
from collections.abc import Collection


class Veil:
    """Puts words in the place of such links, wherever people paste them. ``hosts`` are those of the CDN."""

    def __init__(self, hosts: Collection[str]) -> None:
        named = "".join(f"|{re.escape(host)}" for host in hosts)
        self._links = re.compile(
            rf"https?://(?:(?:[\w-]{{1,63}}\.){{1,4}}discordapp\.(?:com|net)"
            rf"|(?:[\w-]{{1,63}}\.)?discord(?:app)?\.com(?=/api\b){named})(?![\w.-])"
            r"(?::\d{1,5})?(?P<path>/[^\s<>|()\"'`?#]*+)?[^\s<>|()\"'`]*+",
            re.ASCII | re.IGNORECASE,
        )

    def over(self, markup: str) -> str:
        """``markup`` with each such link replaced; it stays well-formed."""
        return self._links.sub(_in_words, markup) if "://" in markup else markup


def _in_words(link: re.Match[str]) -> str:
    path: str = link["path"] or ""
    if path.startswith("/api"):
        return "[an address of Discord's API]"
    return f"[a file on Discord: {path.rpartition('/')[2]}]"
