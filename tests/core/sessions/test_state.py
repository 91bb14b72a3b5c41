"""What is true now, and which lines a fact calls for: pure, without a loop, a clock or a disk."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.codec import decode, encode
from core.entries import (
    AnyEntry,
    Attachment,
    MessageCreated,
    MessageDeleted,
    Narrative,
    TurnAborted,
    TurnDone,
    TurnFailed,
    TurnStart,
    custom_message,
    fact_of,
    turn_event,
)
from core.ids import MessageId, TurnId
from core.sessions.facts import Fact, Retracted, Said, Written
from core.sessions.state import Draft, SessionState, Standing, decide, fold, key_of, number_of
from tests.builders import a_message, a_picture, retracted, said

TURN = TurnId("turn-1")
EDITED_AT = 1_793_600_005_000


def take(state: SessionState, *facts: Fact) -> list[AnyEntry]:
    """Decide each fact and apply its lines, as a session does; a line is first written and read, as in a restart."""
    written: list[AnyEntry] = []
    for fact in facts:
        for entry in decide(state, fact, now=5).entries:
            state.apply(decode(encode(entry)))
            written.append(entry)
    return written


def kinds(entries: list[AnyEntry]) -> list[str]:
    """``created``, ``edit 1``, ``deleted``, ``attachment`` for each line."""
    names: list[str] = []
    for entry in entries:
        match fact_of(entry):
            case MessageCreated(edited=None):
                names.append("created")
            case MessageCreated(edited=edited) if edited is not None:
                names.append(f"edit {edited.revision}")
            case MessageDeleted():
                names.append("deleted")
            case Attachment():
                names.append("attachment")
            case _:
                names.append("other")
    return names


def edit(content: str, at: int = EDITED_AT, number: int = 1) -> Said:
    return said(number, content, edited_at=at)


@pytest.mark.parametrize(
    ("facts", "written"),
    [
        ([said(1), said(1)], ["created"]),
        ([said(1), said(2)], ["created", "created"]),
        ([said(1), said(1, "other words, same message")], ["created"]),
        ([said(1), edit("b"), edit("b")], ["created", "edit 1"]),
        ([said(1), edit("b"), edit("c")], ["created", "edit 1", "edit 2"]),
        ([said(1), edit("b"), edit("c"), edit("b")], ["created", "edit 1", "edit 2"]),
        ([said(1), edit("b", 10), edit("c", 20), edit("b", 30)], ["created", "edit 1", "edit 2", "edit 3"]),
        ([said(1), edit("c", 20), edit("b", 10)], ["created", "edit 1"]),
        ([said(1), edit("b", 10), edit("c", 20), edit("b", 10)], ["created", "edit 1", "edit 2"]),
        ([edit("b"), said(1)], ["edit 1", "created"]),
        ([edit("b"), said(1), said(1), edit("b")], ["edit 1", "created"]),
        ([said(1), retracted(1), retracted(1)], ["created", "deleted"]),
        ([retracted(1), said(1), edit("b")], ["deleted"]),
        ([said(1), retracted(1), edit("b"), said(1)], ["created", "deleted"]),
        ([retracted(7)], ["deleted"]),
    ],
)  # fmt: skip
def test_each_message_edit_and_deletion_is_written_once(facts: list[Fact], written: list[str]):
    state = SessionState()
    assert kinds(take(state, *facts)) == written
    assert take(state, *facts) == [], "and nothing of it again"


def test_an_edit_keeps_the_time_of_the_original_and_counts_from_one():
    state = SessionState()
    _, first, second = (fact_of(entry) for entry in take(state, said(1, at=7), edit("b", 20), edit("c", 30)))
    assert isinstance(first, MessageCreated)
    assert isinstance(second, MessageCreated)
    assert (first.timestamp, second.timestamp) == (7, 7)
    assert first.edited is not None
    assert (first.edited.timestamp, first.edited.revision) == (20, 1)


def test_the_time_of_an_original_that_comes_late_is_its_own():
    state = SessionState()
    _, original = (fact_of(entry) for entry in take(state, edit("b", 20), said(1, "a", at=9)))
    assert isinstance(original, MessageCreated)
    assert original.edited is None
    assert original.timestamp == 9
    assert take(state, edit("b", 20)) == []


def test_other_media_under_the_same_words_are_another_edit():
    one, two = a_picture(1, "f1"), a_picture(1, "f2")
    first = Said(a_message(1, f'<img src="{one.item.url}"/>'), (one,), edited_at=20)
    second = Said(a_message(1, f'<img src="{two.item.url}"/>'), (two,), edited_at=20)
    state = SessionState()
    assert kinds(take(state, said(1), first, second, first)) == [
        "created", "edit 1", "attachment", "edit 2", "attachment",
    ]  # fmt: skip


def test_media_stand_right_behind_their_message_under_its_key():
    picture = a_picture(1)
    created, attachment = take(SessionState(), Said(a_message(1), (picture,)))
    message, media = fact_of(created), fact_of(attachment)
    assert isinstance(message, MessageCreated)
    assert isinstance(media, Attachment)
    named = (media.platform, media.self_id, media.channel_id, media.message_id)
    assert named == (message.platform, message.self_id, message.channel_id, message.message_id)
    assert media.source == "platform"
    assert media.items == [picture.item]


def test_a_deletion_names_the_author_from_the_log_and_is_not_earlier_than_the_message():
    state = SessionState()
    *_, known, unknown = take(state, said(1, at=1_793_600_009_000), retracted(1, at=5), retracted(2, at=5))
    first, second = fact_of(known), fact_of(unknown)
    assert isinstance(first, MessageDeleted)
    assert isinstance(second, MessageDeleted)
    assert (first.user_id, first.timestamp) == ("11", 1_793_600_009_000)
    assert (second.user_id, second.timestamp) == (None, 5)


def test_what_counts_only_for_a_message_of_the_log_makes_no_line_for_another():
    state = SessionState()
    late = Said(a_message(1, "b"), edited_at=20, known_only=True)
    gone = Retracted(retracted(1).message, known_only=True)
    assert take(state, late, gone) == []
    assert kinds(take(state, said(1), late, gone)) == ["created", "edit 1", "deleted"]


def test_a_change_that_nobody_can_see_is_no_edit_where_the_platform_reports_those_too():
    state = SessionState()
    same = Said(a_message(1, "a"), edited_at=20, changed_only=True)
    other = Said(a_message(1, "b"), edited_at=30, changed_only=True)
    back = Said(a_message(1, "a"), edited_at=40, changed_only=True)
    assert kinds(take(state, said(1, "a"), same, other, other, back)) == ["created", "edit 1", "edit 2"]
    assert kinds(take(SessionState(), same)) == ["edit 1"], "of an unknown message it is all there is"


def test_an_edit_with_half_a_character_is_written_once_also_after_a_restart():
    state = SessionState()
    assert kinds(take(state, said(1), edit("\ud83d"), edit("\ud83d"), edit("a\udc00b"))) == [
        "created", "edit 1", "edit 2",
    ]  # fmt: skip
    assert take(state, edit("\ud83d"), edit("a\udc00b")) == []


def test_messages_are_told_apart_by_all_four_members_of_the_key():
    facts = [
        Said(msgspec.structs.replace(a_message(1), **{member: value}))
        for member, value in {"platform": "telegram", "self_id": "8", "channel_id": "3", "message_id": "2"}.items()
    ]
    assert len(take(SessionState(), said(1), *facts, said(1), *facts)) == 5


# --- turns --------------------------------------------------------------------------------------------------------


def test_what_arrives_during_a_turn_bears_its_id_and_nothing_does_before_or_after():
    state = SessionState()
    start = Written((turn_event(TurnStart(turn_id=TURN), now=1),))
    end = Written((turn_event(TurnDone(turn_id=TURN), now=2),))
    entries = take(state, said(1), start, said(2), edit("b"), retracted(1), end, said(3))
    assert [entry.turn_id for entry in entries] == [None, TURN, TURN, TURN, TURN, TURN, None]
    assert state.open_turn is None


@pytest.mark.parametrize("end", [TurnDone(turn_id=TURN), TurnFailed(turn_id=TURN), TurnAborted(turn_id=TURN)])
def test_a_turn_ends_with_any_of_its_three_ends_and_a_late_narrative_does_not_open_it(end: TurnDone):
    narrative = custom_message(a_message(9), now=3)
    late = msgspec.structs.replace(narrative, type="ishiki.narrative", data=Narrative(kind="thought"), turn_id=TURN)
    state = fold([turn_event(TurnStart(turn_id=TURN), now=1), turn_event(end, now=2)])
    state.apply(late)  # pyright: ignore[reportArgumentType] - a line of another kind now
    assert state.open_turn is None


def test_a_turn_whose_start_stands_too_far_up_is_known_by_any_of_its_lines():
    assert fold([custom_message(a_message(1), now=1, turn_id=TURN)], complete=False).open_turn == TURN


def test_lines_that_depend_on_the_state_are_made_from_the_state_that_they_follow():
    state = SessionState()

    def start(now: SessionState) -> tuple[AnyEntry, ...]:
        return () if now.open_turn else (turn_event(TurnStart(turn_id=TURN), now=1),)

    assert len(take(state, Written(start))) == 1
    assert take(state, Written(start)) == []


# --- memory -------------------------------------------------------------------------------------------------------


def test_a_state_that_forgot_something_says_which_message_has_to_be_looked_up():
    state = fold(take(SessionState(), said(10), edit("b", 20, number=10), said(11)), complete=False)
    assert state.needs_lookup(said(12)) is None, "newer than all: it was never here"
    assert state.needs_lookup(said(9)) == key_of(a_message(9))
    assert state.needs_lookup(edit("x", number=12)) == key_of(a_message(12))
    assert state.needs_lookup(retracted(9)) == key_of(a_message(9))
    assert state.needs_lookup(said(10)) is None
    assert state.needs_lookup(Written(())) is None


def test_a_message_deleted_before_it_came_is_looked_up_when_memory_let_go_of_it():
    state = SessionState()
    take(state, retracted(20))
    state.trim(0)
    assert state.needs_lookup(said(20)) == key_of(a_message(20))


def test_of_a_message_known_by_its_edits_alone_the_original_is_looked_up():
    state = fold(take(SessionState(), edit("b")), complete=False)
    assert state.needs_lookup(said(1)) == key_of(a_message(1))
    assert state.needs_lookup(edit("c")) == key_of(a_message(1)), "other edits may stand further up"
    state.recall(key_of(a_message(1)), Standing(revision=1))
    assert state.needs_lookup(edit("c")) is None


def test_memory_lets_go_of_what_was_touched_least_lately_and_knows_that_it_did():
    state = SessionState()
    take(state, *(said(number) for number in range(1, 11)), edit("b", number=1))
    state.trim(3)
    assert not state.complete
    assert [number for number in range(1, 11) if state.standing(key_of(a_message(number)))] == [1, 9, 10]


def test_a_draft_leaves_what_it_was_drawn_over_alone():
    state = SessionState()
    take(state, said(1))
    draft = Draft(state)
    assert kinds([*draft.take(edit("b"), now=1).entries, *draft.take(retracted(1), now=1).entries]) == [
        "edit 1", "deleted",
    ]  # fmt: skip
    assert draft.take(said(1), now=1).entries == ()
    assert draft.is_retracted(key_of(a_message(1)))
    assert not state.is_retracted(key_of(a_message(1)))
    assert kinds(take(state, edit("c"))) == ["edit 1"]


def test_an_id_that_is_no_number_sorts_lowest():
    assert number_of(MessageId("12")) == 12
    assert number_of(MessageId("m1")) == number_of(MessageId("")) == 0


def a_word(number: int, content: str, at: int | None) -> Said:
    return said(number, content, edited_at=at)


facts = st.one_of(
    st.builds(a_word, st.integers(1, 3), st.sampled_from("abc"), st.none() | st.integers(1, 3)),
    st.builds(retracted, st.integers(1, 3)),
)


@given(st.lists(facts, max_size=25), st.integers(0, 25))
def test_a_log_told_anything_in_any_order_satisfies_its_own_rules(told: list[Fact], restart_at: int):
    state = SessionState()
    written = take(state, *told[:restart_at])
    state = fold([decode(encode(entry)) for entry in written])
    written += take(state, *told[restart_at:])
    for number in range(1, 4):
        lines = [
            fact
            for entry in written
            if isinstance(fact := fact_of(entry), MessageCreated | MessageDeleted) and fact.message_id == str(number)
        ]
        revisions = [fact.edited for fact in lines if isinstance(fact, MessageCreated)]
        edits = [edited for edited in revisions if edited is not None]
        assert [edited.revision for edited in edits] == list(range(1, len(edits) + 1))
        assert [edited.timestamp for edited in edits] == sorted(edited.timestamp for edited in edits)
        assert revisions.count(None) <= 1
        deletions = [index for index, fact in enumerate(lines) if isinstance(fact, MessageDeleted)]
        assert deletions in ([], [len(lines) - 1])
    assert fold(written).open_turn is None


def test_a_rename_makes_no_edit_of_what_names_somebody() -> None:
    state = SessionState()
    for name in ("Jiro", "Jiro the second"):
        fact = said(1, f'<at id="12" name="{name}"/> hi', edited_at=1_793_600_005_000)
        decision = decide(state, fact, now=5)
        for entry in decision.entries:
            state.apply(entry)
        assert len(decision.entries) == (name == "Jiro")
