"""Long text into parts that a platform takes; code fences are closed and opened again."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

MIN_LIMIT: Final = 64

# Possessive throughout, so that a hostile text costs no more than a plain one.
_FENCE_LINE: Final = re.compile(r"^[ \t]*+(?P<marker>`{3,}+(?=[^`\n]*+$)|~{3,}+)(?P<info>[^\n]*+)$", re.MULTILINE)
_FENCE_AHEAD: Final = re.compile(r"[ \t]*+(?:`{3}|~{3})")
_WHOLE: Final = re.compile(r"`[^`\n]++`|!?\[[^\[\]\n]*+\]\([^()\s]*+\)|https?://[^\s<>]++|<[^<>\s]++>")
_BETWEEN_PARTS: Final = re.compile(r"(?:[ \t\r]*+\n)++|[ \t]++")
_SENTENCE: Final = re.compile(r"[.!?…][\"')\]*_]*+(?=[ \t])|[。！？]")
_WORD: Final = re.compile(r"[^ \t\n](?=[ \t])")
_STEPS_BACK: Final = 64


def utf16_length(text: str) -> int:
    """Length in UTF-16 code units: Telegram's measure, and for Discord the stricter reading of "characters"."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def split(text: str, limit: int, *, measure: Callable[[str], int] = utf16_length) -> list[str]:
    """The parts of a Markdown or plain text, none empty and none longer than `limit` by `measure`.

    `measure` adds up over concatenation and is at least 1 for each code point. A cut falls on a blank line, else a
    line, else a sentence or a blank, else anywhere, but not within a code span, a link or one visible character
    where that can be helped. Whitespace at a cut is dropped. A code fence (``` or ~~~, at any indentation) that is cut
    is closed and opened again with its info string; one that is never closed is closed at the end. A fence line
    longer than a quarter of `limit` is ordinary text. Takes time linear in the text.

    Raises `ValueError` if `limit` is below `MIN_LIMIT`.
    """
    if limit < MIN_LIMIT:
        raise ValueError(f"a part must be allowed at least {MIN_LIMIT} characters, not {limit}")
    splitter = _Splitter(text, limit, measure)
    return list(splitter.parts())


@dataclass(frozen=True, slots=True)
class _Fence:
    start: int
    body: int
    body_end: int
    end: int
    opener: str
    marker: str


