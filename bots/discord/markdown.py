"""What people write on Discord, its Markdown and its tokens, into element nodes (API reference, Message Formatting).

One scan from left to right: what opens a style and is never closed stays text as written, and the time taken is linear
in the text. Headings and lists stay text, which reads well enough.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Final, NamedTuple

from core.content import Element, Node, joined

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FENCE: Final = 3
"""Backticks from which on code is a block."""

# Each alternative begins with one certain character, so that `search` passes over all others without a try. What bears
# no name is a style.
_TOKEN: Final = re.compile(
    r"\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|`(?P<ticks>`*+)"
    r"|<@!?(?P<user>\d{1,20})>"
    r"|<@&(?P<role>\d{1,20})>"
    r"|<#(?P<channel>\d{1,20})>"
    r"|<a?:(?P<emoji>\w{1,64}):(?P<emoji_id>\d{1,20})>"
    r"|<t:(?P<time>-?\d{1,17})(?::[A-Za-z])?>"
    r"|<(?P<command>/[^:<>\n]{1,100}):\d{1,20}>"
    r"|@(?P<everyone>everyone|here)\b"
    r"|<(?P<bracketed>https?://[^\s<>]++)>"
    r"|h(?P<address>ttps?://[^\s<>*|~`\\]++)"
    r"|\[(?P<shown>[^\[\]\n]++)\]\(<?(?P<target>https?://[^\s<>()]++)>?\)"
    r"|\*\**+|__*+|~~|\|\|"
)
_TICKS: Final = re.compile("`+")
_LANGUAGE: Final = re.compile(r"([A-Za-z0-9_+.#-]{1,32}+)\n")
_TAGS: Final = {"**": "b", "*": "i", "_": "i", "__": "u", "~~": "s", "||": "spl"}


_UNKNOWN: Final[Mapping[str, str]] = MappingProxyType({})


class Names(NamedTuple):
    """What the ids in a text stand for, as far as it is known. ``everyone``: the text really calls everybody."""

    users: Mapping[str, str] = _UNKNOWN
    roles: Mapping[str, str] = _UNKNOWN
    channels: Mapping[str, str] = _UNKNOWN
    everyone: bool = False


def read_markdown(text: str, names: Names) -> list[Node]:
    """The nodes of a text. Code is literal, lines behind ``> `` and all behind ``>>> `` are ``<quote>``."""
    if not _may_quote(text):
        return _inline(text, names)
    nodes: list[Node] = []
    for quoted, piece in _blocks(text):
        inline = _inline(piece, names)
        nodes.extend([Element("quote", {}, tuple(inline))] if quoted else inline)
    return joined(nodes)


def _blocks(text: str) -> Iterator[tuple[bool, str]]:
    """Runs of quoted and of other lines. A line that begins inside a code block begins nothing."""
    code = _code_blocks(text)
    lines: list[str] = []
    quoted = False
    start = 0
    while start < len(text):
        is_quote = text.startswith("> ", start)
        end = _line_end(text, start, [] if is_quote else code)
        line = text[start:end]
        if line.startswith(">>> ") and not quoted:
            yield False, "".join(lines)
            yield True, text[start + 4 :]
            return
        if is_quote != quoted:
            yield quoted, _unended("".join(lines)) if quoted else "".join(lines)
            lines, quoted = [], is_quote
        lines.append(line[2:] if is_quote else line)
        start = end
    yield quoted, _unended("".join(lines)) if quoted else "".join(lines)


def _may_quote(text: str) -> bool:
    return text.startswith(">") or "\n>" in text


def _unended(block: str) -> str:
    return block.removesuffix("\n")


def _line_end(text: str, start: int, code: list[tuple[int, int]]) -> int:
    """After the line feed that ends the line, code blocks in it passed over whole."""
    while True:
        end = text.find("\n", start) + 1 or len(text)
        index = bisect_left(code, (end, 0)) - 1
        if index < 0 or code[index][1] <= end:
            return end
        start = code[index][1]


def _code_blocks(text: str) -> list[tuple[int, int]]:
    fences = [run for run in _TICKS.finditer(text) if len(run[0]) >= _FENCE]
    return [(opening.start(), closing.end()) for opening, closing in zip(fences[::2], fences[1::2], strict=False)]


def _inline(text: str, names: Names, *, links: bool = True) -> list[Node]:
    """The nodes of a piece of text without quotes; most are no more than they seem."""
    token = _TOKEN.search(text)
    if token is None:
        return [text] if text else []
    return _Inline(text, names, links=links).read(token)


class _Inline:
    """One piece of text without quotes.

    ``_open`` holds the styles that are open, outermost first, and what is in them; in the first, ``""``, is all else. A
    style is open at most once, so there are never more of them than there are styles.
    """

    def __init__(self, text: str, names: Names, *, links: bool) -> None:
        self._text = text
        self._names = names
        self._links = links
        self._nodes: list[Node] = []
        self._open = {"": self._nodes}
        self._runs: dict[int, list[int]] | None = None

    def read(self, token: re.Match[str] | None) -> list[Node]:
        """``token`` is the first one."""
        position = 0
        while token is not None:
            self._add(self._text[position : token.start()])
            position = self._take(token)
            token = _TOKEN.search(self._text, position)
        self._add(self._text[position:])
        while len(self._open) > 1:
            self._leave_unclosed()
        return joined(self._nodes)

    def _add(self, node: Node) -> None:
        if node:
            self._nodes.append(node)

    def _take(self, token: re.Match[str]) -> int:
        """Add what a token stands for; returns where to read on."""
        kind, (start, end) = token.lastgroup, token.span()
        match kind:
            case None:
                run = token[0]
                for marker in (run,) if run in _TAGS else self._markers(run):
                    self._take_style(marker, start, end)
            case "ticks":
                return self._take_code(start, end)
            case "target" if self._links:
                self._add(
                    Element("a", {"href": token["target"]}, tuple(_inline(token["shown"], self._names, links=False)))
                )
            case _:
                self._add(self._entity(kind, token))
        return end

    def _entity(self, kind: str, token: re.Match[str]) -> Node:  # noqa: PLR0911 - a line for each token
        value = token[kind]
        match kind:
            case "user":
                return _named("at", "id", value, self._names.users)
            case "role":
                return _named("at", "role", value, self._names.roles)
            case "channel":
                return _named("sharp", "id", value, self._names.channels)
            case "emoji_id":
                return Element("emoji", {"id": value, "name": token["emoji"]})
            case "everyone" if self._names.everyone:
                return Element("at", {"type": "all"})
            case "time":
                return _moment(value) or token[0]
            case "escaped" | "command" | "bracketed":
                return value
            case _:
                return token[0]

    def _take_code(self, opening: int, start: int) -> int:
        """Code begins at ``start``, behind the backticks at ``opening``."""
        size = start - opening
        runs = self._ticks().get(size, [])
        index = bisect_left(runs, start)
        if index == len(runs):
            self._add(self._text[opening:start])
            return start
        code, end = self._text[start : runs[index]], runs[index] + size
        if size < _FENCE:
            self._add(Element("code", {}, (code.strip(" ") or code,)))
        elif code.strip():
            language = _LANGUAGE.match(code)
            body = code[language.end() :] if language else code
            shown = body.strip("\n") or body
            self._add(Element("code-block", {"lang": language[1]} if language else {}, (shown,)))
        else:
            self._add(self._text[opening:end])
        return end

    def _ticks(self) -> dict[int, list[int]]:
        """Where runs of backticks begin, by their length."""
        if self._runs is None:
            self._runs = {}
            for run in _TICKS.finditer(self._text):
                self._runs.setdefault(len(run[0]), []).append(run.start())
        return self._runs

    def _markers(self, run: str) -> list[str]:
        """A run of ``*`` or ``_`` as styles: three are two of them, the one that is open inside ends first."""
        single = run[0]
        if len(run) != 3:
            return [run]  # no style has it: text
        inside = next((marker for marker in reversed(self._open) if marker.startswith(single)), "")
        return [single, single * 2] if inside == single else [single * 2, single]

    def _take_style(self, marker: str, start: int, end: int) -> None:
        before = self._text[start - 1 : start]
        after = self._text[end : end + 1]
        loose = marker == "||"
        if marker in self._open:
            closes = loose or (before != "" and not before.isspace() and not (marker == "_" and _is_word(after)))
            if closes:
                self._close(marker)
                return
        elif marker in _TAGS and after and (loose or not (after.isspace() or (marker == "_" and _is_word(before)))):
            self._nodes = self._open[marker] = []
            return
        self._nodes.append(marker)

    def _close(self, marker: str) -> None:
        while next(reversed(self._open)) != marker:
            self._leave_unclosed()
        children = self._leave()
        self._add(Element(_TAGS[marker], {}, tuple(joined(children))) if children else marker * 2)

    def _leave_unclosed(self) -> None:
        marker = next(reversed(self._open))
        children = self._leave()
        self._nodes += [marker, *children]

    def _leave(self) -> list[Node]:
        """What is in the innermost style; what comes next stands behind it."""
        _, children = self._open.popitem()
        self._nodes = self._open[next(reversed(self._open))]
        return children


def _named(tag: str, attribute: str, value: str, names: Mapping[str, str]) -> Element:
    name = names.get(value)
    return Element(tag, {attribute: value, "name": name} if name else {attribute: value})


def _moment(seconds: str) -> str:
    """A moment that every reader sees in their own zone, here in UTC; empty for one that no calendar has."""
    try:
        return f"{_EPOCH + timedelta(seconds=int(seconds)):%Y-%m-%d %H:%M} UTC"
    except OverflowError:
        return ""


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
