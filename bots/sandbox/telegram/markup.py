"""`parse_mode=HTML` as the Bot API reads it: the page "Formatting options", and the server's own error texts."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bots.sandbox.telegram.entities import Entity, in_order, utf16_length
from bots.sandbox.telegram.errors import ApiError, bad_request

_TYPES = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "tg-spoiler": "spoiler",
    "span": "spoiler",
    "tg-emoji": "custom_emoji",
    "a": "text_link",
    "pre": "pre",
    "code": "code",
    "blockquote": "blockquote",
}
_ARGUMENTS = {"a": "href", "code": "class", "span": "class", "tg-emoji": "emoji-id", "blockquote": "expandable"}
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
_ENTITY = re.compile(r"&(?:#x([0-9a-f]{1,8})|#([0-9]{1,8})|(lt|gt|amp|quot));?", re.IGNORECASE)
_PLAIN = re.compile(r"[^<&]+")
_TAG_NAME = re.compile(r"[^\s>]*")
_ATTRIBUTE_NAME = re.compile(r"[^\s=>]*")
_SPACE = re.compile(r"\s*")
_TOKEN = re.compile(r"[A-Za-z0-9.-]*")
_USER_LINK = re.compile(r"tg://user\?(?:.*&)?id=([0-9]{1,19})(?:&|$)")


@dataclass(frozen=True)
class _Open:
    tag: str
    argument: str
    offset: int
    position: int


def parse_html(source: str) -> tuple[str, list[Entity]]:
    """The plain text and its entities; a `text_mention` bears `{"id": …}` alone as its user.

    Raises `ApiError` 400 `can't parse entities: …` where the real server does.
    """
    return _Parser(source).run()


class _Parser:
    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._parts: list[str] = []
        self._offset = 0
        self._open: list[_Open] = []
        self._entities: list[Entity] = []

    def run(self) -> tuple[str, list[Entity]]:
        source = self._source
        while self._at < len(source):
            if plain := _PLAIN.match(source, self._at):
                self._at = plain.end()
                self._write(plain.group())
            elif source[self._at] == "&":
                self._write(self._character())
            elif source.startswith("</", self._at):
                self._end_tag()
            else:
                self._start_tag()
        if self._open:
            raise _refusal(f'Can\'t find end tag corresponding to start tag "{self._open[-1].tag}"')
        return "".join(self._parts), in_order(self._entities)

    def _write(self, text: str) -> None:
        self._parts.append(text)
        self._offset += utf16_length(text)

    def _character(self) -> str:
        match = _ENTITY.match(self._source, self._at)
        if match is None:
            self._at += 1
            return "&"
        self._at = match.end()
        hexadecimal, decimal, name = match.groups()
        if name is not None:
            return _NAMED[name.lower()]
        code = int(hexadecimal, 16) if hexadecimal is not None else int(decimal)
        if code == 0 or code > 0x10FFFF or 0xD800 <= code < 0xE000:
            return match.group()
        return chr(code)

    def _start_tag(self) -> None:
        begin = self._at
        self._at += 1
        tag = self._take(_TAG_NAME)
        if self._at == len(self._source):
            raise _refusal(f"Unclosed start tag at byte offset {self._byte(begin)}")
        tag = tag.lower()
        if tag not in _TYPES:
            raise _refusal(f'Unsupported start tag "{tag}" at byte offset {self._byte(begin)}')
        argument = ""
        while not self._closes(begin, tag):
            name, value = self._attribute(begin, tag)
            if name == _ARGUMENTS.get(tag):
                argument = _argument(tag, value)
        if tag == "span" and argument != "spoiler":
            raise _refusal(f'Tag "span" must have class "tg-spoiler" at byte offset {self._byte(begin)}')
        self._open.append(_Open(tag, argument, self._offset, len(self._parts)))

    def _closes(self, begin: int, tag: str) -> bool:
        self._take(_SPACE)
        if self._at == len(self._source):
            raise _refusal(f'Unclosed start tag "{tag}" at byte offset {self._byte(begin)}')
        if self._source[self._at] != ">":
            return False
        self._at += 1
        return True

    def _attribute(self, begin: int, tag: str) -> tuple[str, str]:
        name = self._take(_ATTRIBUTE_NAME)
        if not name:
            raise _refusal(f'Empty attribute name in the tag "{tag}" at byte offset {self._byte(begin)}')
        self._take(_SPACE)
        if not self._source.startswith("=", self._at):
            return name.lower(), ""
        self._at += 1
        self._take(_SPACE)
        quote = self._source[self._at : self._at + 1]
        if quote not in {"'", '"'}:
            start = self._at
            value = self._take(_TOKEN).lower()
            if self._at < len(self._source) and self._source[self._at] not in " \t\r\n>":
                raise _refusal(f"Unexpected end of name token at byte offset {self._byte(start)}")
            return name.lower(), value
        end = self._source.find(quote, self._at + 1)
        if end < 0:
            raise _refusal(f"Unclosed start tag at byte offset {self._byte(begin)}")
        self._at += 1
        parts: list[str] = []
        while self._at < end:
            parts.append(self._character() if self._source[self._at] == "&" else self._take(re.compile(".", re.DOTALL)))
        self._at = end + 1
        return name.lower(), "".join(parts)

    def _end_tag(self) -> None:
        begin = self._at
        if not self._open:
            raise _refusal(f"Unexpected end tag at byte offset {self._byte(begin)}")
        self._at += 2
        name = self._take(_TAG_NAME)
        self._take(_SPACE)
        if not self._source.startswith(">", self._at):
            raise _refusal(f"Unclosed end tag at byte offset {self._byte(begin)}")
        self._at += 1
        opened = self._open.pop()
        if name and name.lower() != opened.tag:
            raise _refusal(
                f"Unmatched end tag at byte offset {self._byte(begin)}, "
                f'expected "</{opened.tag}>", found "</{name.lower()}>"'
            )
        if self._offset > opened.offset:
            self._close(opened)

    def _close(self, opened: _Open) -> None:
        entity: Entity = {
            "type": _TYPES[opened.tag],
            "offset": opened.offset,
            "length": self._offset - opened.offset,
        }
        argument = opened.argument
        match opened.tag:
            case "a":
                url = argument or "".join(self._parts[opened.position :])
                if user := _USER_LINK.match(url):
                    entity |= {"type": "text_mention", "user": {"id": int(user.group(1))}}
                elif checked := _checked_link(url):
                    entity["url"] = checked
                else:
                    return
            case "tg-emoji":
                if not argument.isdigit():
                    raise _refusal("Invalid custom emoji identifier specified")
                entity["custom_emoji_id"] = argument
            case "blockquote" if argument:
                entity["type"] = "expandable_blockquote"
            case "code" if argument:
                entity["language"] = argument
            case "pre":
                self._merge_language(entity)
            case _:
                pass
        self._entities.append(entity)

    def _merge_language(self, pre: Entity) -> None:
        inner = self._entities[-1] if self._entities else None
        same_place = inner is not None and (inner["offset"], inner["length"]) == (pre["offset"], pre["length"])
        if inner is not None and same_place and inner["type"] == "code" and "language" in inner:
            pre["language"] = inner["language"]
            self._entities.pop()

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._source, self._at)
        if match is None:
            return ""
        self._at = match.end()
        return match.group()

    def _byte(self, index: int) -> int:
        return len(self._source[:index].encode())


def _argument(tag: str, value: str) -> str:
    prefixes = {"code": "language-", "span": "tg-"}
    if tag == "blockquote":
        return "expandable"
    if (prefix := prefixes.get(tag)) is not None:
        return value.removeprefix(prefix) if value.startswith(prefix) else ""
    return value


def _checked_link(url: str) -> str:
    if url.startswith(("http://", "https://", "tg://", "ton://")):
        host = url.partition("://")[2]
        return url if "/" in host or "?" in host else f"{url}/"
    if "://" in url or "." not in url or any(character.isspace() for character in url):
        return ""
    return f"http://{url}" if "/" in url else f"http://{url}/"


def _refusal(detail: str) -> ApiError:
    return bad_request(f"can't parse entities: {detail}")
