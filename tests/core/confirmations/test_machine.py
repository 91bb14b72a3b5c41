"""Whatever happens to a record in whatever order, also over restarts: decided at most once, and never taken back."""

import tempfile
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from core.confirmations import life
from core.confirmations.folder import Folder
from core.confirmations.life import Given
from core.confirmations.record import CHOICES, Approvers, Person, Question, Record, Shown
from core.errors import ConfirmationError
from core.ids import MessageId, SessionId, discord_session
from tests.builders import ADMIN, ADMINS, MONA, OPERATOR, PIET, SESSION, a_confirmation, an_ask

PEOPLE = (MONA, PIET, ADMIN, OPERATOR, Person(platform="telegram", id="11", name="Mona"))
QUESTIONS = (
    Question(question="a?", options=("x", "y")),
    Question(question="b?", options=("x", "y", "z"), multi_select=True),
    Question(question="c?"),
)
GIVEN = st.builds(
    Given,
    question=st.integers(0, 3),
    option=st.none() | st.integers(-1, 6),
    options=st.none() | st.lists(st.integers(-1, 4), max_size=3).map(tuple),
    text=st.none() | st.sampled_from(["", " ", "so", "so\n"]),
    done=st.booleans(),
    pressed=st.none() | st.sampled_from([MessageId("7001"), MessageId("7002")]),
    reply=st.none() | st.just(MessageId("9")),
)


class Life(RuleBasedStateMachine):
    """One record, as the desk changes it: each change is put on the disk."""

    @initialize(approvers=st.sampled_from(["requester", "admins", "anyone"]), asks=st.booleans())
    def open(self, approvers: Approvers, asks: bool) -> None:
        self.place = tempfile.TemporaryDirectory()
        (Path(self.place.name) / SESSION).mkdir()
        self.folder = Folder(lambda session: Path(self.place.name) / session)
        ask = an_ask(*QUESTIONS, approvers=approvers, expires_at=1_500)
        self.record = ask if asks else a_confirmation(choices=CHOICES, approvers=approvers, expires_at=1_500)
        self.folder.write(self.record)
        self.now = 1_000
        self.decided: Record | None = None

    def take(self, after: Record) -> None:
        before = self.record
        assert after.answers[: len(before.answers)] == before.answers, "answers only grow"
        if not before.is_open:
            kept = ("status", "choice", "by", "decided_at", "answers", "withdrawn")
            assert all(getattr(after, name) == getattr(before, name) for name in kept)
        elif not after.is_open:
            assert self.decided is None, "decided twice"
            self.decided = after
        self.record = after
        self.folder.write(after)

    @rule(what=GIVEN, by=st.sampled_from(PEOPLE))
    def press(self, what: Given, by: Person) -> None:
        try:
            life.check_person(self.record, by, ADMINS)
            after = life.given(self.record, what, by, self.now)
        except ConfirmationError:
            return
        assert self.record.is_open
        assert self.now < self.record.expires_at
        assert by.key in {ADMIN.key, OPERATOR.key} or self.record.approvers == "anyone" or by == MONA
        if not after.is_open:
            assert after.by == by
        self.take(after)

    @rule(choice=st.sampled_from(CHOICES))
    def choose(self, choice: life.Choice) -> None:
        try:
            after = life.chosen(self.record, choice, OPERATOR, self.now)
        except ConfirmationError:
            return
        self.take(after)

    @rule(passed=st.integers(0, 60))
    def wait(self, passed: int) -> None:
        self.now += passed
        self.take(life.expired(self.record, self.now))

    @rule()
    def withdraw(self) -> None:
        self.take(life.withdrawn(self.record, self.now))

    @rule()
    def stop_another_of_the_turn(self) -> None:
        self.take(life.stopped(self.record, ADMIN, self.now))

    @rule(message=st.sampled_from(["7001", "7002"]))
    def show(self, message: str) -> None:
        shown = Shown(
            platform="discord",
            channel_id="1",
            message_ids=(MessageId(message),),
            question=min(self.record.current, max(len(self.record.questions) - 1, 0)),
            posted_at=self.now,
        )
        self.take(life.shown_in(self.record, self.now, session=SESSION, shown=shown))

    @rule(new=st.sampled_from([discord_session("1"), SESSION]))
    def move(self, new: SessionId) -> None:
        self.take(life.moved(self.record, self.now, old=self.record.deliver_to, new=new))

    @rule()
    def mark(self) -> None:
        if not self.record.is_open:
            self.take(life.resolved(life.closed(self.record, self.now), self.now))

    @rule()
    def restart(self) -> None:
        (found,) = self.folder.read_all([SESSION])
        assert found == self.record
        self.record = found

    @invariant()
    def is_open_or_says_how_it_ended(self) -> None:
        record = self.record
        assert record.is_open == (self.decided is None) == (record.decided_at is None)
        if record.status in {"approved", "answered"}:
            assert record.by is not None
        if record.status == "answered":
            assert len(record.answers) == len(record.questions)
        if record.choice is not None:
            assert record.status == life.OUTCOMES[record.choice]

    def teardown(self) -> None:
        if hasattr(self, "place"):
            self.place.cleanup()


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
