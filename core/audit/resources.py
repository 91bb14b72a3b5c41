"""Where bytes are: no platform's address in a log, and a sidecar for every asset."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from core.audit.finding import Finding, Seen, short
from core.content import sources
from core.entries import Attachment, MessageCreated, fact_of
from core.log.records import Sidecars
from core.sidecars import read_sidecar

_PLATFORM_URL: Final = re.compile(
    rb"https?:(?:\\?/){2}"
    rb"(?:[^\s\"/\\<>]*\b(?:cdn\.discordapp\.com|(?:media|images-ext-\d+)\.discordapp\.net|api\.telegram\.org)\b"
    rb"|(?:[\w-]+\.)?discord(?:app)?\.com(?:\\?/)api\b"
    rb"|[^\s\"<>]{1,200}?/bot\d{5,}(?::|%3[aA])[\w-]{30,})",
    re.IGNORECASE,
)
_ASSET: Final = re.compile(r"asset://([^/?#\\]+)(?:\?[^#]*)?", re.IGNORECASE)


class Sources:
    """Of each line its addresses, of each asset that a platform's message names its sidecar."""

    def __init__(self, folder: Path | None, waiting: Sidecars) -> None:
        self._folder = folder
        self._waiting = waiting
        self._sound: set[str] = set()

    def look(self, seen: Seen) -> Iterator[Finding]:
        if b"http" in seen.raw.lower() and _PLATFORM_URL.search(seen.raw):
            yield Finding(seen.number, "url", "the line holds the address of a platform's file host or API")
        match fact_of(seen.entry):
            case MessageCreated(content=content) if "asset:" in content.lower():
                urls = [url for url in sources(content) if url.lower().startswith("asset:")]
            case Attachment(source="platform", items=items):
                urls = [item.url for item in items]
            case _:
                return
        for url in urls:
            yield from self._asset(seen.number, url)

    def lost(self, number: int) -> None:
        pass

    def end(self) -> Iterator[Finding]:
        return iter(())

    def _asset(self, number: int, url: str) -> Iterator[Finding]:
        found = _ASSET.fullmatch(url)
        if found is None or found[1].startswith(".") or "\0" in found[1]:
            yield Finding(number, "asset", "a file of a platform's message is not named by an asset:// URL")
            return
        asset = found[1]
        if self._folder is None or asset in self._sound:
            return
        problem = self._problem(self._folder / f"{asset}.json", asset)
        if problem:
            yield Finding(number, "sidecar", f"the sidecar of asset {short(asset)} {problem}")
        else:
            self._sound.add(asset)

    def _problem(self, path: Path, asset: str) -> str | None:
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            waiting = self._waiting.get(f"resources/assets/{asset}.json")
            if waiting is None:
                return "is missing"
            content = waiting
        except OSError as error:
            return f"cannot be read ({error.strerror})"
        try:
            sidecar = read_sidecar(content)
        except msgspec.DecodeError as error:
            return f"is not of its shape: {error}"
        if sidecar.id != asset:
            return f"is that of {short(sidecar.id)}"
        return "holds the address of a platform's file host or API" if _PLATFORM_URL.search(content) else None
