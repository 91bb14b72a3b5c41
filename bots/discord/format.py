"""What an agent says, into messages as Discord takes them (API reference, Create Message and Message Formatting)."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from core.chat.port import Mode, Part
from core.chat.split import split
from core.content import Element, Node, parse, plain_text

MOST_CHARACTERS: Final = 2000
MOST_FILES: Final = 10
_MOST_ADDRESS: Final = 500

_FILE: Final = "\N{OBJECT REPLACEMENT CHARACTER}"
"""Stands in the text where a file was, until the text is cut."""

_STYLES: Final = {
    "b": "**", "strong": "**", "i": "*", "em": "*", "u": "__", "ins": "__", "s": "~~", "del": "~~", "spl": "||",
}  # fmt: skip
_MEDIA: Final = frozenset({"img", "image", "audio", "video", "file"})
_BLOCKS: Final = frozenset({"p", "message"})

# An address stays as it is, or it would lead nowhere; of the rest, what Discord would take for its own syntax is
# escaped, at the beginning of a line also what would be a heading, a list or a quote there.
_SYNTAX: Final = re.compile(
    r"(?P<address>https?://[^\s<>*|~`\\]++)"
    r"|(?P<everywhere>[\\*_`\[\]]|\|(?=\|)|~(?=~)|<(?=[@#:/a-z]))"
    r"|(?<![^\n])(?:(?P<leading>>|-#|#)|(?P<bullet>[-+](?= ))|(?P<number>\d{1,9}(?=\. )))",
)
_TOKEN: Final = re.compile(r"<(?:@!?\d{1,20}|#\d{1,20}|a?:\w{2,32}:\d{1,20}|t:-?\d{1,13}(?::[tTdDfFRsS])?)>")


def compose(text: str, mode: Mode) -> list[Part]:
    """The parts of a text: at most 2000 UTF-16 units and 10 files each; none for a blank one.

    ``markdown`` may hold Discord's own tokens (``<@id>``); ``element`` markup has elements for them; in ``raw``
    everything shows as written. Discord never refuses markup, so ``plain`` is the text again.
    """
    match mode:
        case "markdown":
            from core.chat.markdown import markdown_to_nodes  # noqa: PLC0415 - a start needs no Markdown

            writer = _Writer(markdown=True)
            written = writer.write(markdown_to_nodes(text.replace(_FILE, "")))
        case "element":
            writer = _Writer(markdown=False)
            written = writer.write(parse(text.replace(_FILE, "")))
        case "raw":
            writer = _Writer(markdown=False)
            written = _escaped(text.replace(_FILE, ""))
    return list(_parts(written, iter(writer.files)))


def _parts(written: str, files: Iterator[str]) -> Iterator[Part]:
    for piece in split(written, MOST_CHARACTERS):
        text = piece.replace(_FILE, "").strip("\n")
        attached = [next(files) for _ in range(piece.count(_FILE))]
        if text.strip() or attached:
            text = text if text.strip() else ""
            yield Part(text, text, tuple(attached[:MOST_FILES]))
        for start in range(MOST_FILES, len(attached), MOST_FILES):
            yield Part("", "", tuple(attached[start : start + MOST_FILES]))


class _Writer:
    """Writes nodes in Discord's Markdown; collects the files on the way."""

    def __init__(self, *, markdown: bool) -> None:
        self.files: list[str] = []
        self._keeps_tokens = self._lists = markdown
        self._styles: set[str] = set()

    def write(self, nodes: Iterable[Node]) -> str:
        written: list[str] = []
        at_block_edge = False
        for node in nodes:
            is_block = isinstance(node, Element) and (node.tag in _BLOCKS or node.tag in {"quote", "code-block"})
            text = self._text(node) if isinstance(node, str) else self._element(node)
            if not text:
                continue
            if written and (is_block or at_block_edge) and not (written[-1].endswith("\n") or text.startswith("\n")):
                written.append("\n")
            written.append(text)
            at_block_edge = is_block
        return "".join(written)

    def _text(self, text: str) -> str:
        if not self._keeps_tokens:
            return _escaped(text)
        written: list[str] = []
        position = 0
        for token in _TOKEN.finditer(text):
            written += [_escaped(text[position : token.start()], lists=self._lists), token[0]]
            position = token.end()
        return "".join([*written, _escaped(text[position:], lists=self._lists)])

    def _element(self, element: Element) -> str:
        match element.tag:
            case tag if tag in _STYLES:
                written = self._styled(_STYLES[tag], element)
            case "code":
                written = _code(plain_text(element.children))
            case "code-block":
                written = _code_block(plain_text(element.children), element.text("lang"))
            case "quote":
                lines = self.write(element.children).strip("\n").split("\n")
                written = "\n".join(f"> {line}" for line in lines)
            case "a":
                written = _link(element.text("href"), self.write(element.children), self._lists)
            case tag if tag in _MEDIA:
                written = self._media(element)
            case _:
                written = self.write(element.children) if element.children else _token(element)
        return written

    def _styled(self, marker: str, element: Element) -> str:
        """A style inside itself is one; one around nothing but space is none."""
        if marker in self._styles:
            return self.write(element.children)
        self._styles.add(marker)
        inner = self.write(element.children)
        self._styles.remove(marker)
        words = inner.strip()
        if not words.replace(_FILE, ""):
            return inner
        start = inner.index(words)
        return f"{inner[:start]}{marker}{words}{marker}{inner[start + len(words) :]}"

    def _media(self, element: Element) -> str:
        source, title = element.text("src") or element.text("url"), element.text("title") or element.text("alt")
        if source.partition(":")[0].lower() in {"asset", "artifact"}:
            self.files.append(source)
            return _FILE
        return " ".join(piece for piece in (_escaped(title), _address(source)) if piece)


