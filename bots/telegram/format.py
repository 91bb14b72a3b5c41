"""What an agent says, into messages as Telegram takes them (Bot API, "HTML style" under Formatting options)."""

import re
from collections.abc import Iterable, Iterator
from html import escape
from typing import Final, NamedTuple

from core.chat.port import Mode, Part
from core.chat.split import split, utf16_length
from core.content import Element, Node, parse, plain_text

TOPIC_GONE: Final = "(The topic is gone, so this stands here.)"
MOST_UNITS: Final = 4096 - len(TOPIC_GONE) - 1
MOST_CAPTION_UNITS: Final = 1024 - len(TOPIC_GONE) - 1
"""What Telegram takes in a message and below a file, after parsing, less the note that may have to go in front."""
_MOST_ADDRESS: Final = 2000

_STYLES: Final = {
    "b": "b", "strong": "b", "i": "i", "em": "i", "u": "u", "ins": "u", "s": "s", "del": "s", "spl": "tg-spoiler",
    "quote": "blockquote",
}  # fmt: skip
_MEDIA: Final = frozenset({"img", "image", "audio", "video", "file"})
_BLOCKS: Final = frozenset({"p", "message", "quote", "code-block"})
_LINKS: Final = ("http://", "https://", "tg://")

# Until the text is cut, markup stands in it as single private characters, so that no cut can fall into a tag. Each
# counts as two units, which only makes parts a little shorter than they may be.
_FILE: Final = "\N{OBJECT REPLACEMENT CHARACTER}"
_NOTHING: Final = "\U000ffffd"
_FIRST_OPENING: Final = 0xF0000
_FIRST_CLOSING: Final = 0x100000
_MOST_TAGS: Final = 0xFF00
_RESERVED: Final = re.compile(f"[{_FILE}\U000f0000-\U0010ffff\ud800-\udfff]")
_LIKE_A_FENCE: Final = re.compile(r"^(?=[ \t]*+(?:`{3}|~{3}))", re.MULTILINE)
_CODE_BLOCK: Final = re.compile(
    r"^(?P<fence>`{3,}+)(?P<language>[^`\n]*+)\n(?P<code>.*?)\n?^(?P=fence)$\n?", re.MULTILINE | re.DOTALL
)


class _Tag(NamedTuple):
    """One element of Telegram's HTML, as it is opened and closed."""

    opening: str
    closing: str


def compose(text: str, mode: Mode) -> list[Part]:
    """The parts of a text, none for a blank one.

    Each is at most `MOST_UNITS` UTF-16 units after parsing and without file, or at most `MOST_CAPTION_UNITS` and with
    one; so each is one message. ``plain`` is what is read of it.
    """
    text = _RESERVED.sub("", text)
    writer = _Writer()
    match mode:
        case "markdown":
            from core.chat.markdown import markdown_to_nodes  # noqa: PLC0415 - a start needs no Markdown

            written = writer.write(markdown_to_nodes(text))
        case "element":
            written = writer.write(parse(text))
        case "raw":
            written = _inert(text)
    return list(_parts(written, writer.tags, iter(writer.files)))


def _parts(written: str, tags: list[_Tag], files: Iterator[str]) -> Iterator[Part]:
    renderer = _Renderer(tags)
    for piece in split(written, MOST_UNITS):
        attached = [next(files) for _ in range(piece.count(_FILE))]
        text, plain = renderer.render(piece.replace(_FILE, "").strip("\n"))
        if plain.strip() and attached and utf16_length(plain) <= MOST_CAPTION_UNITS:
            yield Part(text, plain, (attached.pop(0),))
        elif plain.strip():
            yield Part(text, plain)
        for file in attached:
            yield Part("", "", (file,))


