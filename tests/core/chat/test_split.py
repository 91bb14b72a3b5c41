import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.chat.split import MIN_LIMIT, split, utf16_length

FENCE = re.compile(r"^[ \t]*(`{3,}(?=[^`\n]*$)|~{3,})([^\n]*)$", re.MULTILINE)


def _open_fence(part: str) -> str | None:
    opened: str | None = None
    for line in FENCE.finditer(part):
        if opened is None:
            opened = line[1]
        elif line[1].startswith(opened) and not line[2].strip():
            opened = None
    return opened


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def test_utf16_length_counts_what_lies_beyond_the_first_plane_twice() -> None:
    assert [utf16_length(text) for text in ("", "aé报", "👍", "\ud83d")] == [0, 3, 2, 1]


def test_a_text_that_fits_is_one_part_unchanged() -> None:
    assert split("  hello\n\nworld \n", 2000) == ["  hello\n\nworld \n"]


@pytest.mark.parametrize("text", ["", " ", "\n" * 5000, " \t\n" * 5000])
def test_a_blank_text_has_no_parts(text: str) -> None:
    assert split(text, 2000) == []


def test_a_limit_too_small_to_hold_a_fence_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 64"):
        split("x", MIN_LIMIT - 1)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a" * 60 + "\n\n" + "b" * 20 + "\n" + "c" * 60, ["a" * 60, "b" * 20 + "\n" + "c" * 60]),
        ("a" * 60 + "\n  " + "b" * 60, ["a" * 60, "  " + "b" * 60]),
        ("a" * 55 + ". Then " + "b" * 60, ["a" * 55 + ".", "Then " + "b" * 60]),
        ("句" * 60 + "。" + "b" * 60, ["句" * 60 + "。", "b" * 60]),
        ("a" * 55 + " then " + "b" * 60, ["a" * 55 + " then", "b" * 60]),
        ("a" * 150, ["a" * 100, "a" * 50]),
        ("👍" * 60, ["👍" * 50, "👍" * 10]),
        ("a" * 60 + " `" + "b " * 30 + "` end", ["a" * 60, "`" + "b " * 30 + "` end"]),
        ("a" * 60 + " [b c](http://x/" + "d" * 60 + ")", ["a" * 60, "[b c](http://x/" + "d" * 60 + ")"]),
        ("a" * 60 + "http://x/" + "d" * 60, ["a" * 60, "http://x/" + "d" * 60]),
        ("a" * 99 + "e\u0301" + "b" * 9, ["a" * 99, "e\u0301" + "b" * 9]),
        ("a" * 95 + "👩\u200d👩\u200d👧" + "b" * 9, ["a" * 95, "👩\u200d👩\u200d👧" + "b" * 9]),
        ("a" * 97 + "👍🏽" + "b" * 9, ["a" * 97, "👍🏽" + "b" * 9]),
        ("a" * 94 + "🇩🇪🇫🇷" + "b" * 9, ["a" * 94 + "🇩🇪", "🇫🇷" + "b" * 9]),
    ],
)
def test_a_cut_falls_where_a_reader_minds_it_least(text: str, parts: list[str]) -> None:
    assert split(text, 100) == parts


def test_a_cut_fence_is_closed_and_opened_again_with_its_info_string() -> None:
    code = "\n".join(f"print({number})" for number in range(12))
    parts = split(f"look:\n~~~~python title\n{code}\n~~~~\nbye", 100)
    assert len(parts) > 1
    assert parts[0].startswith("look:\n~~~~python title\nprint(0)\n")
    assert all(part.startswith("~~~~python title\nprint(") for part in parts[1:])
    assert all(part.endswith("\n~~~~") for part in parts[:-1])
    assert parts[-1].endswith(")\n~~~~\nbye")


def test_a_fence_in_a_list_goes_on_at_the_margin_and_keeps_its_lines_indented() -> None:
    code = "".join(f"      line {number}\n" for number in range(12))
    parts = split(f"- item\n\n      ```py\n{code}      ```\n  after", 100)
    assert parts[-1].startswith("```py\n      line")
    assert parts[-1].endswith("\n```\n  after")


def test_a_fence_moves_to_the_next_part_rather_than_being_cut_near_its_start() -> None:
    code = "```\n" + "x = 1\n" * 10 + "```"
    assert split("a" * 60 + "\n" + code, 100) == ["a" * 60, code]


def test_a_fence_that_is_never_closed_is_closed() -> None:
    assert split("```py\nx", 2000) == ["```py\nx\n```"]
    assert all(_open_fence(part) is None for part in split("```py\n" + "x\n" * 200, 100))


def test_a_part_holds_as_much_as_a_measure_of_its_own_allows() -> None:
    assert split("👍" * 60, 64, measure=len) == ["👍" * 60]


PIECES = [
    *("```", "```py\n", "~~~\n", "> ", "\n", "\n\n", "\r\n", " "),
    *("`", "[a](b)", "word ", "👩\u200d👩\u200d👧", "e\u0301", "\ud83d"),
]
TEXTS = st.text(max_size=600) | st.lists(st.sampled_from(PIECES) | st.text(max_size=40), max_size=60).map("".join)


@given(TEXTS, st.integers(MIN_LIMIT, 200))
def test_no_part_is_empty_or_too_long_and_no_letter_is_lost(text: str, limit: int) -> None:
    parts = split(text, limit)
    assert all(part.strip() and utf16_length(part) <= limit for part in parts)
    if not FENCE.search(text):
        assert _squeezed("".join(parts)) == _squeezed(text)


PROSE = st.text(alphabet="ab .é👍_*[]()\n", max_size=150)


def _fenced(indent: str, marker: str, info: str, code: str) -> str:
    return f"{indent}{marker}{info}\n{code}\n{indent}{marker}"


BLOCKS = PROSE | st.builds(
    _fenced,
    st.sampled_from(["", "  ", "    "]),
    st.sampled_from(["```", "````", "~~~", "~~~~~"]),
    st.sampled_from(["", "py", "c++ title"]),
    PROSE,
)


@given(st.lists(BLOCKS, max_size=8).map("\n".join), st.integers(80, 200))
def test_every_part_closes_its_fences_and_all_text_and_code_is_kept(text: str, limit: int) -> None:
    parts = split(text, limit)
    assert all(_open_fence(part) is None for part in parts)
    assert all(part.strip() and utf16_length(part) <= limit for part in parts)
    assert _squeezed("".join(FENCE.sub("", part) for part in parts)) == _squeezed(FENCE.sub("", text))


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "ab ",
        "\n",
        "```\n",
        "`a",
        "[",
        "[a](",
        "http://",
        ". ",
        "~~~",
        "é",
        "e\u0301",
        "👩\u200d👩\u200d👧",
        "<a",
        "\t",
        "``` x",
    ],
)
def test_half_a_megabyte_of_anything_is_split_within_seconds(piece: str) -> None:
    started = time.process_time()
    split(piece * (500_000 // len(piece)), 2000)
    assert time.process_time() - started < 3  # measured: below 0.5; anything that is not linear takes minutes
