"""How the sandbox reads `parse_mode=HTML`, and that what it makes agrees with python-telegram-bot."""

import contextlib
import html
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from telegram import Chat, Message, MessageEntity

from bots.sandbox.telegram.entities import cut, detect, trim, utf16_length
from bots.sandbox.telegram.errors import ApiError
from bots.sandbox.telegram.markup import parse_html

TAGS = {"b": "bold", "i": "italic", "u": "underline", "s": "strikethrough", "code": "code", "tg-spoiler": "spoiler"}


def test_every_documented_tag_becomes_its_entity() -> None:
    source = (
        '🎂<b>b</b><em>i</em><ins>u</ins><del>s</del><span class="tg-spoiler">p</span><code>c</code>'
        '<pre>f</pre><pre><code class="language-python">py</code></pre><blockquote expandable>q</blockquote>'
        '<blockquote>r</blockquote><a href="https://example.org/?a=1&amp;b=2">l</a>'
        '<a href="tg://user?id=42">m</a><tg-emoji emoji-id="5">👍</tg-emoji>&lt;&gt;&amp;&quot;&#33;&#x1F382;&nbsp;'
    )
    text, entities = parse_html(source)
    assert text == '🎂biuspcfpyqrlm👍<>&"!🎂&nbsp;'
    assert entities == [
        {"type": "bold", "offset": 2, "length": 1},
        {"type": "italic", "offset": 3, "length": 1},
        {"type": "underline", "offset": 4, "length": 1},
        {"type": "strikethrough", "offset": 5, "length": 1},
        {"type": "spoiler", "offset": 6, "length": 1},
        {"type": "code", "offset": 7, "length": 1},
        {"type": "pre", "offset": 8, "length": 1},
        {"type": "pre", "offset": 9, "length": 2, "language": "python"},
        {"type": "expandable_blockquote", "offset": 11, "length": 1},
        {"type": "blockquote", "offset": 12, "length": 1},
        {"type": "text_link", "offset": 13, "length": 1, "url": "https://example.org/?a=1&b=2"},
        {"type": "text_mention", "offset": 14, "length": 1, "user": {"id": 42}},
        {"type": "custom_emoji", "offset": 15, "length": 2, "custom_emoji_id": "5"},
    ]


@pytest.mark.parametrize(
    ("source", "detail"),
    [
        ("🎂<br>", 'Unsupported start tag "br" at byte offset 4'),
        ("a < b", 'Unsupported start tag "" at byte offset 2'),
        ("<b>open", 'Can\'t find end tag corresponding to start tag "b"'),
        ("<b>x</i>", 'Unmatched end tag at byte offset 4, expected "</b>", found "</i>"'),
        ("x</b>", "Unexpected end tag at byte offset 1"),
        ("<b", "Unclosed start tag at byte offset 0"),
        ("<b>x</b", "Unclosed end tag at byte offset 4"),
        ('<span class="x">y</span>', 'Tag "span" must have class "tg-spoiler" at byte offset 0'),
        ("<a href=x_y>z</a>", "Unexpected end of name token at byte offset 8"),
        ('<a ="x">y</a>', 'Empty attribute name in the tag "a" at byte offset 0'),
        ('<a href="x>y</a>', "Unclosed start tag at byte offset 0"),
    ],
)
def test_broken_markup_is_refused_in_the_servers_words(source: str, detail: str) -> None:
    with pytest.raises(ApiError) as caught:
        parse_html(source)
    assert caught.value.description == f"Bad Request: can't parse entities: {detail}"


def test_an_end_tag_may_be_bare_and_an_empty_entity_vanishes() -> None:
    assert parse_html("<b>x</>y<i></i>") == ("xy", [{"type": "bold", "offset": 0, "length": 1}])
    assert parse_html("<B>x</B>") == ("x", [{"type": "bold", "offset": 0, "length": 1}])
    assert parse_html("<a href='nowhere'>x</a>") == ("x", [])


def test_white_space_at_the_ends_goes_and_entities_move_along() -> None:
    assert trim("  🎂ab \n", [{"type": "bold", "offset": 1, "length": 4}]) == (
        "🎂ab",
        [{"type": "bold", "offset": 0, "length": 3}],
    )


def test_links_in_code_are_not_marked_and_commands_in_paths_neither() -> None:
    text, marked = parse_html("<code>@mona</code> a/b @mona $CAKE")
    found = detect(text, marked)
    assert [(one["type"], cut(text, one["offset"], one["length"])) for one in found] == [
        ("code", "@mona"),
        ("mention", "@mona"),
        ("cashtag", "$CAKE"),
    ]


PIECES = st.lists(
    st.tuples(st.sampled_from([*TAGS, ""]), st.text(st.characters(exclude_categories=["Cs"]), min_size=1)), max_size=12
)


@given(PIECES)
def test_whatever_is_escaped_comes_back_and_every_entity_covers_its_part(pieces: list[tuple[str, str]]) -> None:
    source = "".join(f"<{tag}>{html.escape(text)}</{tag}>" if tag else html.escape(text) for tag, text in pieces)
    plain, entities = parse_html(source.replace("&#x27;", "'"))
    assert plain == "".join(text for _, text in pieces)
    assert [(one["type"], cut(plain, one["offset"], one["length"])) for one in entities] == [
        (TAGS[tag], text) for tag, text in pieces if tag
    ]
    read = Message(
        1,
        datetime.now(UTC),
        Chat(1, "private"),
        text=plain,
        entities=[MessageEntity(one["type"], one["offset"], one["length"]) for one in entities],
    )
    assert [read.parse_entity(one) for one in read.entities] == [text for tag, text in pieces if tag]
    assert utf16_length(plain) == len(plain.encode("utf-16-le")) // 2


@given(st.text("<>/ab=\"' &;#x1", max_size=60))
def test_no_input_makes_anything_but_text_or_a_refusal(source: str) -> None:
    with contextlib.suppress(ApiError):
        text, entities = parse_html(source)
        assert len(text) <= len(source)
        assert all(one["offset"] + one["length"] <= utf16_length(text) for one in entities)
