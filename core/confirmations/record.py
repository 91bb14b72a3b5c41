"""The life of one confirmation or question (sessions.md 1.6 and 4). Pure: what a record becomes, or why it does not."""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, JsonValue
from pydantic.alias_generators import to_camel

from core.errors import AlreadyDecided, InvalidAnswer, NotAllowed
from core.ids import EntryId, MessageId, SessionId, TaskHash, ThreadId, TurnId, channel_of, platform_of

Kind = Literal["confirm", "ask"]
Status = Literal["open", "approved", "denied", "answered", "stopped", "expired"]
Choice = Literal["yes", "always", "turn", "no", "stop"]
Approvers = Literal["requester", "admins", "anyone"]

CHOICES: Final[tuple[Choice, ...]] = get_args(Choice)
"""In the order in which they are shown."""
OUTCOMES: Final[dict[Choice, Status]] = {
    "yes": "approved",
    "always": "approved",
    "turn": "approved",
    "no": "denied",
    "stop": "stopped",
}
OPERATORS: Final = frozenset({"cli", "http"})
"""The ``platform`` of whoever answers from the terminal or over our API, with the operator's right."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _CamelPart(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True
    )


def _whole(text: str) -> str:
    """Half of a surrogate pair, which no file can hold, becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


Text = Annotated[str, AfterValidator(_whole)]


class Person(_Part):
    """Who somebody is: the platform and the numeric id count, never the name."""

    platform: str
    id: str
    name: Text | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.platform, self.id

    @property
    def is_operator(self) -> bool:
        return self.platform in OPERATORS


class Cause(_CamelPart):
    """The message that made the turn; the prompt quotes it, and its retraction withdraws the request."""

    entry_id: EntryId
    message_id: MessageId | None = None


class Question(_Part):
    """One question: with ``options`` a choice of one, or with ``multi_select`` of several; else free text."""

    question: str
    detail: str | None = None
    options: tuple[str, ...] = ()
    multi_select: bool = False


class Answer(_Part):
    """One choice: a string; several: a list; free text: a string."""

    question: str
    answer: Text | tuple[Text, ...]


class Shown(_CamelPart):
    """Where a prompt stands. ``question`` is the index of what it shows, ``ticked`` what is ticked in it so far."""

    platform: str
    channel_id: str
    thread_id: ThreadId | None = None
    message_ids: tuple[MessageId, ...]
    question: int
    posted_at: int
    ticked: tuple[int, ...] = ()


class Trouble(_Part):
    """Why a prompt could not be shown."""

    message: str
    at: int