def _escaped(text: str, *, lists: bool = False) -> str:
    """``text`` so that it shows as it is; with ``lists``, bullets and numbers before a line stay those of a list."""

    def inert(found: re.Match[str]) -> str:
        match found.lastgroup:
            case "everywhere" | "leading":
                return f"\\{found[0]}"
            case "bullet" if not lists:
                return f"\\{found[0]}"
            case "number" if not lists:
                return f"{found[0]}\\"
            case _:
                return found[0]

    return _SYNTAX.sub(inert, text)


def _code_block(text: str, language: str) -> str:
    inner = re.sub("`(?=``)", "`\N{ZERO WIDTH SPACE}", text)  # of six, too, no three stay together
    return f"```{re.sub(r'[^a-zA-Z0-9_+.#-]', '', language)[:32]}\n{inner}\n```"


def _code(text: str) -> str:
    """Code in as many backticks as it takes; a blank keeps its own apart from them."""
    marks = max((len(run) for run in re.findall("`+", text)), default=0)
    if not text.strip():
        return text
    fence = "`" * (marks + 1 if marks else 1)
    if marks >= 2:
        return f"`{text.replace('`', 'ˋ')}`"  # three backticks and more would be a block
    return f"{fence} {text} {fence}" if marks else f"{fence}{text}{fence}"


def _link(address: str, shown: str, lists: bool) -> str:
    if not address.startswith(("http://", "https://")):
        return " ".join(piece for piece in (shown, _address(address)) if piece)
    target = _encoded(address)
    if not shown.strip() or shown == _escaped(address, lists=lists):
        return target
    return f"[{shown}]({target})" if _FILE not in shown and "\n" not in shown else f"{shown} {target}"


def _encoded(address: str) -> str:
    return re.sub(r"[\s()<>]", lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), address)


def _address(address: str) -> str:
    """An address as text that nobody follows by itself: in angle brackets Discord makes no preview of it."""
    if len(address) > _MOST_ADDRESS:
        address = f"{address[:_MOST_ADDRESS]}…"
    return f"<{_encoded(address)}>" if address.startswith(("http://", "https://")) else _escaped(address)


def _token(element: Element) -> str:
    number, name = element.text("id"), element.text("name")
    is_number = number.isascii() and number.isdecimal()
    match element.tag:
        case "at" if is_number:
            return f"<@{number}>"
        case "at" if (role := element.text("role")).isascii() and role.isdecimal():
            return f"<@&{role}>"
        case "at" if element.text("type") in {"all", "here"}:
            return "@everyone" if element.text("type") == "all" else "@here"
        case "sharp" if is_number:
            return f"<#{number}>"
        case "emoji" if is_number and re.fullmatch(r"\w{2,32}", name, re.ASCII):
            return f"<:{name}:{number}>"
        case _:
            return _escaped(plain_text([element]))
