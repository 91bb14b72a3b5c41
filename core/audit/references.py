"""What one line says of others above it: images, anchors, folds."""

from collections.abc import Iterator

from core.audit.finding import Finding, Seen, short
from core.audit.identity import Identity
from core.entries import Attachment, ChatCompact, ChatShake, Compact, CustomMessage, Images, fact_of


class References:
    """Every id that a line names stands above it; every image key names an item that is there."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._items: dict[str, int] = {}
        self._shakes: set[str] = set()

    def look(self, seen: Seen) -> Iterator[Finding]:
        match seen.entry.data:
            case CustomMessage(id=message):
                fact = fact_of(seen.entry)
                if isinstance(fact, Attachment):
                    self._items[message] = len(fact.items)
            case Images(shown=shown, released=released):
                for key in dict.fromkeys([*shown, *released]):
                    yield from self._image(seen.number, key)
            case ChatShake() as shake:
                self._shakes.add(seen.entry.id)
                yield from self._entry(seen.number, "range.start", shake.range.start)
                yield from self._entry(seen.number, "range.end", shake.range.end)
                for index, region in enumerate(shake.regions):
                    yield from self._entry(seen.number, f"regions[{index}].entryId", region.entry_id)
            case ChatCompact() as compact:
                yield from self._entry(seen.number, "lastEntryId", compact.last_entry_id)
                for index, shake_id in enumerate(compact.covered_shake_ids):
                    if shake_id not in self._shakes:
                        text = f"coveredShakeIds[{index}] names {short(shake_id)}, which is no fold above"
                        yield Finding(seen.number, "reference", text)
            case Compact() as compact:
                yield from self._entry(seen.number, "lastEntryId", compact.last_entry_id)
            case _:
                pass

    def lost(self, number: int) -> None:
        pass

    def end(self) -> Iterator[Finding]:
        return iter(())

    def _entry(self, number: int, member: str, entry: str) -> Iterator[Finding]:
        if entry not in self._identity.entries:
            yield Finding(number, "reference", f"{member} names {short(entry)}, which is no entry above")

    def _image(self, number: int, key: str) -> Iterator[Finding]:
        message, _, index = key.rpartition(":")
        count = self._items.get(message)
        if count is None:
            yield Finding(number, "images", f"the key {short(key)} names no attachment message above")
        elif not (index.isascii() and index.isdecimal() and len(index) < 10 and int(index) < count):
            yield Finding(number, "images", f"the key {short(key)} is out of range: its message has {count} items")