class Record(BaseModel):
    """One open or decided confirmation, as in its file. Times are in Unix milliseconds.

    Beyond sessions.md 1.6: ``args_hash`` is the hash of the whole arguments, ``file`` an ``artifact://`` URL with all
    that was too long to show, ``replies`` the ids of messages that were taken as answers, ``withdrawn`` says that the
    cause was retracted. Members of others are kept.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    task_hash: TaskHash
    session_id: SessionId
    kind: Kind
    status: Status
    origin: SessionId
    deliver_to: SessionId
    thread_id: ThreadId | None = None
    turn_id: TurnId | None = None
    cause: Cause | None = None
    tool: str | None = None
    args: JsonValue = None
    args_hash: str | None = None
    text: str | None = None
    file: str | None = None
    choices: tuple[Choice, ...] = ()
    questions: tuple[Question, ...] = ()
    answers: tuple[Answer, ...] = ()
    approvers: Approvers
    requester: Person | None = None
    prompt: Shown | None = None
    replies: tuple[MessageId, ...] = ()
    created_at: int
    expires_at: int
    choice: Choice | None = None
    by: Person | None = None
    decided_at: int | None = None
    withdrawn: bool = False
    resolved_at: int | None = None
    closed_at: int | None = None
    error: Trouble | None = None

    @property
    def is_open(self) -> bool:
        return self.status == "open"

    @property
    def current(self) -> int:
        """The index of the question that is next; 0 for a confirmation."""
        return len(self.answers)

    def with_(self, **changes: Any) -> "Record":  # noqa: ANN401 - as pydantic's own
        return self.model_copy(update=changes)

    def document(self) -> dict[str, Any]:
        """The record as JSON values; empty members are left out."""
        return self.model_dump(mode="json", exclude_defaults=True)


@dataclass(frozen=True, slots=True)
class Given:
    """An answer as a person gave it in a chat.

    ``option`` is the number of a button, which of several that may be chosen is only marked or unmarked until ``done``
    takes what is marked; ``options`` are those of a menu, ``text`` is free text. ``pressed`` is the message that
    was used, ``reply`` the one in which a free text came.
    """

    question: int = 0
    option: int | None = None
    options: tuple[int, ...] | None = None
    text: str | None = None
    done: bool = False
    pressed: MessageId | None = None
    reply: MessageId | None = None


def may_answer(record: Record, person: Person, admins: Set[tuple[str, str]]) -> bool:
    """Whether this person decides (sessions.md 4.4). Only people are asked about: never bots, webhooks or channels."""
    if person.is_operator or person.key in admins:
        return True
    match record.approvers:
        case "anyone":
            return True
        case "requester":
            return record.requester is not None and record.requester.key == person.key
        case "admins":
            return False


def check_open(record: Record, now: int) -> None:
    """Raises `AlreadyDecided`, with a sentence for whoever wanted to answer."""
    if record.is_open and now < record.expires_at:
        return
    if record.is_open or record.status == "expired":
        raise AlreadyDecided("that has expired, which counts as a no")
    if record.withdrawn:
        raise AlreadyDecided("that was withdrawn: the message that it came from was taken back")
    who = f" by {record.by.name or record.by.id}" if record.by is not None else ""
    raise AlreadyDecided(f"that is decided already: {record.status}{who}")


def check_person(record: Record, person: Person, admins: Set[tuple[str, str]]) -> None:
    """Raises `NotAllowed`, with a sentence for whoever wanted to answer."""
    if may_answer(record, person, admins):
        return
    if record.approvers == "requester" and record.requester is not None:
        raise NotAllowed(f"only {record.requester.name or 'the person who asked for it'} or an admin can answer this")
    raise NotAllowed("only an admin can answer this")


def chosen(record: Record, choice: Choice, by: Person, now: int) -> Record:
    """The record with a choice made. Raises `AlreadyDecided` and `InvalidAnswer`."""
    check_open(record, now)
    if choice not in record.choices and not (choice == "stop" and record.kind == "ask"):
        raise InvalidAnswer(_wanted(record))
    return record.with_(status=OUTCOMES[choice], choice=choice, by=by, decided_at=now)


def answered(record: Record, answers: Sequence[Answer], by: Person, now: int) -> Record:
    """The record with all its questions answered. Raises `AlreadyDecided` and `InvalidAnswer`."""
    check_open(record, now)
    if record.kind != "ask":
        raise InvalidAnswer(_wanted(record))
    if [answer.question for answer in answers] != [question.question for question in record.questions]:
        raise InvalidAnswer("answers has one {question, answer} for each question, in their order and their words")
    for question, answer in zip(record.questions, answers, strict=True):
        _check_answer(question, answer.answer)
    return record.with_(status="answered", answers=tuple(_tidied(one) for one in answers), by=by, decided_at=now)


def given(record: Record, what: Given, by: Person, now: int) -> Record:
    """The record after an answer in the chat: decided, one question further, or with a tick more or less.

    Raises `AlreadyDecided` and `InvalidAnswer`.
    """
    check_open(record, now)
    record = _pressed(record, what, now)
    if record.kind == "confirm":
        if what.question != 0 or what.option is None or not 0 <= what.option < len(record.choices):
            raise InvalidAnswer("that is no choice here")
        return chosen(record, record.choices[what.option], by, now)
    if what.question > record.current:
        raise InvalidAnswer("that question is not asked yet")
    if what.question < record.current:
        raise AlreadyDecided("that question is answered already")
    question = record.questions[record.current]
    if question.multi_select and what.option is not None:
        return _ticked(record, question, what.option)
    answer = Answer(question=question.question, answer=_value(record, question, what))
    record = record.with_(answers=(*record.answers, answer), replies=(*record.replies, *_ids(what.reply)))
    if record.current == len(record.questions):
        return record.with_(status="answered", by=by, decided_at=now)
    return record


def expired(record: Record, now: int) -> Record:
    """The record if its time is over; else as it is."""
    if not record.is_open or now < record.expires_at:
        return record
    return record.with_(status="expired", decided_at=now)


def withdrawn(record: Record, now: int) -> Record:
    """The record after the message that caused it was retracted."""
    return record.with_(status="denied", withdrawn=True, decided_at=now) if record.is_open else record


def stopped(record: Record, by: Person | None, now: int) -> Record:
    """The record after ``stop`` was chosen for another one of its turn."""
    return record.with_(status="stopped", choice="stop", by=by, decided_at=now) if record.is_open else record


def shown_in(record: Record, now: int, *, session: SessionId, shown: Shown) -> Record:
    """The record after its prompt was posted; a prompt in a chat that it left meanwhile is not its own any more."""
    if record.deliver_to != session:
        return record
    before = record.prompt
    if before is not None and before.question == shown.question:
        others = tuple(message for message in before.message_ids if message not in shown.message_ids)
        shown = shown.model_copy(update={"ticked": before.ticked, "message_ids": (*others, *shown.message_ids)})
    return record.with_(prompt=shown, error=None)


def troubled(record: Record, now: int, *, trouble: Trouble) -> Record:
    """The record after its prompt could not be shown."""
    return record.with_(error=trouble)


def closed(record: Record, now: int) -> Record:
    """The record after its prompt shows the outcome, or cannot any more."""
    return record.with_(closed_at=now)


def resolved(record: Record, now: int) -> Record:
    """The record after the runtime took the decision."""
    return record.with_(resolved_at=now)


def moved(record: Record, now: int, *, old: SessionId, new: SessionId) -> Record:
    """The record after its chat goes on as another one: asked there anew."""
    if not record.is_open or record.deliver_to != old:
        return record
    return record.with_(deliver_to=new, prompt=None, thread_id=None, error=None)


def is_free_text(record: Record) -> bool:
    """Whether what is asked now is answered in the person's own words."""
    return record.kind == "ask" and record.is_open and not record.questions[record.current].options


