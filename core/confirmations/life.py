"""The life of one confirmation or question (sessions.md 4). Pure: what a record becomes, or why it does not."""

from collections.abc import Sequence, Set
from dataclasses import dataclass

from core.confirmations.record import OUTCOMES, Answer, Choice, Person, Question, Record, Shown, Trouble
from core.errors import AlreadyDecided, InvalidAnswer, NotAllowed
from core.ids import MessageId, SessionId, channel_of, platform_of


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


def question_closed(record: Record, now: int) -> Record:
    """The record after the prompt of an answered question says so, before the next one is asked."""
    if record.prompt is None or record.prompt.question == record.current:
        return record
    return record.with_(prompt=record.prompt.model_copy(update={"closed": True}))


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
