"""Telegram's entities, which count in UTF-16 code units, into element nodes (Bot API, MessageEntity).

Addresses, hashtags, phone numbers and commands stay the text that they are, ``/command@bot`` too: it is a command, and
no mention. Of the ``@names`` only our own is a mention, since Telegram tells nobody else's number.
"""

from collections.abc import Sequence
from typing import Final

import telegram
from telegram.constants import MessageEntityType

from bots.telegram.people import Me, name_of
from core.content import Node, Span, joined, nest

_TAGS: Final = {
    MessageEntityType.BOLD: "b",
    MessageEntityType.ITALIC: "i",
    MessageEntityType.UNDERLINE: "u",
    MessageEntityType.STRIKETHROUGH: "s",
    MessageEntityType.SPOILER: "spl",
    MessageEntityType.CODE: "code",
    MessageEntityType.BLOCKQUOTE: "quote",
    MessageEntityType.EXPANDABLE_BLOCKQUOTE: "quote",
}
_LINKS: Final = ("http://", "https://", "mailto:", "tg://")


def read_entities(text: str, entities: Sequence[telegram.MessageEntity] | None, me: Me) -> list[Node]:
    """The nodes of a text, in time linear in it. Entities are cut to the text, and never within a character."""
    if not entities or not text:
        return [text] if text else []
    points = _points(text)
    last = len(points) - 1
    spans: list[Span] = []
    for entity in entities:
        start = points[min(max(entity.offset, 0), last)]
        end = points[min(max(entity.offset + entity.length, 0), last)]
        if start < end and (span := _span(entity, start, end, text[start:end], me)) is not None:
            spans.append(span)
    return joined(nest(text, spans)) if spans else [text]


def _points(text: str) -> Sequence[int]:
    """For each UTF-16 code unit of the text, and for its end, the code point that it belongs to."""
    if len(text.encode("utf-16-le", "surrogatepass")) == 2 * len(text):
        return range(len(text) + 1)
    points: list[int] = []
    for index, character in enumerate(text):
        points.append(index)
        if character > "\uffff":
            points.append(index)
    points.append(len(text))
    return points


def _span(entity: telegram.MessageEntity, start: int, end: int, covered: str, me: Me) -> Span | None:
    """What an entity means; None for one that is its own text."""
    match entity.type:
        case MessageEntityType.PRE:
            return Span(start, end, "code-block", {"lang": entity.language} if entity.language else {})
        case MessageEntityType.TEXT_LINK if entity.url and entity.url.lower().startswith(_LINKS):
            return Span(start, end, "a", {"href": entity.url})
        case MessageEntityType.TEXT_MENTION if entity.user:
            return Span(start, end, "at", {"id": str(entity.user.id), "name": name_of(entity.user) or covered})
        case MessageEntityType.MENTION if me.username and covered.lower() == f"@{me.username}".lower():
            return Span(start, end, "at", {"id": me.id, "name": me.username})
        case MessageEntityType.CUSTOM_EMOJI if entity.custom_emoji_id:
            return Span(start, end, "emoji", {"id": entity.custom_emoji_id, "name": covered})
        case kind:
            tag = _TAGS.get(kind)  # pyright: ignore[reportArgumentType, reportCallIssue] - a kind is text to the library
            return None if tag is None else Span(start, end, tag)
