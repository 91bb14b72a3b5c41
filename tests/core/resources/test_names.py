import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.resources.names import MAX_LENGTH, safe_filename


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("photo.png", "photo.png"),
        ("../../etc/x", "x"),
        ("C:\\Windows\\system32\\cmd.exe", "cmd.exe"),
        ("mixed\\path/to\\f.txt", "f.txt"),
        ("folder/", "folder"),
        ("invoice\u202egnp.exe", "invoicegnp.exe"),
        ("a\u200bb\u2066c\ufeff.txt", "abc.txt"),
        ("a\x00b\x1b[31m\n.txt", "ab[31m.txt"),
        ("lone\ud800.txt", "lone.txt"),
        ("name. . .", "name"),
        ("  padded.txt  ", "padded.txt"),
        (".env", ".env"),
        ("con", "_con"),
        ("NUL.txt", "_NUL.txt"),
        ("Com1 .log", "_Com1 .log"),
        ("lpt¹", "_lpt¹"),
        ("console.txt", "console.txt"),
        ("报告 终稿.pdf", "报告 终稿.pdf"),
    ],
)
def test_a_name_keeps_only_what_is_safe(name: str, safe: str) -> None:
    assert safe_filename(name) == safe


@pytest.mark.parametrize("name", ["", "/", "..", "../..", "\\", ". .", "\u202e\u200b", "\x00", "   "])
def test_a_name_of_nothing_is_no_name(name: str) -> None:
    assert safe_filename(name) is None


def test_a_long_name_is_cut_and_keeps_its_extension() -> None:
    assert safe_filename("x" * 300 + ".jpeg") == "x" * 145 + ".jpeg"


def test_a_long_name_whose_extension_is_no_extension_is_simply_cut() -> None:
    assert safe_filename("a." + "b" * 300) == "a." + "b" * 148


NAMES = st.text() | st.text(alphabet="./\\ CONcon1x\u202e\u200b\x00\ud800", max_size=400)


@given(NAMES)
def test_any_name_comes_out_safe_and_stays_as_it_is(name: str) -> None:
    safe = safe_filename(name)
    if safe is None:
        return
    assert 0 < len(safe) <= MAX_LENGTH
    assert not {"/", "\\"} & set(safe)
    assert not {unicodedata.category(character) for character in safe} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert safe == safe.strip()
    assert not safe.endswith(".")
    assert safe_filename(safe) == safe
