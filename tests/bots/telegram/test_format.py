"""What an agent says, in Telegram's HTML and within its limits."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bots.sandbox.telegram.markup import parse_html
from bots.telegram.format import MOST_CAPTION_UNITS, MOST_UNITS, compose
from core.chat.port import Mode
from core.chat.split import utf16_length


def one(text: str, mode: Mode) -> str:
    (part,) = compose(text, mode)
    return part.text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("# Title\n\ntext", "<b>Title</b>\n\ntext"),
        ("*i* **b** ~~s~~ `c<d`", "<i>i</i> <b>b</b> <s>s</s> <code>c&lt;d</code>"),
        ("- a\n- b\n\n1. c", "- a\n- b\n\n1. c"),
        ("> q\n> r\n\nafter", "<blockquote>q\nr</blockquote>\nafter"),
        ("```py\nif a<b: x\n```", '<pre><code class="language-py">if a&lt;b: x</code></pre>'),
        ("~~~\na\n```\nb\n~~~", "<pre><code>a\n```\nb</code></pre>"),
        (
            "> see\n> ```\n> x\n> ```\n> so",
            "<blockquote>see</blockquote>\n<pre><code>x</code></pre>\n<blockquote>so</blockquote>",
        ),
        ("[text](https://x.org/?a=1&b=2)", '<a href="https://x.org/?a=1&amp;b=2">text</a>'),
        ("[Jo](tg://user?id=5)", '<a href="tg://user?id=5">Jo</a>'),
        ("[run](javascript:alert(1))", "run (javascript:alert(1))"),
        ("![cat](https://evil.example/x.png)", "cat (https://evil.example/x.png)"),
        ("[mail](mailto:a@b.c)", "mail (mailto:a@b.c)"),
        ("<b>no</b> & \U000f0000so", "&lt;b&gt;no&lt;/b&gt; &amp; so"),
    ],
)
def test_markdown_is_written_in_telegrams_html(text: str, written: str) -> None:
    assert one(text, "markdown") == written


@pytest.mark.parametrize(
    ("markup", "written"),
    [
        ('<at id="5" name="J&amp;o"/> hi', '<a href="tg://user?id=5">J&amp;o</a> hi'),
        ('<at id="5"/> <at type="all"/> <at id="x&quot;" name="Jo"/>', '<a href="tg://user?id=5">5</a> @all @Jo'),
        ("<b>a <b>b</b> <i>c</i></b><u>d</u><spl>e</spl>", "<b>a b <i>c</i></b><u>d</u><tg-spoiler>e</tg-spoiler>"),
        ('<code-block lang="c&lt;">x</code-block>', '<pre><code class="language-c">x</code></pre>'),
        ('<a href="https://x.org/&quot;&lt;">l</a>', '<a href="https://x.org/&quot;&lt;">l</a>'),
        ('<img src="file:///etc/passwd"/>', "file:///etc/passwd"),
        ("<p>a</p><p>b</p>", "a\nb"),
    ],
)
def test_elements_are_written_in_telegrams_html(markup: str, written: str) -> None:
    assert one(markup, "element") == written


def test_a_raw_text_shows_as_it_is() -> None:
    (part,) = compose("```\n<b>&amp; **x**", "raw")
    assert (part.text, part.plain) == ("```\n&lt;b&gt;&amp;amp; **x**", "```\n<b>&amp; **x**")


@pytest.mark.parametrize("text", ["", " \n\n ", "\ufffc"])
def test_a_blank_text_has_no_parts(text: str) -> None:
    assert compose(text, "markdown") == []


def test_a_file_takes_a_text_that_fits_as_its_caption_and_each_further_one_is_a_part_of_its_own() -> None:
    short = compose("look ![a](asset://1)\n\n![b](artifact://x/2)", "markdown")
    assert [(part.plain.strip(), part.files) for part in short] == [("look", ("asset://1",)), ("", ("artifact://x/2",))]
    long = compose(f"{'w ' * 600}![a](asset://1)", "markdown")
    assert [(len(part.plain), part.files) for part in long] == [(1200, ()), (0, ("asset://1",))]


def test_formatting_goes_on_behind_a_cut() -> None:
    first, second = compose(f"<b>{'wörd ' * 1000}</b>", "element")
    assert first.text.startswith("<b>")
    assert first.text.endswith("</b>")
    assert second.text.startswith("<b>wörd")
    assert second.text.endswith("</b>")


def test_a_block_of_code_that_is_cut_is_one_in_each_part() -> None:
    lines = "\n".join(f"x = {number} < 5" for number in range(800))
    parts = compose(f"before\n\n```py\n{lines}\n```\nafter", "markdown")
    assert len(parts) > 2
    assert all('<pre><code class="language-py">' in part.text for part in parts)
    assert "\n".join(part.plain for part in parts).count("x = ") == 800


@given(st.text(alphabet=st.sampled_from("ab `~*_<>&[]()!\n#-\U0001f600\ufffc\U000f0001\ud800"), max_size=300))
@settings(max_examples=300, deadline=None)
def test_whatever_is_said_parses_to_what_is_read_and_keeps_the_limits(text: str) -> None:
    for mode in ("markdown", "element", "raw"):
        for part in compose(text * 30, mode):
            assert part.text or part.files
            read, _ = parse_html(part.text)
            assert read == part.plain
            assert utf16_length(part.plain) <= (MOST_CAPTION_UNITS if part.files else MOST_UNITS)


def test_a_hostile_text_costs_no_more_than_a_plain_one() -> None:
    begun = time.monotonic()
    for hostile in ("<b>" * 20_000, "`" * 60_000, "**" * 30_000, "> " * 30_000, "```\n" * 15_000, "[" * 50_000):
        compose(hostile, "markdown")
        compose(hostile, "element")
    assert time.monotonic() - begun < 10
