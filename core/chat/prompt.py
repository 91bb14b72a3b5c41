"""What is shown to people who are asked something, in no platform's language yet (sessions.md 4.7)."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from core.chat.split import utf16_length
from core.content import Element, Node, render
from core.ids import Control, TaskHash

Answering = Literal["buttons", "one", "several", "text"]
"""How it is answered: by a button each, by choosing one or several options, in one's own words."""

MOST_SHOWN: Final = 1024
MOST_LABEL: Final = 80
MOST_OPTION: Final = MOST_SHOWN // 8
MOST_SURE: Final = 900
"""UTF-16 units that fit into a prompt of any platform beside its title and note."""
_CUT: Final = "… (cut)"
_MISLEADING: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)
"""Characters that would make what is approved read differently from what it is; not the joiner of emoji."""
_FENCE: Final = re.compile("`{3,}")
"""What would end a block of code on some platform; in JSON it can only stand in a string."""
P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question as it stands in a chat.

    ``title`` says what this is, and ``tool`` for which tool; ``text`` and ``code`` are what is asked, ``options`` are
    the labels in order and ``ticked`` those that are marked, ``note`` says who answers and until when. With an
    ``outcome`` it is over: nothing can be pressed any more.
    """

    task: TaskHash
    question: int
    answering: Answering
    title: str
    tool: str = ""
    text: str = ""
    code: str = ""
    options: tuple[str, ...] = ()
    ticked: tuple[int, ...] = ()
    note: str = ""
    outcome: str = ""

    def control(self, option: int | str) -> str:
        """What the control of that option says when it is used."""
        return str(Control(self.task, self.question, str(option)))

    @property
    def labels(self) -> tuple[str, ...]:
        """The options, each cut to what a button shows."""
        return tuple(cut(" ".join(_honest(option).split()) or "…", MOST_LABEL) for option in self.options)


def shows_all(texts: Sequence[str], code: str, options: Sequence[str]) -> bool:
    """Whether a prompt shows all of this, whatever its platform has to escape. Errs towards no."""
    long = [option for option in options if utf16_length(_honest(option)) > MOST_LABEL]
    words = sum(2 * utf16_length(_honest(text)) for text in (*texts, *long))
    spelled = utf16_length(_spelled_out(code))
    return words + spelled < MOST_SURE and all(utf16_length(option) < MOST_OPTION for option in long)


def compose_prompt(prompt: Prompt, compose: Callable[[str], Sequence[P]]) -> P:
    """The prompt as one message of a platform, which ``compose`` makes of element markup: shortened until it is one."""
    most = MOST_SHOWN
    while True:
        parts = compose(render(_nodes(prompt, most)))
        if len(parts) == 1 or most < 16:
            return parts[0]
        most = most * 3 // 4


def cut(text: str, most: int) -> str:
    """At most so many UTF-16 units, the cut marked."""
    units = text.encode("utf-16-le", "surrogatepass")
    if len(units) <= 2 * most:
        return text
    mark = _CUT if most > 4 * len(_CUT) else "…"
    return units[: 2 * (most - len(mark))].decode("utf-16-le", "ignore") + mark


def _nodes(prompt: Prompt, most: int) -> list[Node]:
    title: list[Node] = [Element("b", {}, (cut(_honest(prompt.title), most),))]
    if prompt.tool:
        title += [" ", Element("code", {}, (cut(_honest(prompt.tool), most // 4),))]
    nodes: list[Node] = [_paragraph(*title)]
    if prompt.text:
        nodes.append(_paragraph(cut(_honest(prompt.text), most)))
    if prompt.code:
        nodes.append(Element("code-block", {"lang": "json"}, (cut(_spelled_out(prompt.code), most),)))
    long = [(number, option) for number, option in enumerate(prompt.options, 1) if cut(option, MOST_LABEL) != option]
    nodes += [_paragraph(f"{number}. {cut(_honest(option), most // 4)}") for number, option in long]
    if prompt.outcome:
        nodes.append(_paragraph(cut(_honest(prompt.outcome), most)))
    elif prompt.note:
        nodes.append(_paragraph(Element("i", {}, (cut(_honest(prompt.note), most),))))
    return nodes


def _spelled_out(code: str) -> str:
    """JSON in which every character can be seen, and none ends the block that it stands in."""
    return _MISLEADING.sub(_escaped, _FENCE.sub(_escaped, code))


def _escaped(found: re.Match[str]) -> str:
    """As it may stand in a string of JSON."""
    return "".join(f"\\u{ord(character):04x}" for character in found[0])


def _honest(text: str) -> str:
    return _MISLEADING.sub("", text)


def _paragraph(*nodes: Node) -> Element:
    return Element("p", {}, nodes)
