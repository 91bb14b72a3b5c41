"""The life of one record: who may answer, what is an answer, and that it is decided once (sessions.md 4.3 to 4.6)."""

from typing import Any

import pytest

from core.confirmations import life
from core.confirmations.life import Given
from core.confirmations.record import CHOICES, Answer, Approvers, Choice, Person, Question, Record, Shown
from core.errors import AlreadyDecided, InvalidAnswer, NotAllowed
from core.ids import MessageId, discord_session
from tests.builders import ADMIN, ADMINS, MONA, OPERATOR, PIET, SESSION, a_confirmation, an_ask

NAMESAKE = Person(platform="discord", id="13", name="Mona")
ELSEWHERE = Person(platform="telegram", id="11", name="Mona")

COLOUR = Question(question="Which colour?", options=("red", "green", "blue"))
FRUIT = Question(question="Which fruit?", options=("pear", "fig", "plum"), multi_select=True)
WORDS = Question(question="Why?", detail="In your own words.")


def shown(*messages: str, question: int = 0, ticked: tuple[int, ...] = ()) -> Shown:
    return Shown(
        platform="discord",
        channel_id="900000000000000002",
        message_ids=tuple(MessageId(message) for message in messages or ("7001",)),
        question=question,
        posted_at=2_000,
        ticked=ticked,
    )


@pytest.mark.parametrize(
    ("choice", "status"),
    [("yes", "approved"), ("always", "approved"), ("turn", "approved"), ("no", "denied"), ("stop", "stopped")],
)
def test_each_choice_has_its_status_and_names_who_and_when(choice: Choice, status: str) -> None:
    decided = life.chosen(a_confirmation(choices=CHOICES), choice, MONA, 5_000)
    assert (decided.status, decided.choice, decided.by, decided.decided_at) == (status, choice, MONA, 5_000)


@pytest.mark.parametrize("choice", ["always", "turn", "stop"])
def test_a_choice_that_was_not_offered_is_none(choice: Choice) -> None:
    with pytest.raises(InvalidAnswer):
        life.chosen(a_confirmation(choices=("yes", "no")), choice, OPERATOR, 5_000)


@pytest.mark.parametrize("option", [-1, 2, 25, None])
def test_a_button_that_is_not_there_is_none(option: int | None) -> None:
    with pytest.raises(InvalidAnswer):
        life.given(a_confirmation(), Given(option=option), MONA, 5_000)


def test_a_question_that_is_not_asked_has_no_answer() -> None:
    """What a button says can be made up by whoever may press it."""
    for record in (a_confirmation(), an_ask(Question(question="One?"), Question(question="Two?"))):
        with pytest.raises(InvalidAnswer):
            life.given(record, Given(question=1, option=0, text="two"), MONA, 2_000_000_000_000)


@pytest.mark.parametrize(
    ("approvers", "person", "may"),
    [
        ("requester", MONA, True),
        ("requester", PIET, False),
        ("requester", NAMESAKE, False),
        ("requester", ELSEWHERE, False),
        ("requester", ADMIN, True),
        ("requester", OPERATOR, True),
        ("admins", MONA, False),
        ("admins", ADMIN, True),
        ("admins", Person(platform="telegram", id="99"), False),
        ("admins", OPERATOR, True),
        ("anyone", PIET, True),
        ("anyone", NAMESAKE, True),
    ],
)
def test_who_may_answer_is_told_by_platform_and_number(approvers: Approvers, person: Person, may: bool) -> None:
    record = a_confirmation(approvers=approvers)
    assert life.may_answer(record, person, ADMINS) is may
    if not may:
        with pytest.raises(NotAllowed):
            life.check_person(record, person, ADMINS)


def test_where_no_requester_is_known_none_is_it() -> None:
    assert not life.may_answer(a_confirmation(requester=None), MONA, ADMINS)


def test_the_clock_runs_from_the_request_and_the_last_moment_is_too_late() -> None:
    record = a_confirmation(expires_at=10_000)
    assert life.chosen(record, "yes", MONA, 9_999).status == "approved"
    with pytest.raises(AlreadyDecided, match="expired"):
        life.chosen(record, "yes", MONA, 10_000)
    assert life.expired(record, 9_999) is record
    gone = life.expired(record, 10_000)
    assert (gone.status, gone.choice, gone.by, gone.decided_at) == ("expired", None, None, 10_000)


