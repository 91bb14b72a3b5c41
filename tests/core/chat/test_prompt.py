"""A prompt is one message on every platform, whatever stands in it, and says nothing but what it is asked to say."""

import html
import re
from collections.abc import Callable
from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import bots.discord.format
import bots.telegram.format
from core.chat.port import Part
from core.chat.prompt import MOST_LABEL, Prompt, compose_prompt, cut
from core.confirmations.record import Choice, Question
from core.confirmations.words import closed_prompt, moment, prompt_of
from core.ids import control
from tests.builders import MONA, a_confirmation, a_task, an_ask

HOSTILE = {
    "fences": "```\n```json\nrm -rf /\n```" * 20,
    "backticks": "`" * 500,
    "everyone": "@everyone @here <@1> <@!1> <@&2> <#3> <:a:4444444444>",
    "masked link": "[click here](https://evil.example) <https://evil.example> [a]: https://evil.example",
    "markup": '<at id="1"/> <at type="all"/> <a href="https://evil.example">x</a> <img src="asset://x"/> <b>&amp;</b>',
    "turned around": "\u202egnihtyna\u202c \u2066a\u2067b\u2069 \u200f\u061c",
    "headings": "# big\n## less\n> quote\n- item\n1. one\n-# small",
    "emoji": "👩‍👩‍👧‍👦🏳️‍🌈" * 300,
    "controls": "a\x00b\x07c\x1b[31md\x7f\r\n",
    "private": "\U000f0000\U00100000\ufffc\U000ffffd",
    "blank": " \n\t \u200b",
    "long word": "x" * 9000,
    "spoilers": "||a|| ~~b~~ **c** __d__ *e*",
    "lines": "\n" * 3000,
}

Compose = Callable[[str], list[Part]]
PLATFORMS: dict[str, tuple[Compose, Callable[[str], str], int]] = {
    "discord": (lambda text: bots.discord.format.compose(text, "element"), lambda text: text, 2000),
    "telegram": (
        lambda text: bots.telegram.format.compose(text, "element"),
        lambda text: html.unescape(re.sub("<[^>]*>", "", text)),
        4096,
    ),
}


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def prompts(text: str) -> list[Prompt]:
    """Everything that shows something, with this text in every place."""
    person = MONA.model_copy(update={"name": text})
    choices: tuple[Choice, ...] = ("yes", "always", "turn", "no", "stop")
    confirm = a_confirmation(
        a_task(1), tool=text, text=text, args={text: [text] * 3}, choices=choices, requester=person
    )
    options = tuple(f"{number} {text}"[:300] for number in range(25))
    asks = [
        an_ask(Question(question=text, detail=text, options=options, multi_select=several), requester=person, text=text)
        for several in (True, False)
    ]
    free = an_ask(Question(question=text, detail=text), requester=person, text=text)
    decided = confirm.with_(status="approved", choice="yes", by=person, decided_at=5)
    return [prompt_of(confirm), *(prompt_of(ask) for ask in asks), prompt_of(free), closed_prompt(decided)]


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_whatever_is_asked_is_one_message_that_fits(platform: str, text: str) -> None:
    compose, read, most = PLATFORMS[platform]
    for prompt in prompts(text):
        part = compose_prompt(prompt, compose)
        assert isinstance(part, Part)
        assert part.text.strip()
        assert units(read(part.text)) <= most
        assert part.files == (), "no markup in it brings a file along"


@settings(max_examples=150, deadline=None)
@given(text=st.text(alphabet=st.sampled_from("ab `*_~|<>@#[]()\\\n\"'&:/.-1\u202e👍\u200d"), max_size=2500))
def test_whatever_is_asked_fits_also_where_nobody_thought_of_it(text: str) -> None:
    for prompt in prompts(text):
        for compose, read, most in PLATFORMS.values():
            assert units(read(compose_prompt(prompt, compose).text)) <= most


@pytest.mark.parametrize("text", [HOSTILE["everyone"], HOSTILE["markup"], HOSTILE["masked link"]])
def test_nothing_in_it_becomes_a_mention_or_a_masked_link(text: str) -> None:
    for prompt in prompts(text):
        on_discord = compose_prompt(prompt, PLATFORMS["discord"][0]).text
        prose = re.sub(r"```.*?```|`[^`\n]*`", "", on_discord, flags=re.DOTALL)
        assert not re.search(r"(?<!\\)<(?:@|#|:)", prose)
        assert not re.search(r"(?<!\\)\[[^\]]*(?<!\\)\]\(", prose)
        on_telegram = compose_prompt(prompt, PLATFORMS["telegram"][0]).text
        assert "<a " not in on_telegram
        assert set(re.findall(r"</?([a-z-]+)", on_telegram)) <= {"b", "i", "code", "pre"}


@pytest.mark.parametrize("text", [HOSTILE["fences"], HOSTILE["backticks"], "```", "a```b", "``", "\n```\n@everyone"])
def test_no_block_of_code_is_broken_out_of(text: str) -> None:
    prompt = prompt_of(a_confirmation(a_task(1), args={"command": text}))
    on_discord = compose_prompt(prompt, PLATFORMS["discord"][0]).text
    assert on_discord.count("```") == 2
    assert on_discord.index("```json\n") < on_discord.index("command") < on_discord.rindex("```")
    on_telegram = compose_prompt(prompt, PLATFORMS["telegram"][0]).text
    assert on_telegram.count("<pre>") == on_telegram.count("</pre>") == 1


