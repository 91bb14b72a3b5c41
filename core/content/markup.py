"""Element markup: the tree, its reader and its writer.

The vocabulary is that of the Satori protocol's message elements: `<at>`, `<sharp>`, `<emoji>`, `<img>`, `<audio>`,
`<video>`, `<file>`, `<b>`, `<i>`, `<u>`, `<s>`, `<spl>`, `<code>`, `<code-block lang>`, `<a href>`, `<p>`, `<quote>`,
`<message forward>`. A line break is LF; `<br/>` is read as one and never written.

Escapes and the spelling of names are as satori-python-core has them. Its elements are not used: they are mutable,
compare unequal to themselves after printing, which takes them five times as long, and their reader takes minutes on a
few thousand `<`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from msgspec import Struct, field

MAX_DEPTH: Final = 32


class Element(Struct, frozen=True):
    """One element. An attribute without a value (`<message forward>`) is `True`.

    `attributes` are named in lower-case words joined by `-`, and are not changed after construction.
    """

    tag: str
    attributes: Mapping[str, str | Literal[True]] = field(default_factory=dict[str, str | Literal[True]])
    children: tuple["Node", ...] = ()

    def text(self, name: str) -> str:
        """The attribute's value, or `""` where it is absent or has none."""
        value = self.attributes.get(name, "")
        return "" if value is True else value


Node = str | Element


def escape_text(text: str) -> str:
    """`text` as it stands between tags: `&`, `<` and `>` escaped."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escape_attribute(value: str) -> str:
    """`value` as it stands between the quotes of an attribute: `&`, `<`, `>` and `"` escaped."""
    return escape_text(value).replace('"', "&quot;")


def render(nodes: Iterable[Node]) -> str:
    """The markup of `nodes`; `parse` reads it back to the same tree, neighbouring texts joined."""
    return "".join([escape_text(node) if isinstance(node, str) else _written(node) for node in nodes])


def joined(nodes: Iterable[Node]) -> list[Node]:
    """`nodes` in the form that `parse` gives: neighbouring texts as one string, no text empty."""
    whole: list[Node] = []
    text = ""
    for node in nodes:
        if isinstance(node, str):
            text += node
            continue
        if text:
            whole.append(text)
            text = ""
        whole.append(node)
    if text:
        whole.append(text)
    return whole


def _written(element: Element) -> str:
    opening = tag = element.tag
    for name, value in element.attributes.items():
        opening += f" {_spelled(name)}" if value is True else f' {_spelled(name)}="{escape_attribute(value)}"'
    return f"<{opening}>{render(element.children)}</{tag}>" if element.children else f"<{opening}/>"


_SPELLED: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


@lru_cache(maxsize=256)
def _spelled(name: str) -> str:
    """A name in lower-case words joined by `-`. Nearly all are so, and are asked for again and again."""
    if _SPELLED.fullmatch(name):
        return name
    from satori.parser import param_case  # noqa: PLC0415 - it imports all of Satori, for names that are rarely there

    return param_case(name)


# Every quantifier is possessive and no tag holds a raw `<`, so that each character is looked at a bounded number of
# times whatever the input. Names are bounded because the library's spelling of them is not linear.
_ATTRIBUTE: Final = r"""[A-Za-z][\w-]{0,63}+(?:\s*+=\s*+(?:"[^"<]*+"|'[^'<]*+'|[^\s"'<>=/]++))?+"""
_TAG: Final = re.compile(
    rf"<(?:/(?P<closes>[A-Za-z][\w.:-]{{0,63}}+)\s*+"
    rf"|(?P<opens>[A-Za-z][\w.:-]{{0,63}}+)(?P<attributes>(?:\s++{_ATTRIBUTE})*+)\s*+(?P<empty>/)?+)>",
    re.ASCII,
)
_NAME_AND_VALUE: Final = re.compile(
    r"""([A-Za-z][\w-]{0,63}+)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'<>=/]++)))?+""", re.ASCII
)
_REFERENCE: Final = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#(\d{1,7}+)|#[xX]([0-9a-fA-F]{1,6}+));", re.ASCII)
_NAMED: Final = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


def parse(markup: str) -> list[Node]:
    """The tree of `markup`, in time linear in its length. Any input is accepted.

    Unknown elements are kept. What closes nothing, is never closed, or lies deeper than `MAX_DEPTH` is text as
    written. A raw `<` is never part of a tag; neighbouring texts are one string and no text is empty.
    """
    reader = _Reader()
    position = 0
    for tag in _TAG.finditer(markup):
        reader.add_text(_unescaped(markup[position : tag.start()]))
        position = tag.end()
        reader.add_tag(tag)
    reader.add_text(_unescaped(markup[position:]))
    return reader.finish()


@dataclass(slots=True)
class _Open:
    tag: str
    attributes: Mapping[str, str | Literal[True]]
    source: str
    children: list[Node]


class _Reader:
    """What has been read so far: the elements that are open, outermost first, below a root that never closes."""

    def __init__(self) -> None:
        self._open = [_Open("", {}, "", [])]
        self._too_deep: list[str] = []

    def add_text(self, text: str) -> None:
        if text:
            self._open[-1].children.append(text)

    def add_tag(self, tag: re.Match[str]) -> None:
        if closes := tag["closes"]:
            self._close(closes, tag[0])
        elif tag["opens"] == "br":
            self.add_text("\n")
        elif tag["opens"] == "text" or len(self._open) > MAX_DEPTH:  # the library prints an element `text` as bare text
            if not tag["empty"]:
                self._too_deep.append(tag["opens"])
            self.add_text(_unescaped(tag[0]))
        elif tag["empty"]:
            self._open[-1].children.append(Element(tag["opens"], _attributes(tag["attributes"])))
        else:
            self._open.append(_Open(tag["opens"], _attributes(tag["attributes"]), tag[0], []))

    def finish(self) -> list[Node]:
        while len(self._open) > 1:
            self._leave_unclosed()
        return joined(self._open[0].children)

    def _close(self, name: str, source: str) -> None:
        if self._too_deep and self._too_deep[-1] == name:
            self._too_deep.pop()
            self.add_text(source)
        elif any(frame.tag == name for frame in self._open[1:]):
            while self._open[-1].tag != name:
                self._leave_unclosed()
            closed = self._open.pop()
            self._too_deep.clear()
            element = Element(closed.tag, closed.attributes, tuple(joined(closed.children)))
            self._open[-1].children.append(element)
        else:
            self.add_text(source)

    def _leave_unclosed(self) -> None:
        frame = self._open.pop()
        self.add_text(_unescaped(frame.source))
        self._open[-1].children.extend(frame.children)


def _attributes(source: str) -> dict[str, str | Literal[True]]:
    attributes: dict[str, str | Literal[True]] = {}
    for match in _NAME_AND_VALUE.finditer(source):
        value = next((group for group in match.groups()[1:] if group is not None), None)
        attributes[_spelled(match[1])] = True if value is None else _unescaped(value)
    return attributes


def _unescaped(text: str) -> str:
    return _REFERENCE.sub(_referenced, text) if "&" in text else text


def _referenced(match: re.Match[str]) -> str:
    if name := match[1]:
        return _NAMED[name]
    code = int(match[2]) if match[2] else int(match[3], 16)
    return chr(code) if 0 < code < 0xD800 or 0xDFFF < code <= 0x10FFFF else match[0]
