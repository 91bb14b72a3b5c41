"""Every word is found, of any script and any length: what `LIKE` finds as a whole word, the index finds."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from core.archive.rows import Batch, Told
from core.archive.schema import migrate
from core.archive.search import search
from core.archive.shelf import Piece, put
from core.archive.words import phrase
from core.errors import InvalidRequest
from tests.builders import SESSION

DAY = 86_400_000
NOW = 1_793_600_000_000


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as database:
        migrate(database)
        yield database


def told(number: int, content: str, at: int = NOW) -> Told:
    return Told(f"e{number}", str(number), 0, at, "user", content, "Mona")


def fill(database: sqlite3.Connection, *contents: str) -> None:
    put(database, [Piece(Batch(SESSION, [told(number, text) for number, text in enumerate(contents, 1)]), None)])


def found(database: sqlite3.Connection, words: str) -> list[str]:
    return [hit.content for hit in search(database, words, most=50)]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("天", "今天好"),
        ("天气", "明天天气好"),
        ("天气好", "明天天气好。"),
        ("かな", "ひらがなかな"),
        ("서울", "나는 서울에"),
        ("สวัสดี", "สวัสดีครับ"),
        ("cafe\u0301", "the cafe\u0301 is open"),
        ("CAFÉ", "the café is open"),
        ("2026", "in 2026, perhaps"),
        ('say "yes"', 'they say "yes" to it'),
        ("👍", "great👍🏽!"),
        ("👩‍👩‍👧", "we 👩‍👩‍👧 went"),
        ("🫠", "so 🫠 hot"),
        ("vue3框架", "用vue3框架写"),
        ("हिन्दी", "यह हिन्दी है"),
        ("𠮷野", "在𠮷野家"),
        ("naïve", "a naïve idea"),
        ("x\u0323y", "an x\u0323y thing"),
    ],
)
def test_a_word_is_found(database: sqlite3.Connection, words: str, text: str) -> None:
    fill(database, "something else 别的", text)
    assert found(database, words) == [text]


def test_neighbours_are_neighbours(database: sqlite3.Connection) -> None:
    fill(database, "天晴，气好", "甲乙,乙丙", "天气", "气天")
    assert found(database, "天气") == ["天气"]
    assert found(database, "甲乙丙") == []


_SCRIPTS = "ab Z9天气明かカ서울éñжДß👍😀\u0301-._\"'*()的한"
TEXTS = st.lists(st.text(st.sampled_from(_SCRIPTS), max_size=14), min_size=1, max_size=8)
WORDS = st.text(st.sampled_from(_SCRIPTS.replace(" ", "")), min_size=1, max_size=4)
_LONE = re.compile(r"[天气明かカ서울的한👍😀]+")


def like(database: sqlite3.Connection, word: str) -> set[str]:
    """Texts that hold the word, and no letter or mark that belongs to it beside it."""
    rows = database.execute("SELECT content FROM messages WHERE content LIKE ? ESCAPE '!'", (f"%{escaped(word)}%",))
    edge = r"(?![\w\u0301])" if not _LONE.fullmatch(word[-1]) else r"(?!\u0301)"
    start = r"(?<![\w])" if not _LONE.fullmatch(word[0]) else ""
    lone = r"(?<=[天气明かカ서울的한])"
    before = f"(?:{start}|{lone})" if start else ""
    after = edge if _LONE.fullmatch(word[-1]) else rf"(?:{edge}|(?=[天气明かカ서울的한]))"
    whole = re.compile(before + re.escape(word) + after, re.IGNORECASE)
    return {text for (text,) in rows if whole.search(text)}


def escaped(word: str) -> str:
    return re.sub("([!%_])", r"!\1", word)


@given(TEXTS, WORDS)
@settings(max_examples=150, deadline=None)
def test_what_like_finds_as_a_whole_word_the_index_finds(texts: list[str], word: str) -> None:
    try:
        phrase(word)
    except InvalidRequest:
        return  # there is no word in it
    with closing(sqlite3.connect(":memory:")) as database:
        migrate(database)
        fill(database, *texts)
        assert like(database, word) <= set(found(database, word))


@given(st.text(max_size=40))
@settings(max_examples=80, deadline=None)
def test_no_query_is_an_error_of_the_database(words: str) -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        migrate(database)
        with suppress(InvalidRequest):
            search(database, words)


@pytest.mark.parametrize("words", ["", "  ", "?!", '"', "***", "()", "-"])
def test_what_holds_no_word_is_refused_with_a_cure(database: sqlite3.Connection, words: str) -> None:
    with pytest.raises(InvalidRequest, match="give a word"):
        search(database, words)


def test_newest_first_by_time_and_not_by_coming(database: sqlite3.Connection) -> None:
    messages = [told(1, "tea now", NOW), told(2, "tea last year", NOW - 300 * DAY), told(3, "tea today", NOW - 5)]
    put(database, [Piece(Batch(SESSION, [*messages]), None)])
    assert found(database, "tea") == ["tea now", "tea today", "tea last year"]
    assert len(search(database, "tea", within="7d", now=NOW)) == 2
    assert len(search(database, "tea", within="1y", now=NOW)) == 3
    assert len(search(database, "tea", most=1)) == 1