def _pressed(record: Record, what: Given, now: int) -> Record:
    """A prompt that a crash left unnoted is known by its first press, and closed with the other."""
    message, shown = what.pressed, record.prompt
    if message is None or (shown is not None and message in shown.message_ids):
        return record
    if shown is not None:
        return record.with_(prompt=shown.model_copy(update={"message_ids": (*shown.message_ids, message)}))
    platform = platform_of(record.deliver_to)
    if platform is None:
        return record
    place = Shown(
        platform=platform,
        channel_id=channel_of(record.deliver_to),
        thread_id=record.thread_id,
        message_ids=(message,),
        question=what.question,
        posted_at=now,
    )
    return record.with_(prompt=place)


def _ticked(record: Record, question: Question, option: int) -> Record:
    if record.prompt is None or not 0 <= option < len(question.options):
        raise InvalidAnswer("that is no option here")
    ticked = tuple(sorted(set(record.prompt.ticked) ^ {option}))
    return record.with_(prompt=record.prompt.model_copy(update={"ticked": ticked}))


def _value(record: Record, question: Question, what: Given) -> str | tuple[str, ...]:
    if not question.options:
        if what.text is None or not what.text.strip():
            raise InvalidAnswer("an answer of your own words is wanted")
        return what.text.rstrip("\n")
    numbers = what.options
    if what.done:
        numbers = record.prompt.ticked if record.prompt is not None else ()
    elif what.option is not None:
        numbers = (what.option,)
    if numbers is None or len(numbers) == 0:
        raise InvalidAnswer("choose at least one first")
    if len(set(numbers)) != len(numbers) or not all(0 <= number < len(question.options) for number in numbers):
        raise InvalidAnswer("that is no option here")
    if question.multi_select:
        return tuple(question.options[number] for number in sorted(numbers))
    if len(numbers) > 1:
        raise InvalidAnswer("only one can be chosen here")
    return question.options[numbers[0]]


def _tidied(answer: Answer) -> Answer:
    """A text without the line break that a form or a terminal leaves at its end."""
    if not isinstance(answer.answer, str):
        return answer
    return Answer(question=answer.question, answer=answer.answer.rstrip("\n"))


def _check_answer(question: Question, answer: str | tuple[str, ...]) -> None:
    if question.multi_select and question.options:
        fits = isinstance(answer, tuple) and bool(answer) and len(set(answer)) == len(answer)
        wanted = "a list of some of its options"
    else:
        fits = isinstance(answer, str) and bool(answer.strip())
        wanted = "one of its options" if question.options else "a text that is not blank"
    chosen_ones = answer if isinstance(answer, tuple) else (answer,)
    if not fits or (question.options and not set(chosen_ones) <= set(question.options)):
        raise InvalidAnswer(f"each answer is what its question takes; wanted here is {wanted}")


def _wanted(record: Record) -> str:
    if record.kind == "ask":
        return "that is a question: give answers, or the choice stop"
    return f"the choice is one of {', '.join(record.choices)}"


def _ids(message: MessageId | None) -> tuple[MessageId, ...]:
    return () if message is None else (message,)
