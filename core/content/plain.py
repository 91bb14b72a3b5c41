"""What a message says, for those who read no markup: keywords, search, the terminal."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from core.content.markup import Element, Node, parse

_BLOCKS: Final = frozenset({"p", "code-block", "message", "quote"})
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
    lines = _Lines()
    lines.write(parse(content) if isinstance(content, str) else content)
    return lines.text()


def mentions(content: str | Iterable[Node]) -> frozenset[str]:
    """Ids of the users mentioned by name: no roles, not everyone, nobody who is only mentioned in a quote."""
    nodes = parse(content) if isinstance(content, str) else content
    named = (element.text("id") for element in _elements(nodes, outside="quote") if element.tag == "at")
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


def _elements(nodes: Iterable[Node], outside: str = "") -> Iterator[Element]:
    for node in nodes:
        if isinstance(node, Element) and node.tag != outside:
            yield node
            yield from _elements(node.children, outside)


class _Lines:
    """Text in the making, which knows whether it stands at the start of a line."""

    def __init__(self) -> None:
        self._written: list[str] = []
        self._break_pending = False

    def text(self) -> str:
        return "".join(self._written)

    def write(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            if isinstance(node, str):
                self._add(node)
            elif node.tag in _BLOCKS:
                self._break_pending = bool(self._written)
                self._add(
                    "\n".join(f"> {line}" for line in plain_text(node.children).split("\n"))
                    if node.tag == "quote"
                    else plain_text(node.children)
                )
                self._break_pending = True
            elif leaf := _leaf(node):
                self._add(leaf)
            else:
                self._write_inline(node)

    def _write_inline(self, node: Element) -> None:
        self.write(node.children)
        address = node.text("href") if node.tag == "a" else ""
        if address and address != plain_text(node.children):
            self._add(f" ({address})" if node.children else address)

    def _add(self, text: str) -> None:
        if not text:
            return
        if self._break_pending and not text.startswith("\n") and not self._written[-1].endswith("\n"):
            self._written.append("\n")
        self._break_pending = False
        self._written.append(text)


def _leaf(element: Element) -> str:
    """What stands for an element that has no text of its own; empty for every other element."""
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