def test_a_decision_says_who_it_was_to_whoever_comes_late() -> None:
    decided = life.chosen(a_confirmation(), "no", MONA, 5_000)
    with pytest.raises(AlreadyDecided, match="denied by Mona"):
        life.chosen(decided, "yes", PIET, 5_001)


def test_a_withdrawn_one_is_denied_and_says_why() -> None:
    gone = life.withdrawn(a_confirmation(), 5_000)
    assert (gone.status, gone.withdrawn, gone.by) == ("denied", True, None)
    with pytest.raises(AlreadyDecided, match="withdrawn"):
        life.chosen(gone, "yes", MONA, 5_001)


def test_what_is_decided_is_left_alone_by_everything_that_comes_later() -> None:
    decided = life.chosen(a_confirmation(), "yes", MONA, 5_000)
    assert life.expired(decided, 10**16) is decided
    assert life.withdrawn(decided, 6_000) is decided
    assert life.stopped(decided, ADMIN, 6_000) is decided
    assert life.moved(decided, 6_000, old=SESSION, new=discord_session("1")) is decided


def test_questions_are_answered_one_after_the_other_each_in_its_own_shape() -> None:
    record = an_ask(COLOUR, FRUIT, WORDS, prompt=shown())
    record = life.given(record, Given(question=0, option=1), MONA, 5_000)
    assert (record.status, record.current) == ("open", 1)
    record = record.with_(prompt=shown(question=1))
    record = life.given(record, Given(question=1, options=(2, 0)), MONA, 5_001)
    record = record.with_(prompt=shown(question=2))
    record = life.given(record, Given(question=2, text=" so \n there\n\n", reply=MessageId("9")), PIET, 5_002)
    assert record.answers == (
        Answer(question="Which colour?", answer="green"),
        Answer(question="Which fruit?", answer=("pear", "plum")),
        Answer(question="Why?", answer=" so \n there"),
    )
    assert (record.status, record.by, record.decided_at, record.replies) == ("answered", PIET, 5_002, ("9",))


def test_an_answer_to_an_earlier_question_changes_nothing() -> None:
    record = life.given(an_ask(COLOUR, FRUIT), Given(question=0, option=1), MONA, 5_000)
    with pytest.raises(AlreadyDecided):
        life.given(record, Given(question=0, option=2), MONA, 5_001)


@pytest.mark.parametrize(
    ("question", "what"),
    [
        (COLOUR, Given(option=3)),
        (COLOUR, Given(option=-1)),
        (COLOUR, Given(options=(0, 1))),
        (COLOUR, Given(options=())),
        (COLOUR, Given(text="red")),
        (FRUIT, Given(options=())),
        (FRUIT, Given(options=(0, 0))),
        (FRUIT, Given(options=(0, 7))),
        (FRUIT, Given(options=(-1,))),
        (FRUIT, Given(done=True)),
        (FRUIT, Given(option=3)),
        (FRUIT, Given(option=-1)),
        (WORDS, Given(text="  \n")),
        (WORDS, Given(option=0)),
        (WORDS, Given(done=True)),
    ],
)
def test_what_does_not_fit_its_question_is_no_answer(question: Question, what: Given) -> None:
    with pytest.raises(InvalidAnswer):
        life.given(an_ask(question, prompt=shown()), what, MONA, 5_000)


def test_ticks_come_and_go_and_done_takes_what_is_ticked() -> None:
    record = an_ask(FRUIT, prompt=shown())
    for option in (2, 0, 1, 1):
        record = life.given(record, Given(option=option), MONA, 5_000)
        assert record.is_open
    assert record.prompt is not None
    assert record.prompt.ticked == (0, 2)
    record = life.given(record, Given(done=True), MONA, 5_001)
    assert record.answers[0].answer == ("pear", "plum")


def test_expiry_and_stop_in_between_keep_the_answers_given() -> None:
    record = life.given(an_ask(COLOUR, FRUIT, expires_at=10_000), Given(option=0), MONA, 5_000)
    assert len(life.expired(record, 10_000).answers) == 1
    ended = life.chosen(record, "stop", OPERATOR, 6_000)
    assert (ended.status, len(ended.answers)) == ("stopped", 1)


