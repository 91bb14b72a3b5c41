"""The grammar of ``action.log``: what is written is read back, what is older is read too, and nothing can be forged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.actionlog.line import (
    KINDS,
    MOST_REPLAYED,
    Called,
    Ended,
    Failed,
    Input,
    Line,
    Other,
    Result,
    Said,
    Thought,
    Todo,
    event_of,
    read,
    replay,
    stamp,
)

TURN = "e061c676-0701-4e5c-b2c8-565cf9462c91"
HEAD = "[2026-11-01 19:04:09.900][3fa91c0e]"
AT = "2026-11-01 19:04:09.900"


def test_the_lines_of_the_specification_are_read() -> None:
    assert read(f"{HEAD}[user][] is the film on Friday?") == Line(AT, "3fa91c0e", "user", "", "is the film on Friday?")
    assert read(f'{HEAD}[tool_call][{TURN}] Send("yes, at eight")') == Line(
        AT, "3fa91c0e", "tool_call", TURN, 'Send("yes, at eight")'
    )
    assert read("[2026-08-01 10:00:00.000][--------][assistant] a line of the old three-bracket kind") == Line(
        "2026-08-01 10:00:00.000", "--------", "assistant", None, "a line of the old three-bracket kind"
    )


@pytest.mark.parametrize(
    ("text", "task", "content"),
    [
        ("[user] [x] y", None, "[x] y"),
        (f"[user] [{TURN}] y", None, f"[{TURN}] y"),
        ("[user][x] y", None, "[x] y"),
        ("[user][][x] y", "", "[x] y"),
        (f"[user][{TURN.upper()}]  y ", TURN.upper(), " y "),
        ("[user][]", "", ""),
        ("[user]", None, ""),
    ],
)
def test_the_fourth_bracket_counts_where_it_touches_and_is_empty_or_a_uuid(
    text: str, task: str | None, content: str
) -> None:
    line = read(HEAD + text)
    assert line is not None
    assert (line.task, line.content) == (task, content)


@given(
    kind=st.sampled_from(sorted(KINDS)),
    task=st.sampled_from(["", TURN]),
    content=st.text(st.characters(exclude_characters="\x1f", exclude_categories=["Cs"])),
)
def test_every_text_survives_a_round_trip_in_one_line(kind: str, task: str, content: str) -> None:
    line = Line(AT, "3fa91c0e", kind, task, content)  # pyright: ignore[reportArgumentType] - one of the kinds
    text = str(line)
    assert "\n" not in text
    assert "\r" not in text
    assert read(text) == line._replace(content=content.replace("\r\n", "\n").replace("\r", "\n"))


def test_a_moment_is_told_to_the_millisecond() -> None:
    assert stamp(1_793_530_000_007).endswith(".007")
    assert len(stamp(1_793_530_000_000)) == len(AT)


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ("[user][] hi", Input("hi")),
        ("[steer][] and\x1fmore", Input("and\nmore")),
        ("[assistant][] hello", Said("hello")),
        ("[thinking][] hm", Thought("hm")),
        ('[todo][] [{"content":"x"}]', Todo([{"content": "x"}])),
        ("[tool_call][] Read(a b)", Called("Read(a", "b)", skipped=False)),
        ("[tool_skipped][] read", Called("read", "", skipped=True)),
        ("[tool_result][] read ok", Result("read", failed=False)),
        ("[tool_result][] read error", Result("read", failed=True)),
        ("[error][] - it broke", Failed(None, "it broke")),
        ("[error][] read it broke", Failed("read", "it broke")),
        (
            "[done][] gpt-5 reasoning=low dur=1m2.5s in=900 (40%) out=4",
            Ended("gpt-5", {"reasoning": "low", "dur": "1m2.5s", "in": "900", "out": "4"}, canceled=False),
        ),
        ("[canceled][] dur=2s", Ended(None, {"dur": "2s"}, canceled=True)),
        ("[pending][] x", Other("pending", "x")),
    ],
)
def test_a_line_tells(text: str, event: object) -> None:
    line = read(HEAD + text)
    assert line is not None
    assert event_of(line) == event


def test_what_is_no_line_is_dropped_and_counted() -> None:
    lines = ["", "no line", f"{HEAD}[news][] x", f"{HEAD}[todo][] no list", f"{HEAD}[user][] x"]
    replayed = replay(lines)
    assert [event for _, event in replayed.events] == [Input("x")]
    assert replayed.dropped == 4
    assert len(replay([f"{HEAD}[user][] {number}" for number in range(600)]).events) == MOST_REPLAYED
