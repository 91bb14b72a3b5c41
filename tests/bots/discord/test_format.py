"""What an agent says, in Discord's Markdown and within its limits."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bots.discord.format import compose
from bots.discord.markdown import Names, read_markdown
from core.chat.port import Mode
from core.chat.split import utf16_length
from core.content import plain_text


def one(text: str, mode: Mode) -> str:
    (part,) = compose(text, mode)
    return part.text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("# Title\n\ntext", "**Title**\n\ntext"),
        ("*i* **b** ~~s~~ `c`", "*i* **b** ~~s~~ `c`"),
        ("- a\n- b\n\n1. c", "- a\n- b\n\n1. c"),
        ("> q\n> r\n\nafter", "> q\n> r\nafter"),
        ("```py\nx = 1\n```", "```py\nx = 1\n```"),
        ("[text](https://x.org/(a))", "[text](https://x.org/%28a%29)"),
        ("<https://x.org/a_b_c>", "https://x.org/a_b_c"),
        ("see https://x.org/a_b_c_d", "see https://x.org/a_b_c_d"),
        ("[run](javascript:alert(1))", "run (javascript:alert(1))"),
        ("![cat](https://evil.example/x.png)", "cat (https://evil.example/x.png)"),
        ("snake_case and ||bars||", r"snake\_case and \||bars\||"),
        ("<@5> and <#6>", "<@5> and <#6>"),
    ],
)
def test_markdown_is_written_in_discords_dialect(text: str, written: str) -> None:
    assert one(text, "markdown") == written


@pytest.mark.parametrize(
    ("markup", "written"),
    [
        ('<at id="5"/> <at role="6"/> <sharp id="7"/> <emoji id="8" name="pog"/>', "<@5> <@&6> <#7> <:pog:8>"),
        ('<at id="x" name="Mona_"/> <at type="all"/>', r"@Mona\_ @everyone"),
        ("<b>b<i>i<b>b</b></i></b> <u>u</u> <s>s</s> <spl>x</spl>", "**b*ib*** __u__ ~~s~~ ||x||"),
        ("<b> spaced </b>end <i></i>", " **spaced** end "),
        ("&lt;@5&gt; *no* [no](https://x.org)", r"\<@5> \*no\* \[no\](https://x.org)"),
        ('<a href="https://x.org">there</a> <a href="file:///etc">no</a>', "[there](https://x.org) no file:///etc"),
        ("<code>a`b</code> <code>c</code>", "`` a`b `` `c`"),
        ('<code-block lang="p`y">x = "```"</code-block>', '```py\nx = "`\N{ZERO WIDTH SPACE}``"\n```'),
        ("a<quote>b\nc</quote>d", "a\n> b\n> c\nd"),
        ('<img src="https://evil.example/x y.png" title="cat"/>', "cat <https://evil.example/x%20y.png>"),
        ("<p>one</p><p>two</p>", "one\ntwo"),
    ],
)
def test_elements_are_written_in_discords_dialect(markup: str, written: str) -> None:
    assert one(markup, "element") == written


@given(st.text(alphabet="*_~|`<>@#:[]()\\ab0/t!&-.1", min_size=1, max_size=40).filter(lambda text: text.strip()))
@settings(max_examples=300, deadline=None)
def test_raw_text_shows_as_written(text: str) -> None:
    written = one(text, "raw")
    assert plain_text(read_markdown(written, Names())) == text


def test_at_the_beginning_of_a_line_raw_text_is_no_heading_list_or_quote() -> None:
    assert one("# a\n- b\n1. c\n> d\n-# e", "raw") == "\\# a\n\\- b\n1\\. c\n\\> d\n\\-# e"


def test_long_text_is_cut_within_the_limit_with_fences_kept() -> None:
    text = "word " * 900 + "\n\n```py\n" + "print('😀')\n" * 400 + "```\nend"
    parts = compose(text, "markdown")
    assert len(parts) > 3
    assert all(0 < utf16_length(part.text) <= 2000 for part in parts)
    assert all(part.text.count("```") % 2 == 0 for part in parts)
    assert sum(part.text.count("print") for part in parts) == 400


def test_files_go_with_the_text_they_stand_in_ten_to_a_message() -> None:
    first = '<img src="asset://1"/> one'
    parts = compose(f"{first} {'word ' * 500}<b>two <file src='artifact://t/2.bin'/></b>", "element")
    assert parts[0].files == ("asset://1",)
    assert parts[-1].files == ("artifact://t/2.bin",)
    many = compose("".join(f'<img src="asset://{number}"/>' for number in range(23)), "element")
    assert [len(part.files) for part in many] == [10, 10, 3]
    assert [part.text for part in many] == ["", "", ""]


@pytest.mark.parametrize("mode", ["raw", "element", "markdown"])
def test_a_blank_text_has_no_parts(mode: Mode) -> None:
    assert compose(" \n\t ", mode) == []


@pytest.mark.parametrize("mode", ["raw", "element", "markdown"])
@pytest.mark.parametrize("piece", ["*", "`", "<b>", "[a](", "> ", "- ", "<img src='asset:x'/>", "\\", "<@1"])
def test_hostile_text_is_written_in_linear_time(mode: Mode, piece: str) -> None:
    started = time.process_time()
    parts = compose(piece * 4000, mode)
    assert time.process_time() - started < 5.0
    assert all(utf16_length(part.text) <= 2000 and len(part.files) <= 10 for part in parts)


@pytest.mark.parametrize("marks", range(3, 10))
def test_no_run_of_backticks_ends_a_block_of_code(marks: int) -> None:
    [part] = compose(f"<code-block>a {'`' * marks} @everyone</code-block>", "element")
    assert part.text.count("```") == 2
