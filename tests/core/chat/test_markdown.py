import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.chat.markdown import markdown_to_nodes
from core.content import parse, plain_text, render, sources


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("*i* **b** ~~s~~ `c < d`", "<i>i</i> <b>b</b> <s>s</s> <code>c &lt; d</code>"),
        ("***both***", "<i><b>both</b></i>"),
        ("one\ntwo  \nthree\n\nfour", "one\ntwo\nthree\n\nfour"),
        ("# Head *x*\ntext", "<b>Head <i>x</i></b>\n\ntext"),
        ("- a\n- b\n  more\n  1. x\n  2. y\n- c", "- a\n- b\n  more\n  1. x\n  2. y\n- c"),
        ("3. three\n4. four", "3. three\n4. four"),
        ("- [ ] open", "- [ ] open"),
        ("so\n> quoted\n> *text*\n\nyes", "so\n<quote>quoted\n<i>text</i></quote>\nyes"),
        ("```python title\nx < 1\n\ny\n```\nend", '<code-block lang="python">x &lt; 1\n\ny</code-block>\nend'),
        ("- a\n  ```\n  x\n  ```\n  b", "- a\n<code-block>x</code-block>\n  b"),
        ("a\n\n---\n\nb", "a\n\n———\n\nb"),
        ("a\\*b &amp; &lt;", "a*b &amp; &lt;"),
        ("||spoiler|| @everyone <@1>", "||spoiler|| @everyone &lt;@1&gt;"),
        ("|a|b|\n|-|-|\n|1|2|", "|a|b|\n|-|-|\n|1|2|"),
        ("<b>x</b>\n\n<div>\ny", "&lt;b&gt;x&lt;/b&gt;\n\n&lt;div&gt;\ny"),
        ("[x]: http://a\n\n[x]", "[x]: http://a\n\n[x]"),
        ("http://a.b", "http://a.b"),
        ("#", "#"),
        (" \n", ""),
    ],
)
def test_markdown_becomes_elements(text: str, markup: str) -> None:
    assert render(markdown_to_nodes(text)) == markup


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("[a **b**](https://x/?q=1&r)", '<a href="https://x/?q=1&amp;r">a <b>b</b></a>'),
        ("[a](tg://user?id=1) <m@x.y>", '<a href="tg://user?id=1">a</a> <a href="mailto:m@x.y">m@x.y</a>'),
        ("[](http://x)", '<a href="http://x">http://x</a>'),
        ("[a](javascript:alert(1))", "a (javascript:alert(1))"),
        ("[a](JaVaScRiPt:x) [b](file:///etc/passwd)", "a (JaVaScRiPt:x) b (file:///etc/passwd)"),
        ("[*a*](rel/ative)", "<i>a</i> (rel/ative)"),
        ("[a](asset://1)", "a (asset://1)"),
    ],
)
def test_only_known_schemes_stay_links(text: str, markup: str) -> None:
    assert render(markdown_to_nodes(text)) == markup


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("![a *cat*](asset://0190f9f3)", '<img src="asset://0190f9f3" title="a cat"/>'),
        ("![](artifact://shot/ab.blob)", '<img src="artifact://shot/ab.blob"/>'),
        ("![cat](https://x/y.png)", "cat (https://x/y.png)"),
        ("![](file:///etc/passwd)", "file:///etc/passwd"),
        ("![x](data:image/png;base64,AAA)", "x (data:image/png;base64,AAA)"),
    ],
)
def test_only_our_own_resources_are_pictures(text: str, markup: str) -> None:
    assert render(markdown_to_nodes(text)) == markup


def test_a_text_nested_beyond_reason_is_kept_as_written() -> None:
    for text in ("> " * 40 + "deep", "> " * 20 + "*a " * 20 + "b* " * 20, "- " * 40 + "x"):
        assert markdown_to_nodes(text) == [text]


PIECES = [
    *("*", "**", "~~", "`", "```", "\n", "\n\n", "> ", "- ", "1. ", "# ", "    ", "\\"),
    *("[", "](", ")", "![", "<", ">", "&lt;", "asset://1", "http://x"),
]
MARKDOWN = st.text() | st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=60).map("".join)


@given(MARKDOWN)
def test_any_markdown_gives_a_tree_that_survives_its_markup(text: str) -> None:
    nodes = markdown_to_nodes(text)
    assert parse(render(nodes)) == nodes
    assert all(source.lower().startswith(("asset:", "artifact:")) for source in sources(nodes))
    if text.strip():
        assert plain_text(nodes)


@pytest.mark.parametrize(
    "piece", ["[", "![", "*", "*a", "_a ", "`", "> ", "- a\n", "[a](", "![[]()", "~~", "<", "&", "a\n\n", "\\"]
)
def test_hostile_markdown_is_read_within_seconds(piece: str) -> None:
    started = time.process_time()
    markdown_to_nodes(piece * (20_000 // len(piece)))
    assert time.process_time() - started < 5  # measured: below 0.8; anything that is not linear takes far longer
