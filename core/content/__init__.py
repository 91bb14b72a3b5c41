"""Element markup, the form of every message's text: build, parse, read as plain text."""

from core.content.assembly import in_lines, without_sources
from core.content.markup import Element, Node, escape_attribute, escape_text, joined, parse, render
from core.content.plain import for_terminal, mentions, plain_text, sources
from core.content.spans import Span, nest

__all__ = [
    "Element",
    "Node",
    "Span",
    "escape_attribute",
    "escape_text",
    "for_terminal",
    "in_lines",
    "joined",
    "mentions",
    "nest",
    "parse",
    "plain_text",
    "render",
    "sources",
    "without_sources",
]
