"""What our API takes from whoever asks people or answers for them (contract sections 7 and 9)."""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Final, Literal, Self, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StrictBool,
    model_validator,
)

from bots.web.sessions import PlatformId, Text
from core.confirmations import record
from core.confirmations.asking import Request
from core.confirmations.record import CHOICES, Approvers, Choice
from core.ids import SessionId, ThreadId, TurnId, is_uuid

MOST_TOOL: Final = 200
MOST_QUESTIONS: Final = 25
MOST_OPTIONS: Final = 25
MOST_SECONDS: Final = 365 * 24 * 3600
DEEPEST: Final = 100
"""Arrays and objects in each other; more of them nobody means."""


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("there is nothing in it")
    return text


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("the name of a tool has no line breaks and nothing that cannot be seen")
    return text


def _uuid(text: str) -> str:
    if not is_uuid(text):
        raise ValueError("expected a UUID in lower case")
    return text


def _in_order(choices: Sequence[Choice]) -> tuple[Choice, ...]:
    if len(set(choices)) != len(choices):
        raise ValueError("a choice stands in it twice")
    return tuple(choice for choice in CHOICES if choice in choices)


def _distinct(options: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(options)) != len(options):
        raise ValueError("options are distinct, so that an answer names one")
    return options


def _json(value: object) -> object:
    """Python's parser takes more for JSON than JSON is, and halves of characters. Walks without recursion."""
    level: list[object] = [value]
    for _ in range(DEEPEST):
        for one in level:
            if isinstance(one, float) and not math.isfinite(one):
                raise ValueError("NaN and Infinity are no JSON")
            if isinstance(one, str) and any("\ud800" <= character <= "\udfff" for character in one):
                raise ValueError("a surrogate stands alone; send whole Unicode characters")
        level = [part for one in level for part in _parts(one)]
        if not level:
            return value
    raise ValueError(f"nested deeper than {DEEPEST}")


def _parts(value: object) -> Iterator[object]:
    if isinstance(value, list):
        yield from cast("list[object]", value)
    elif isinstance(value, dict):
        members = cast("dict[object, object]", value)
        yield from members
        yield from members.values()


_UNIQUE: Final[dict[str, JsonValue]] = {"uniqueItems": True}
NotBlank = Annotated[Text, AfterValidator(_not_blank), Field(json_schema_extra={"minLength": 1, "pattern": r"\S"})]
Tool = Annotated[Text, Field(min_length=1, max_length=MOST_TOOL), AfterValidator(_printable)]
AnyJson = Annotated[JsonValue, BeforeValidator(_json)]
Choices = Annotated[tuple[Choice, ...], Field(min_length=1, json_schema_extra=_UNIQUE), AfterValidator(_in_order)]
Options = Annotated[
    tuple[NotBlank, ...], Field(max_length=MOST_OPTIONS, json_schema_extra=_UNIQUE), AfterValidator(_distinct)
]
Seconds = Annotated[float, Field(strict=True, gt=0, le=MOST_SECONDS, allow_inf_nan=False)]
Uuid = Annotated[str, AfterValidator(_uuid)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Asked(_Body):
    """What the two ways of asking have in common."""

    text: Text | None = Field(None, description="shown above what is asked")
    approvers: Approvers | None = Field(None, description="default: the requester where one is known, else the admins")
    requester: PlatformId | None = Field(None, description="user id of the chat's platform; default: who made the turn")
    threadId: PlatformId | None = Field(None, description="Telegram forum topic")  # noqa: N815 - its name on the wire
    timeout: Seconds | None = Field(None, description="seconds until it counts as denied; ISHIKI_CONFIRM_TIMEOUT")
    turnId: Uuid | None = Field(None, description="default: the session's running turn")  # noqa: N815 - as above

    def canonical(self) -> bytes:
        """The same for two bodies that ask the same."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True).encode()


class Confirm(_Asked):
    """Ask for leave to use a tool."""

    tool: Tool
    args: AnyJson = None
    choices: Choices | None = Field(None, description="default: yes and no; shown in the order yes, always, turn, …")

    def request(self, session: SessionId) -> Request:
        choices: tuple[Choice, ...] = ("yes", "no") if self.choices is None else self.choices
        return _request(self, session, "confirm", tool=self.tool, args=self.args, choices=choices)


class AskedQuestion(_Body):
    """One question; without options it is answered in the person's own words."""

    question: NotBlank
    detail: Text | None = None
    options: Options | None = None
    multi_select: StrictBool = False

    @model_validator(mode="after")
    def _several_of_what(self) -> Self:
        if self.multi_select and not self.options:
            raise ValueError("multi_select needs options to select from")
        return self


class Ask(_Asked):
    """Ask questions, one after the other."""

    questions: tuple[AskedQuestion, ...] = Field(min_length=1, max_length=MOST_QUESTIONS)

    def request(self, session: SessionId) -> Request:
        questions = tuple(
            record.Question(
                question=asked.question,
                detail=asked.detail,
                options=asked.options or (),
                multi_select=asked.multi_select,
            )
            for asked in self.questions
        )
        return _request(self, session, "ask", questions=questions)


class GivenAnswer(_Body):
    """One choice or free text: a string; several choices: a list."""

    question: Text
    answer: Text | tuple[Text, ...]


class Decision(_Body):
    """Either a choice or all the answers; the choice ``stop`` also ends questions."""

    choice: Choice | None = None
    answers: tuple[GivenAnswer, ...] | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.choice is None) == (self.answers is None):
            raise ValueError("give either choice or answers")
        return self


def _request(
    asked: _Asked,
    session: SessionId,
    kind: Literal["confirm", "ask"],
    *,
    tool: str | None = None,
    args: JsonValue = None,
    choices: tuple[Choice, ...] = (),
    questions: tuple[record.Question, ...] = (),
) -> Request:
    return Request(
        session=session,
        kind=kind,
        tool=tool,
        args=args,
        text=asked.text,
        choices=choices,
        questions=questions,
        approvers=asked.approvers,
        requester=asked.requester,
        thread=None if asked.threadId is None else ThreadId(asked.threadId),
        timeout=asked.timeout,
        turn=None if asked.turnId is None else TurnId(asked.turnId),
    )
