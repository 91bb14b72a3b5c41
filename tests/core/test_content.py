import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from satori import element as satori

from core.content import (
    Element,
    Node,
    Span,
    escape_attribute,
    escape_text,
    for_terminal,
    joined,
    mentions,
    nest,
    parse,
    plain_text,
    render,
    sources,
)
from core.content.markup import MAX_DEPTH

MEGABYTE = 1_000_000

HOSTILE = [
    *("<", ">", "<b>", "</b>", "<b/>", "<b>x</b>", "<b></i>", "<b><i></b>", "<text>", "<!--", "<p>x</p>", "<quote>\n"),
    *("<a ", '<a b="', "<a b='\" ", "<a b=c ", '<a href="x">', "<" + "a" * 60, "<a " + "A" * 60),
    *("&", "&#1", "&lt;", "\x00\ud800"),
]


# Reading


@pytest.mark.parametrize(
    ("markup", "nodes"),
    [
        ("", []),
        ("a &lt;b&gt; &amp; &quot;c&quot; &#39;d&#x27;", ["a <b> & \"c\" 'd'"]),
        ("&nbsp; &#0; &#xD800; &#x110000; & &;", ["&nbsp; &#0; &#xD800; &#x110000; & &;"]),
        ("one<br/>two<br>three", ["one\ntwo\nthree"]),
        ('<at id="1" name="A &quot;B&quot;"/>', [Element("at", {"id": "1", "name": 'A "B"'})]),
        ("<message forward>x</message>", [Element("message", {"forward": True}, ("x",))]),
        ("<img src='asset://1' width=3/>", [Element("img", {"src": "asset://1", "width": "3"})]),
        ('<x:new dataKind="1">y</x:new>', [Element("x:new", {"data-kind": "1"}, ("y",))]),
        ("<b>a<i>b</b>c", [Element("b", {}, ("a<i>b",)), "c"]),
        ("</b>stray <b>open", ["</b>stray <b>open"]),
        ('<b title="a<b">x</b>', ['<b title="a<b">x</b>']),
        ("1 < 2 && 3 > 2 <3", ["1 < 2 && 3 > 2 <3"]),
        ("bell\x07 nul\x00 tab\t", ["bell\x07 nul\x00 tab\t"]),
    ],
)
def test_markup_is_read_as_written(markup: str, nodes: list[Node]) -> None:
    assert parse(markup) == nodes


def test_what_lies_deeper_than_the_cap_is_text_and_closes_nothing_above_it() -> None:
    deep = "<b>" * (MAX_DEPTH + 2) + "x" + "</b>" * (MAX_DEPTH + 2)
    node: Node = parse(deep)[0]
    for _ in range(MAX_DEPTH):
        assert isinstance(node, Element)
        (node,) = node.children
    assert node == "<b><b>x</b></b>"


FRAGMENTS = [
    *("<b>", "</b>", "<i>", "</i>", "<text>", "</text>", "<br/>", "<at id='1'/>", '<a href="x&amp;y">', "</a>", "<p"),
    *("<x aB_c-D=1 forward>", "</x>", "&amp;", "&", "<", ">", '"', "'", "/", "=", " ", "\n", "\x00", "\ud83d", "👍"),
]
MARKUP = st.text() | st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=3), max_size=80).map("".join)


@given(MARKUP)
def test_reading_what_we_write_gives_the_same_tree(markup: str) -> None:
    tree = parse(markup)
    assert parse(render(tree)) == tree
    assert joined(tree) == tree


@given(st.text())
def test_escaped_text_and_values_come_back_whole(text: str) -> None:
    assert parse(escape_text(text)) == joined([text])
    assert parse(f'<x y="{escape_attribute(text)}"/>') == [Element("x", {"y": text})]


