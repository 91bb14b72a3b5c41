"""What a message says, for those who read no markup: keywords, search, the terminal."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from core.content.markup import Element, Node, parse

_BLOCKS: Final = frozenset({"p", "code-block", "message", "quote"})
_OTHERS_WORDS: Final = frozenset({"quote", "message"})
_MEDIA: Final = {"img": "image", "audio": "audio", "video": "video", "file": "file"}

# Tab and LF; other C0, DEL and C1; marks, embeddings, overrides and isolates of direction; lone surrogates.
_UNPRINTABLE: Final = re.compile(
    "(?P<blank>\t)|(?P<break>\n|\r\n?)"
    "|[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
    "|(?P<surrogate>[\ud800-\udfff])"
)


def plain_text(content: str | Iterable[Node]) -> str:
    """Readable text of markup, or of nodes already parsed.

    A mention is `@name`, a channel `#name`, an emoji `:name:`, media `[image: title]`; a link shows its address
    beside its text; a quote's lines begin with `> `; blocks stand on lines of their own.
    """
    return _text(parse(content) if isinstance(content, str) else content, quoted=False)


def has_words(nodes: Iterable[Node]) -> bool:
    """Whether there is anything but blanks in their `plain_text`. Text tells it at once, and most nodes are text."""
    elements: list[Node] = []
    for node in nodes:
        if not isinstance(node, str):
            elements.append(node)
        elif node and not node.isspace():
            return True
    return any(plain_text([element]).strip() for element in elements)


def mentions(content: str | Iterable[Node]) -> frozenset[str]:
    """Ids of the users mentioned by name: no roles, not everyone, nobody who is named only in a quote or a forward."""
    nodes = parse(content) if isinstance(content, str) else content
    named = (element.text("id") for element in _elements(nodes, outside=_OTHERS_WORDS) if element.tag == "at")
    return frozenset(user for user in named if user)


def sources(content: str | Iterable[Node]) -> list[str]:
    """The `src` of every picture, sound, video and file, in document order."""
    nodes = parse(content) if isinstance(content, str) else content
    found = (element.text("src") for element in _elements(nodes) if element.tag in _MEDIA)
    return [source for source in found if source]


def for_terminal(text: str, *, multiline: bool = False) -> str:
    """`text` without what could move a terminal's cursor, colour it or turn its direction.

    C0, C1 and direction characters are left out; a tab is a blank, and so is a line break unless `multiline`. A lone
    surrogate, which no output can encode, becomes U+FFFD.
    """

    def printable(match: re.Match[str]) -> str:
        if match["blank"]:
            return " "
        if match["break"]:
            return "\n" if multiline else " "
        return "\N{REPLACEMENT CHARACTER}" if match["surrogate"] else ""

    return _UNPRINTABLE.sub(printable, text)


def _elements(nodes: Iterable[Node], outside: frozenset[str] = frozenset()) -> Iterator[Element]:
    for node in nodes:
        if isinstance(node, Element) and node.tag not in outside:
            yield node
            yield from _elements(node.children, outside)


def _text(nodes: Iterable[Node], *, quoted: bool) -> str:
    written: list[str] = []
    at_block_edge = False
    for node in nodes:
        text = node if isinstance(node, str) else _element_text(node, quoted=quoted)
        is_block = isinstance(node, Element) and node.tag in _BLOCKS
        if not text:
            continue
        if written and (is_block or at_block_edge) and not written[-1].endswith("\n") and not text.startswith("\n"):
            written.append("\n")
        written.append(text)
        at_block_edge = is_block
    return "".join(written)


def _element_text(element: Element, *, quoted: bool) -> str:
    inner = _text(element.children, quoted=quoted or element.tag == "quote")
    if element.tag == "quote" and not quoted:  # one mark however deep, or the text would grow with its depth
        return "\n".join(f"> {line}" for line in inner.split("\n"))
    if element.tag == "a" and (address := element.text("href")) and address != inner:
        return f"{inner} ({address})" if inner else address
    return inner or _stand_in(element)


def _stand_in(element: Element) -> str:
    """What is read where an element has no text of its own; empty if its kind needs some."""
    name = element.text("name")
    match element.tag:
        case "at":
            return f"@{name or element.text('id') or element.text('role') or element.text('type') or 'unknown'}"
        case "sharp":
            return f"#{name or element.text('id')}"
        case "emoji":
            name = name or element.text("id")
            return f":{name}:" if name.replace("_", "").isalnum() else name
        case tag if tag in _MEDIA:
            title = element.text("title") or element.text("alt")
            return f"[{_MEDIA[tag]}: {title}]" if title else f"[{_MEDIA[tag]}]"
        case _:
            return ""
