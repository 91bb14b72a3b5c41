"""A message's content, put together from parts."""

from collections.abc import Iterable, Sequence

from core.content.markup import Element, Node, joined
from core.content.plain import has_words


def in_lines(pieces: Iterable[Sequence[Node]]) -> list[Node]:
    """The pieces that have something to read, a line each."""
    nodes: list[Node] = []
    for piece in pieces:
        if has_words(piece):
            nodes.extend(["\n", *piece] if nodes else piece)
    return joined(nodes)


def without_sources(nodes: Iterable[Node]) -> list[Node]:
    """The same without any `src`: as another message shows it, whose files these are not."""
    return [
        node
        if isinstance(node, str)
        else Element(
            node.tag,
            {name: value for name, value in node.attributes.items() if name != "src"},
            tuple(without_sources(node.children)),
        )
        for node in nodes
    ]
