"""How text is cut for the index, and a query the same way: every word of any length is found (sessions.md 2.2).

``unicode61`` takes a Chinese sentence for one word. So Han, Kana, Hangul and other scripts without blanks stand
character by character, as do emoji and other signs. Two neighbours are also a word of a second column: a phrase of two
frequent characters would be looked for in half of all messages.
"""

import hashlib
import re
import unicodedata
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from core.errors import InvalidRequest
from core.ids import SessionId

TOKENIZER: Final = "unicode61 categories 'L* N* Co So'"
MOST_WORDS: Final = 64
MOST_CHARACTERS: Final = 32 * 1024
"""How much of one message is indexed; no platform takes as much."""

_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u30ff\u3105-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U0001aff0-\U0001b16f\U00020000-\U0003ffff"
)
_RUN: Final = re.compile(f"[{_UNSPACED}]+")
_ALONE: Final = re.compile(rf"(?P<run>[{_UNSPACED}]+)|[^\w\x00-\x7f]+")
_BETWEEN: Final = " 0 "
"""What keeps the pairs of two runs from being neighbours."""


class Indexed(NamedTuple):
    """What the index holds of one message."""

    content: str
    pairs: str


def indexed(text: str) -> Indexed:
    """The words of a message and the pairs of those that stand without blanks."""
    text = text[:MOST_CHARACTERS]
    if text.isascii():
        return Indexed(_without_nul(text), "")
    text = unicodedata.normalize("NFC", text)
    return Indexed(_spaced(text), _BETWEEN.join(map(_pairs, _RUN.findall(text))))


def phrase(query: str) -> str:
    """An FTS5 expression for one phrase. Raises `InvalidRequest` where there is no word in it, or too many."""
    text = unicodedata.normalize("NFC", query.strip())
    if _RUN.fullmatch(text) and 1 < len(text) <= MOST_WORDS:
        return f'pairs : "{_pairs(text)}"'
    spaced = _spaced(text).replace('"', " ")
    words = [word for word in spaced.split() if any(map(_is_word, word))]
    if not words:
        raise InvalidRequest("there is no word in that; give a word, a character or an emoji")
    if len(words) > MOST_WORDS:
        raise InvalidRequest(f"that is too much to look for at once; give at most {MOST_WORDS} words")
    return f'content : "{" ".join(words)}"'


@lru_cache(maxsize=4096)
def session_word(session: SessionId) -> str:
    """The word that stands for a session in the index."""
    return "s" + hashlib.blake2b(session.encode(), digest_size=8).hexdigest()


def _spaced(text: str) -> str:
    return _without_nul(_ALONE.sub(lambda found: f" {' '.join(found[0])} ", text))


def _without_nul(text: str) -> str:
    return text.replace("\0", " ")


def _pairs(run: str) -> str:
    return " ".join(map("".join, pairwise(run)))


def _is_word(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in "LN" or category in {"So", "Co"}
