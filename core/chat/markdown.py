"""What an agent writes, CommonMark, into element nodes; both platforms format from this one tree."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from core.content import Element, Node, joined, plain_text

_MAX_NESTING: Final = 32
_LINK_SCHEMES: Final = frozenset({"http", "https", "mailto", "tg"})
_IMAGE_SCHEMES: Final = frozenset({"asset", "artifact"})
_STYLES: Final = {"em": "i", "strong": "b", "s": "s"}
_OWN_LINES: Final = frozenset({"code-block", "quote"})


class _Commonmark(MarkdownIt):
    def __init__(self) -> None:
        super().__init__("commonmark", {"html": False, "maxNesting": _MAX_NESTING})
        self.enable("strikethrough")
        # References are left as written: a few lines that define long addresses could be cited into gigabytes.
        self.disable(["reference", "html_block", "html_inline"])

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the library's name
        """Every address is a link here; which of them stay links is decided where the tree is built."""
        return True


def markdown_to_nodes(text: str) -> list[Node]:
    """The element tree of a Markdown text: CommonMark and `~~strikethrough~~`.

    Headings are bold lines; lists keep their bullets and numbers as text, indented by depth; block quotes are
    `<quote>`, code `<code>` and `<code-block lang>`. Tables, reference links and raw HTML stay text as written. Links
    to other schemes than http, https, mailto and tg are their text and address; a picture is `<img>` only for asset:
    and artifact:, else its text and address, so that nothing foreign is ever fetched or handed on. A text that nests
    deeper than 32 levels stays text altogether.
    """
    tokens = _Commonmark().parse(text)
    # At the cap the parser stops and would lose what lies deeper; the levels of inlines start anew in each block.
    deepest = max((token.level + inner.level for token in tokens for inner in token.children or (token,)), default=0)
    if deepest >= _MAX_NESTING - 1:
        return [text]
    return joined(_blocks(SyntaxTreeNode(tokens).children, indent="", gap="\n\n")) or joined([text.strip()])


def _blocks(blocks: Iterable[SyntaxTreeNode], *, indent: str, gap: str) -> Iterator[Node]:
    before: Node = ""
    for block in blocks:
        nodes = joined(_block(block, indent))
        if not nodes:
            continue
        if before:
            yield "\n" if _has_own_lines(before) or _has_own_lines(nodes[0]) else gap
            yield "" if _has_own_lines(nodes[0]) else indent
        yield from nodes
        before = nodes[-1]


def _has_own_lines(node: Node) -> bool:
    return isinstance(node, Element) and node.tag in _OWN_LINES


def _block(block: SyntaxTreeNode, indent: str) -> Iterator[Node]:
    match block.type:
        case "paragraph":
            yield from _inlines(block.children, indent)
        case "heading":
            yield from _element("b", _inlines(block.children, indent))
        case "blockquote":
            yield from _element("quote", _blocks(block.children, indent="", gap="\n\n"))
        case "bullet_list" | "ordered_list":
            yield from _list(block, indent)
        case "fence" | "code_block":
            language = block.info.split(maxsplit=1)[:1]
            attributes = {"lang": language[0]} if language else {}
            yield from _element("code-block", [block.content.removesuffix("\n")], attributes)
        case "hr":
            yield "———"
        case _:
            yield block.content


def _list(block: SyntaxTreeNode, indent: str) -> Iterator[Node]:
    start = block.attrs.get("start", 1)
    for index, item in enumerate(block.children):
        bullet = f"{int(start) + index}. " if block.type == "ordered_list" else "- "
        yield ("\n" + indent if index else "") + bullet
        yield from _blocks(item.children, indent=indent + " " * len(bullet), gap="\n")


def _inlines(inlines: Iterable[SyntaxTreeNode], indent: str) -> Iterator[Node]:
    for inline in inlines:
        match inline.type:
            case "inline":
                yield from _inlines(inline.children, indent)
            case "softbreak" | "hardbreak":
                yield "\n" + indent
            case "code_inline":
                yield Element("code", {}, (inline.content,))
            case "em" | "strong" | "s":
                yield from _element(_STYLES[inline.type], _inlines(inline.children, indent))
            case "link":
                yield from _link(str(inline.attrs["href"]), joined(_inlines(inline.children, indent)))
            case "image":
                yield from _image(str(inline.attrs["src"]), plain_text(_inlines(inline.children, "")))
            case _:
                yield inline.content


def _element(tag: str, nodes: Iterable[Node], attributes: Mapping[str, str] | None = None) -> Iterator[Element]:
    if children := joined(nodes):
        yield Element(tag, attributes or {}, tuple(children))


def _link(address: str, shown: list[Node]) -> Iterator[Node]:
    if _scheme(address) in _LINK_SCHEMES:
        yield Element("a", {"href": address}, tuple(shown or [address]))
    else:
        yield from shown
        yield from _spelled_out(address, plain_text(shown))


def _image(source: str, title: str) -> Iterator[Node]:
    if _scheme(source) in _IMAGE_SCHEMES:
        yield Element("img", {"src": source, "title": title} if title else {"src": source})
    else:
        yield title
        yield from _spelled_out(source, title)


def _spelled_out(address: str, shown: str) -> Iterator[str]:
    if address and address != shown:
        yield f" ({address})" if shown else address


def _scheme(address: str) -> str:
    return address.partition(":")[0].lower() if ":" in address else ""