class _Writer:
    """Writes nodes as text with private characters for tags, and fences for blocks of code."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.tags: list[_Tag] = []
        self._inside: set[str] = set()

    def write(self, nodes: Iterable[Node]) -> str:
        written: list[str] = []
        at_block_edge = False
        for node in nodes:
            is_block = isinstance(node, Element) and node.tag in _BLOCKS
            text = _inert(node) if isinstance(node, str) else self._element(node)
            if not text:
                continue
            if written and (is_block or at_block_edge) and not (written[-1].endswith("\n") or text.startswith("\n")):
                written.append("\n")
            written.append(text)
            at_block_edge = is_block
        return "".join(written)

    def _element(self, element: Element) -> str:
        match element.tag:
            case tag if tag in _STYLES:
                name = _STYLES[tag]
                written = self._tagged(name, f"<{name}>", self._within(name, element.children))
            case "code":
                written = self._tagged("code", "<code>", _inert(plain_text(element.children)))
            case "code-block":
                written = _fenced(plain_text(element.children), element.text("lang"))
            case "a":
                written = self._link(element)
            case "at" if (user := element.text("id")).isascii() and user.isdecimal():
                name = self.write(element.children) or _inert(element.text("name") or user)
                written = self._tagged("a", f'<a href="tg://user?id={user}">', name)
            case tag if tag in _MEDIA:
                written = self._media(element)
            case _:
                written = self.write(element.children) if element.children else _inert(plain_text([element]))
        return written

    def _within(self, name: str, children: Iterable[Node]) -> str:
        outer = self._inside
        self._inside = outer | {name}
        written = self.write(children)
        self._inside = outer
        return written

    def _tagged(self, name: str, opening: str, inner: str) -> str:
        """An element inside one of its own kind is none, and so is one around nothing; none holds a block of code."""
        number = len(self.tags)
        if name in self._inside or number == _MOST_TAGS:
            return inner
        self.tags.append(_Tag(opening, f"</{name}>"))
        written: list[str] = []
        position = 0
        for block in (*_CODE_BLOCK.finditer(inner), None):
            prose = inner[position : block.start() if block else None]
            words = prose.strip()
            if words.strip(_FILE):
                start = prose.index(words)
                tagged = f"{chr(_FIRST_OPENING + number)}{words}{chr(_FIRST_CLOSING + number)}"
                prose = f"{prose[:start]}{tagged}{prose[start + len(words) :]}"
            written.append(prose)
            if block is not None:
                written.append(block[0])
                position = block.end()
        return "".join(written)

    def _link(self, element: Element) -> str:
        address = element.text("href")
        shown = self._within("a", element.children)
        if address.lower().startswith(_LINKS) and len(address) <= _MOST_ADDRESS:
            return self._tagged("a", f'<a href="{escape(address)}">', shown or _inert(address))
        return _spelled_out(shown, address)

    def _media(self, element: Element) -> str:
        source, title = element.text("src") or element.text("url"), element.text("title") or element.text("alt")
        if source.partition(":")[0].lower() in {"asset", "artifact"}:
            self.files.append(source)
            return _FILE
        return _spelled_out(_inert(title), source)


class _Renderer:
    """Writes pieces as HTML; what is open at the end of one is closed there, and opened again in the next."""

    def __init__(self, tags: list[_Tag]) -> None:
        self._tags = tags
        self._open: list[int] = []

    def render(self, piece: str) -> tuple[str, str]:
        """HTML, and the text that is read of it."""
        html = [self._tags[number].opening for number in self._open]
        plain: list[str] = []
        position = 0
        for block in _CODE_BLOCK.finditer(piece):
            self._prose(piece[position : block.start()], html, plain)
            language = f' class="language-{block["language"]}"' if block["language"] else ""
            code = f"<pre><code{language}>{escape(block['code'], quote=False)}</code></pre>"
            line_end = "\n" if block[0].endswith("\n") else ""
            html += [code, line_end]
            plain += [block["code"], line_end]
            position = block.end()
        self._prose(piece[position:], html, plain)
        html += [self._tags[number].closing for number in reversed(self._open)]
        return "".join(html), "".join(plain)

    def _prose(self, text: str, html: list[str], plain: list[str]) -> None:
        for character in text:
            code = ord(character)
            if code >= _FIRST_CLOSING:
                html.append(self._tags[code - _FIRST_CLOSING].closing)
                self._open.pop()
            elif character == _NOTHING:
                pass
            elif code >= _FIRST_OPENING:
                html.append(self._tags[code - _FIRST_OPENING].opening)
                self._open.append(code - _FIRST_OPENING)
            else:
                html.append(escape(character, quote=False))
                plain.append(character)


def _inert(text: str) -> str:
    """``text`` in which nothing passes for a fence of ours."""
    return _LIKE_A_FENCE.sub(_NOTHING, _RESERVED.sub("", text))


def _fenced(code: str, language: str) -> str:
    longest = max((len(run) for run in re.findall("`{3,}", code)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{re.sub(r'[^a-zA-Z0-9_+.#-]', '', language)[:32]}\n{_RESERVED.sub('', code)}\n{fence}"


def _spelled_out(shown: str, address: str) -> str:
    if len(address) > _MOST_ADDRESS:
        address = f"{address[:_MOST_ADDRESS]}…"
    address = _inert(address)
    if not address or address == shown:
        return shown
    return f"{shown} ({address})" if shown else address