def test_all_answers_at_once_are_each_checked_against_its_question() -> None:
    record = an_ask(COLOUR, FRUIT, WORDS)
    good = [
        Answer(question="Which colour?", answer="red"),
        Answer(question="Which fruit?", answer=("fig",)),
        Answer(question="Why?", answer="so"),
    ]
    assert life.answered(record, good, OPERATOR, 5_000).status == "answered"
    bad: list[list[Answer]] = [
        good[:2],
        [good[1], good[0], good[2]],
        [Answer(question="Which colour?", answer="pink"), *good[1:]],
        [Answer(question="Which colour?", answer=("red",)), *good[1:]],
        [good[0], Answer(question="Which fruit?", answer="fig"), good[2]],
        [good[0], Answer(question="Which fruit?", answer=()), good[2]],
        [good[0], Answer(question="Which fruit?", answer=("fig", "fig")), good[2]],
        [*good[:2], Answer(question="Why?", answer=" ")],
    ]
    for answers in bad:
        with pytest.raises(InvalidAnswer):
            life.answered(record, answers, OPERATOR, 5_000)


def test_a_question_takes_no_choice_but_stop_and_a_confirmation_no_answers() -> None:
    with pytest.raises(InvalidAnswer):
        life.chosen(an_ask(COLOUR), "yes", OPERATOR, 5_000)
    with pytest.raises(InvalidAnswer):
        life.answered(a_confirmation(), [], OPERATOR, 5_000)


def test_a_prompt_that_a_crash_left_unnoted_is_known_by_its_first_press() -> None:
    record = life.given(a_confirmation(prompt=shown("7001")), Given(option=0, pressed=MessageId("7002")), MONA, 5_000)
    assert record.prompt is not None
    assert record.prompt.message_ids == ("7001", "7002")
    record = life.given(a_confirmation(), Given(option=0, pressed=MessageId("7002")), MONA, 5_000)
    assert record.prompt is not None, "pressed before any prompt was noted"
    assert record.prompt.message_ids == ("7002",)


def test_a_prompt_that_was_pressed_while_another_was_being_posted_is_kept_with_it() -> None:
    record = life.given(an_ask(FRUIT), Given(option=1, pressed=MessageId("7001")), MONA, 5_000)
    record = life.shown_in(record, 5_001, session=SESSION, shown=shown("7002"))
    assert record.prompt is not None
    assert (record.prompt.message_ids, record.prompt.ticked) == (("7001", "7002"), (1,))


def test_a_chat_that_goes_on_elsewhere_is_asked_anew_there() -> None:
    new = discord_session("1")
    record = a_confirmation(prompt=shown(), thread_id="31")
    moved = life.moved(record, 5_000, old=SESSION, new=new)
    assert (moved.deliver_to, moved.origin, moved.prompt, moved.thread_id) == (new, SESSION, None, None)
    assert life.moved(moved, 5_000, old=SESSION, new=new) is moved
    assert life.shown_in(moved, 5_000, session=SESSION, shown=shown()) is moved


def test_documents_are_those_of_the_specification_with_empty_members_left_out() -> None:
    assert a_confirmation(expires_at=301_000).document().keys() == {
        "task_hash", "session_id", "kind", "status", "origin", "deliver_to", "tool", "args", "args_hash", "choices",
        "approvers", "requester", "created_at", "expires_at",
    }  # fmt: skip
    document: dict[str, Any] = {
        "task_hash": "7d0f2b34-9a51-4f8e-9c11-0c2f5e6a7b80",
        "session_id": "dc-900000000000000002",
        "kind": "confirm",
        "status": "open",
        "origin": "dc-900000000000000002",
        "deliver_to": "dc-900000000000000002",
        "turn_id": "e061c676-0701-4e5c-b2c8-565cf9462c91",
        "cause": {"entryId": "3b1b9d0e", "messageId": "55"},
        "tool": "write_file",
        "args": {"path": "notes.md"},
        "choices": ["yes", "no"],
        "approvers": "requester",
        "requester": {"platform": "discord", "id": "900000000000000011", "name": "Mona"},
        "prompt": {
            "platform": "discord",
            "channelId": "900000000000000002",
            "messageIds": ["900000000000001020"],
            "question": 0,
            "postedAt": 1793531051000,
        },
        "created_at": 1793531050900,
        "expires_at": 1793531350900,
    }
    assert Record.model_validate(document).document() == document
