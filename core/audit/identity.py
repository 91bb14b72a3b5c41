"""Who is who: no id stands for two things."""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from core.audit.finding import Finding, Seen, short
from core.entries import AnyEntry, Unknown

Key = str | int
"""An id as it is kept: equal only where the texts are."""

_UUID: Final = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class _WithId(msgspec.Struct):
    id: str | None = None


def key(text: str) -> Key:
    """A UUID takes half the memory as a number."""
    return int(text.replace("-", ""), 16) if _UUID.fullmatch(text) else text


def _message_id(entry: AnyEntry) -> str | None:
    if entry.type != "message":
        return None
    if not isinstance(entry.data, Unknown):
        return entry.data.id
    try:
        return msgspec.json.decode(entry.data.raw, type=_WithId).id
    except msgspec.DecodeError:
        return None


class Identity:
    """Entry ids are unique, message ids too, and no value is both."""

    def __init__(self) -> None:
        self._entries: set[Key] = set()
        self._messages: set[Key] = set()

    def holds(self, entry: str) -> bool:
        """Whether an entry of that id stands above."""
        return key(entry) in self._entries

    def look(self, seen: Seen) -> Iterator[Finding]:
        entry = key(seen.entry.id)
        if entry in self._entries:
            text = f"the entry id {short(seen.entry.id)} stands on an earlier line too"
            yield Finding(seen.number, "duplicate-id", text)
        self._entries.add(entry)
        if (text := _message_id(seen.entry)) is not None:
            yield from self._message(seen.number, text)
        if entry in self._messages and seen.entry.id != text:
            text = f"the entry id {short(seen.entry.id)} is the data.id of a message too"
            yield Finding(seen.number, "crossed-id", text)

    def _message(self, number: int, text: str) -> Iterator[Finding]:
        message = key(text)
        if message in self._messages:
            yield Finding(
                number, "duplicate-id", f"the message id {short(text)} (data.id) stands on an earlier line too"
            )
        self._messages.add(message)
        if message in self._entries:
            yield Finding(number, "crossed-id", f"data.id {short(text)} is the entry id of a line too")

    def lost(self, number: int) -> None:
        pass

    def end(self) -> Iterator[Finding]:
        return iter(())
