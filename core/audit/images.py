"""Which pictures a model was shown: `ishiki.images` (log-format 6.4)."""

from collections.abc import Iterator

from core.audit.finding import Finding, Seen, short
from core.audit.identity import Key, key
from core.entries import AssistantMessage, Attachment, CustomMessage, Images, fact_of


class ShownImages:
    """Each key names an item above and stands behind its step; what was released is not shown again."""

    def __init__(self) -> None:
        self._items: dict[Key, int] = {}
        self._released: set[str] = set()
        self._spoken: str | None = None

    def look(self, seen: Seen) -> Iterator[Finding]:
        match seen.entry.data:
            case CustomMessage(id=message):
                fact = fact_of(seen.entry)
                if isinstance(fact, Attachment):
                    self._items[key(message)] = len(fact.items)
            case AssistantMessage():
                self._spoken = seen.entry.turn_id
            case Images() as images:
                yield from self._images(seen, images)
            case _:
                pass

    def lost(self, number: int) -> None:
        pass

    def end(self) -> Iterator[Finding]:
        return iter(())

    def _images(self, seen: Seen, images: Images) -> Iterator[Finding]:
        if not images.shown and not images.released:
            yield Finding(seen.number, "images", "both lists are empty; such a line is not written")
        if self._spoken is None or self._spoken != seen.entry.turn_id:
            yield Finding(seen.number, "images", "no assistant message of its turn stands above it")
        for again in sorted(self._released.intersection(images.shown)):
            yield Finding(seen.number, "images", f"the key {short(again)} is shown again though it was released above")
        self._released.update(images.released)
        for name in dict.fromkeys([*images.shown, *images.released]):
            yield from self._image(seen.number, name)

    def _image(self, number: int, name: str) -> Iterator[Finding]:
        message, _, index = name.rpartition(":")
        count = self._items.get(key(message))
        if count is None:
            yield Finding(number, "images", f"the key {short(name)} names no attachment message above")
        elif not (index.isascii() and index.isdecimal() and len(index) < 10 and int(index) < count):
            yield Finding(number, "images", f"the key {short(name)} is out of range: its message has {count} items")