@pytest.mark.parametrize("piece", HOSTILE)
def test_half_a_megabyte_of_anything_is_read_within_seconds(piece: str) -> None:
    started = time.process_time()
    tree = parse(piece * (MEGABYTE // 2 // len(piece)))
    plain_text(tree)
    mentions(tree)
    sources(tree)
    assert time.process_time() - started < 3  # measured: below 0.5; anything that is not linear takes minutes


@pytest.mark.parametrize("piece", ["<", "<b>", "<a "])
def test_a_megabyte_of_open_tags_takes_less_than_a_second(piece: str) -> None:
    started = time.process_time()
    parse(piece * (MEGABYTE // len(piece)))
    assert time.process_time() - started < 1


# Writing


@pytest.mark.parametrize(
    ("ours", "library"),
    [
        ("a & < > \" ' \n", satori.Text("a & < > \" ' \n")),
        (Element("at", {"id": "1", "name": 'n"<'}), satori.At("1", 'n"<')),
        (Element("at", {"type": "all"}), satori.At.all()),
        (Element("at", {"role": "9"}), satori.At.role_("9")),
        (Element("sharp", {"id": "1", "name": "general"}), satori.Sharp("1", "general")),
        (Element("emoji", {"id": "1", "name": "party"}), satori.Emoji("1", "party")),
        (Element("img", {"src": "asset://1", "title": "t"}), satori.Image("asset://1", "t")),
        (Element("file", {"src": "asset://1"}), satori.File("asset://1")),
        (Element("b", {}, ("x", Element("i", {}, ("y",)))), satori.Bold("x", satori.Italic("y"))),
        (Element("spl", {}, ("x",)), satori.Spoiler("x")),
        (Element("a", {"href": 'http://x/?a&"'}, ("t",)), satori.Link('http://x/?a&"')("t")),
        (Element("message", {"forward": True}, ("x",)), satori.Message(forward=True, content=["x"])),
        (Element("quote", {}, ("x",)), satori.Quote(content=["x"])),
    ],
)
def test_elements_are_written_as_the_satori_library_writes_them(ours: Node, library: satori.Element) -> None:
    assert render([ours]) == str(library)


def test_only_attribute_values_have_their_quotes_escaped_and_line_breaks_stay() -> None:
    node = Element("code-block", {"lang": '"'}, ('print("a < b")\n',))
    assert render([node]) == '<code-block lang="&quot;">print("a &lt; b")\n</code-block>'


# Nesting flat spans


@pytest.mark.parametrize(
    ("text", "spans", "markup"),
    [
        ("hello world", [Span(0, 5, "b"), Span(6, 11, "i")], "<b>hello</b> <i>world</i>"),
        ("hello world", [Span(2, 4, "i"), Span(0, 11, "b")], "<b>he<i>ll</i>o world</b>"),
        ("abcdef", [Span(0, 4, "b"), Span(2, 6, "i")], "<b>ab<i>cd</i></b><i>ef</i>"),
        ("abc", [Span(0, 3, "b"), Span(0, 3, "i")], "<b><i>abc</i></b>"),
        ("hi @ann!", [Span(3, 7, "at", {"id": "1"}), Span(0, 8, "b")], '<b>hi <at id="1"/>!</b>'),
        ("@ann lee", [Span(0, 4, "b"), Span(0, 8, "at", {"id": "1"})], '<at id="1"/>'),
        ("x@ann lee", [Span(0, 5, "b"), Span(1, 9, "at", {"id": "1"})], '<b>x<at id="1"/></b>'),
        ("x@ann lee", [Span(1, 5, "at", {"id": "1"}), Span(3, 9, "b")], 'x<at id="1"/><b> lee</b>'),
        ("abc", [Span(-5, 99, "b"), Span(2, 2, "i"), Span(3, 1, "u"), Span(7, 9, "s")], "<b>abc</b>"),
        ("a<b", [Span(0, 3, "a", {"href": "x&y"})], '<a href="x&amp;y">a&lt;b</a>'),
        ("", [Span(0, 1, "b")], ""),
    ],
)
def test_flat_spans_become_nested_elements(text: str, spans: list[Span], markup: str) -> None:
    assert render(nest(text, spans)) == markup


SPANS = st.lists(st.builds(Span, st.integers(-2, 30), st.integers(-2, 30), st.sampled_from("biu")), max_size=50)


def _covered(
    nodes: list[Node] | tuple[Node, ...], tags: frozenset[str] = frozenset()
) -> list[tuple[str, frozenset[str]]]:
    letters: list[tuple[str, frozenset[str]]] = []
    for node in nodes:
        if isinstance(node, str):
            letters.extend((letter, tags) for letter in node)
        else:
            letters.extend(_covered(node.children, tags | {node.tag}))
    return letters


@given(st.text(max_size=25), SPANS)
def test_every_letter_keeps_exactly_its_styles(text: str, spans: list[Span]) -> None:
    nodes = nest(text, spans)
    assert nodes == nest(text, spans)
    assert parse(render(nodes)) == nodes
    shown = _covered(nodes)
    assert "".join(letter for letter, _ in shown) == text
    if len(spans) <= MAX_DEPTH:
        wanted = [frozenset(span.tag for span in spans if span.start <= at < span.end) for at in range(len(text))]
        assert [tags for _, tags in shown] == wanted


def test_ten_thousand_overlapping_spans_are_nested_quickly() -> None:
    spans = [Span(start, start + 10_000, "b") for start in range(10_000)]
    started = time.process_time()
    nest("x" * 30_000, spans)
    assert time.process_time() - started < 2


# Reading without markup


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ('<at id="1" name="ann"/> <at id="2"/> <at role="3"/> <at type="all"/>', "@ann @2 @3 @all"),
        ('<sharp id="1" name="general"/> <sharp id="2"/>', "#general #2"),
        ('<emoji id="1" name="party_1"/> <emoji id="2"/> <emoji id="3" name="👍"/>', ":party_1: :2: 👍"),
        ('<img src="asset://1" title="cat.png"/><file src="asset://2"/>', "[image: cat.png][file]"),
        ('<a href="http://x">y</a> <a href="http://z">http://z</a>', "y (http://x) http://z"),
        ("<code>a &lt; b</code>", "a < b"),
        ("a<p>b</p><p>c</p>d", "a\nb\nc\nd"),
        ("so:<code-block lang='py'>x = 1\ny</code-block>done", "so:\nx = 1\ny\ndone"),
        ("<quote>one\n<quote>two</quote></quote>three", "> one\n> two\nthree"),
        ("<message forward>old</message>new", "old\nnew"),
        ("<b>bo</b>ld <unknown>kept</unknown>", "bold kept"),
    ],
)
def test_plain_text_is_what_a_person_would_read(markup: str, text: str) -> None:
    assert plain_text(markup) == text
    assert plain_text(parse(markup)) == text


def test_mentions_are_users_named_outside_quotes() -> None:
    markup = '<b><at id="1"/></b><quote><at id="2"/></quote><at role="3"/><at type="all"/><at id=""/>&lt;at id="4"/&gt;'
    assert mentions(markup) == {"1"}


def test_sources_come_in_document_order_wherever_they_stand() -> None:
    markup = '<quote><img src="asset://1"/></quote><b><file src="asset://2"/></b><img/><video src="asset://1"/>'
    assert sources(markup) == ["asset://1", "asset://2", "asset://1"]


def test_a_terminal_is_shown_nothing_that_steers_it() -> None:
    text = "\x1b[31mred\x9b1m\u202egnp.exe\u2066\u061c\x7f \ta\r\nb\rc\ud800"
    assert for_terminal(text) == "[31mred1mgnp.exe  a b c\ufffd"
    assert for_terminal(text, multiline=True) == "[31mred1mgnp.exe  a\nb\nc\ufffd"


@given(st.text(alphabet=st.characters(exclude_categories=[])))
def test_any_text_can_be_printed_safely(text: str) -> None:
    shown = for_terminal(text, multiline=True)
    shown.encode()
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]", shown)