class _Splitter:
    def __init__(self, text: str, limit: int, measure: Callable[[str], int]) -> None:
        self._limit = limit
        self._measure = measure
        self._text, self._fences = _fences(text, lambda line: measure(line) * 4 <= limit)
        self._ends = [fence.end for fence in self._fences]

    def parts(self) -> Iterator[str]:
        position = 0
        reopened: _Fence | None = None
        if self._measure(self._text) <= self._limit:
            position = len(self._text)
            if self._text.strip():
                yield self._text
        while position < len(self._text):
            head = f"{reopened.opener}\n" if reopened else ""
            budget = self._limit - self._measure(head)
            cut, cut_fence = self._next_cut(position, budget)
            body = self._between(position, cut, reopened)
            if cut_fence is None:
                body = body.rstrip()
                position = self._after(cut)
            else:
                body = f"{body.removesuffix(chr(10))}\n{cut_fence.marker}"
                position = cut
                if not self._text[cut : cut_fence.body_end].strip():
                    position, cut_fence = self._after(cut_fence.end), None
            reopened = cut_fence
            if body:
                yield head + body

    def _next_cut(self, position: int, budget: int) -> tuple[int, _Fence | None]:
        """Where the part that starts at `position` ends, and the fence that has to be closed there."""
        end = self._reach(position, budget)
        if end == len(self._text):
            return end, None
        index = bisect_right(self._ends, end)
        floor = max(position, self._ends[index - 1]) if index else position
        fence = self._fences[index] if index < len(self._fences) else None
        if fence is None or fence.start >= end:
            return self._cut_in_prose(position, floor, end), None
        if fence.start > position + (end - position) // 2:
            return fence.start, None
        first = max(fence.body, position)
        last = min(self._reach(position, budget - self._measure(f"\n{fence.marker}")), fence.body_end)
        if last <= first and fence.start > position:
            return fence.start, None
        return self._cut_in_code(first, last), fence

    def _reach(self, position: int, budget: int) -> int:
        """The last place up to which the text from `position` measures no more than `budget`."""
        end = min(len(self._text), position + budget)
        if self._measure(self._text[position:end]) <= budget:
            return end
        places = range(position + 1, end)
        fitting = bisect_right(places, budget, key=lambda place: self._measure(self._text[position:place]))
        return position + max(fitting, 1)

    def _cut_in_prose(self, position: int, floor: int, end: int) -> int:
        least = max(floor, position + (end - position + 1) // 2)
        for mark in ("\n\n", "\n"):
            if (cut := self._text.rfind(mark, least, end + len(mark))) >= 0:
                return cut
        line = self._text.rfind("\n", position, end) + 1 or position
        whole = [match.span() for match in _WHOLE.finditer(self._text, line, end + self._limit)]
        for pattern in (_SENTENCE, _WORD):
            cuts = (match.end() for match in pattern.finditer(self._text, least - 1, end + 1))
            good = [cut for cut in cuts if least <= cut <= end and not _FENCE_AHEAD.match(self._text, cut)]
            while good:
                if not _spanning(whole, cut := good.pop()):
                    return cut
        spanned = _spanning(whole, end)
        return spanned if spanned >= least else self._step_back(end, floor)

    def _cut_in_code(self, first: int, last: int) -> int:
        for mark in ("\n\n", "\n"):
            if (cut := self._text.rfind(mark, first + (last - first) // 2, last)) >= 0:
                return cut + len(mark)
        return self._step_back(last, first)

    def _step_back(self, cut: int, floor: int) -> int:
        for place in range(cut, max(floor, cut - _STEPS_BACK), -1):
            if not (_is_inside_character(self._text, place) or _FENCE_AHEAD.match(self._text, place)):
                return place
        return cut

    def _between(self, position: int, cut: int, reopened: _Fence | None) -> str:
        """The text itself; a fence that was opened again at the margin is closed there as well."""
        if reopened is None or cut < reopened.end:
            return self._text[position:cut]
        return self._text[position : reopened.body_end] + reopened.marker + self._text[reopened.end : cut]

    def _after(self, cut: int) -> int:
        if cut and self._text[cut - 1] == "\n":
            return cut
        blank = _BETWEEN_PARTS.match(self._text, cut)
        return blank.end() if blank else cut


def _fences(text: str, is_short: Callable[[str], bool]) -> tuple[str, list[_Fence]]:
    """`text` with its last fence closed, and all its fences."""
    fences: list[_Fence] = []
    opened: re.Match[str] | None = None
    for line in _FENCE_LINE.finditer(text):
        if not is_short(line[0]):
            continue
        if opened is None:
            opened = line
        elif line["marker"].startswith(opened["marker"]) and not line["info"].strip():
            fences.append(_fence(opened, line.start(), line.end()))
            opened = None
    if opened is not None:
        text = text if text.endswith("\n") else f"{text}\n"
        fences.append(_fence(opened, len(text), len(text) + len(opened["marker"])))
        text += opened["marker"]
    return text, fences


def _fence(opened: re.Match[str], body_end: int, end: int) -> _Fence:
    opener = opened["marker"] + opened["info"].rstrip()
    return _Fence(opened.start(), opened.end() + 1, body_end, end, opener, opened["marker"])


def _spanning(whole: list[tuple[int, int]], cut: int) -> int:
    """Start of the code span or link that `cut` would break, else 0."""
    index = bisect_right(whole, cut - 1, key=lambda span: span[0]) - 1
    return whole[index][0] if index >= 0 and cut < whole[index][1] else 0


def _is_inside_character(text: str, place: int) -> bool:
    """Whether a reader sees what stands before and behind `place` as one character (the common cases of UAX #29)."""
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    if before == "\N{ZERO WIDTH JOINER}" or unicodedata.category(after) in {"Mn", "Me", "Mc"}:
        return True
    if "\U0001f1e6" <= after <= "\U0001f1ff":
        flags = text[max(0, place - _STEPS_BACK) : place]
        return (len(flags) - len(flags.rstrip("".join(map(chr, range(0x1F1E6, 0x1F200)))))) % 2 == 1
    return (
        after in "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or "\U000e0020" <= after <= "\U000e007f"
        or ("\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff")
        or before + after == "\r\n"
    )
