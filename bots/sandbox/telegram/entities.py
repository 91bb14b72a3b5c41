"""Text and its entities, counted in UTF-16 code units as the Bot API counts them."""

from __future__ import annotations

import re
from typing import Any

Entity = dict[str, Any]

_FOUND = re.compile(
    r"""(?P<url>\bhttps?://[^\s<>"]*[^\s<>".,;:!?'()\[\]])
      | (?P<email>\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+)
      | (?P<mention>(?<![\w/@])@[A-Za-z]\w{3,31}\b)
      | (?P<bot_command>(?<![\w/@])/\w{1,64}(?:@[A-Za-z]\w{2,31})?(?![\w/]))
      | (?P<hashtag>(?<!\w)\#(?=\w*[^\W\d])\w{1,256})
      | (?P<cashtag>(?<!\w)\$[A-Z]{3,8}\b)""",
    re.VERBOSE,
)
_SHIELDS = frozenset({"code", "pre", "text_link", "text_mention"})


def utf16_length(text: str) -> int:
    """Length in UTF-16 code units: characters beyond the basic plane count two."""
    return len(text) + sum(character > "\uffff" for character in text)


def cut(text: str, offset: int, length: int) -> str:
    """The part of `text` that an entity of this `offset` and `length` covers."""
    units = text.encode("utf-16-le", "surrogatepass")
    return units[2 * offset : 2 * (offset + length)].decode("utf-16-le", "surrogatepass")


def detect(text: str, given: list[Entity]) -> list[Entity]:
    """`given` and what every Telegram client marks by itself: links, addresses, mentions, commands and tags."""
    taken = [(one["offset"], one["offset"] + one["length"]) for one in given if one["type"] in _SHIELDS]
    found = list(given)
    for match in _FOUND.finditer(text):
        offset, length = utf16_length(text[: match.start()]), utf16_length(match.group())
        if any(offset < end and start < offset + length for start, end in taken):
            continue
        entity = {"type": match.lastgroup, "offset": offset, "length": length}
        if entity not in found:
            found.append(entity)
    return in_order(found)


def in_order(entities: list[Entity]) -> list[Entity]:
    """By offset, the outer one before the inner one."""
    return sorted(entities, key=lambda one: (one["offset"], -one["length"]))


def trim(text: str, entities: list[Entity]) -> tuple[str, list[Entity]]:
    """Drop white space at both ends, as the server does before it stores a text, and move the entities along."""
    kept = text.strip()
    lead = utf16_length(text) - utf16_length(text.lstrip())
    end = utf16_length(kept)
    moved: list[Entity] = []
    for one in entities:
        start = max(one["offset"] - lead, 0)
        length = min(one["offset"] - lead + one["length"], end) - start
        if length > 0:
            moved.append(one | {"offset": start, "length": length})
    return kept, moved