@pytest.mark.parametrize("platform", PLATFORMS)
def test_what_is_approved_reads_as_what_it_is(platform: str) -> None:
    hidden = prompt_of(
        a_confirmation(a_task(1), tool="ls\u202e", args={"path": "a\u202egpj.exe\u200b"}, text="\u2067x")
    )
    text = compose_prompt(hidden, PLATFORMS[platform][0]).text
    assert not set(text) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200f")
    assert "\\u202e" in text, "in what is approved it is spelled out"


@pytest.mark.parametrize("platform", PLATFORMS)
def test_all_of_a_small_request_is_shown(platform: str) -> None:
    compose, read, _ = PLATFORMS[platform]
    record = a_confirmation(a_task(1), text="Tidy up?", args={"path": "notes.md"}, requester=MONA)
    text = read(compose_prompt(prompt_of(record), compose).text)
    for part in ("write_file", "write\\_file"):
        if part in text:
            break
    else:
        pytest.fail(text)
    assert all(part in text for part in ("Tidy up?", '"path": "notes.md"', "Mona can answer, until"))


@pytest.mark.parametrize("platform", PLATFORMS)
def test_twenty_five_long_options_leave_something_of_each_in_the_message(platform: str) -> None:
    compose, read, most = PLATFORMS[platform]
    options = tuple(f"{number}: " + "é👍x " * 100 for number in range(100, 125))
    text = read(compose_prompt(prompt_of(an_ask(Question(question="Which?", options=options))), compose).text)
    assert units(text) <= most
    assert "Which?" in text
    assert all(f"{number}:" in text for number in range(100, 125))


def test_a_label_fits_a_button_and_what_is_cut_from_it_stands_in_the_message() -> None:
    compose = PLATFORMS["telegram"][0]
    for option in ("x" * 300, "👍" * 60, "a  b\n" * 40):
        prompt = prompt_of(an_ask(Question(question="Which?", options=(option, "short"))))
        label = prompt.labels[0]
        assert units(label) <= MOST_LABEL
        assert label.endswith(("…", "(cut)"))
        assert html.escape(option.strip()[:80], quote=False) in compose_prompt(prompt, compose).text
    assert prompt_of(an_ask(Question(question="?", options=("", " \n")))).labels == ("…", "…")


def test_what_a_control_says_is_read_back_and_fits_everywhere() -> None:
    prompt = prompt_of(an_ask(Question(question="?", options=("a",) * 25), task=a_task(1)))
    for option in (*range(25), "done", "m", "f"):
        says = replace(prompt, question=24).control(option)
        assert len(says.encode()) <= 64
        found = control(says)
        assert found is not None
        assert (found.task, found.question, found.option) == (a_task(1), 24, str(option))


PACKED = "AAAAAAAAQACAAAAAAAAAAQ"
FOREIGN = {
    "nothing": "",
    "another program's": "confirm:yes",
    "another version": f"ik2:{PACKED}:0:1",
    "no task": "ik1::0:1",
    "a short task": f"ik1:{PACKED[1:]}:0:1",
    "a long task": f"ik1:{PACKED}A:0:1",
    "no option": f"ik1:{PACKED}:0:",
    "a long option": f"ik1:{PACKED}:0:123456789",
    "a question that is no number": f"ik1:{PACKED}:x:1",
    "a question before the first": f"ik1:{PACKED}:-1:1",
    "digits of another script": f"ik1:{PACKED}:\u0663:1",
    "one more member": f"ik1:{PACKED}:0:1:2",
    "a line behind": f"ik1:{PACKED}:0:1\n",
    "a space before": f" ik1:{PACKED}:0:1",
    "capitals": f"IK1:{PACKED}:0:1",
    "padding": f"ik1:{PACKED[:20]}==:0:1",
}


@pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN.keys())
def test_what_is_no_control_of_ours_is_read_as_none(text: str) -> None:
    assert control(f"ik1:{PACKED}:0:1") is not None
    assert control(text) is None


@given(text=st.from_regex(r"ik1:[A-Za-z0-9_-]{22}:[0-9]{1,4}:[a-z0-9]{1,8}", fullmatch=True) | st.text(max_size=80))
def test_reading_a_control_trips_over_nothing_and_what_is_read_is_written_alike(text: str) -> None:
    found = control(text)
    assert (found is None) != text.startswith("ik1:")
    assert found is None or (control(str(found)) == found and len(str(found).encode()) <= 64)


@given(text=st.text(max_size=60), most=st.integers(8, 70))
def test_a_cut_keeps_the_limit_and_whole_characters(text: str, most: int) -> None:
    shown = cut(text, most)
    assert units(shown) <= most
    assert shown == text or shown.endswith(("…", "… (cut)"))
    shown.encode()


def test_a_time_that_no_calendar_holds_is_still_shown() -> None:
    assert moment(10**18) == moment(253_402_300_799_000) == "9999-12-31 23:59 UTC"
