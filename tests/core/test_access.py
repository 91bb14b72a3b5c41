"""Who is let in: a verdict on one message from the rules alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.access import Admission, AllowRules, Visit
from core.ids import ChannelId, UserId

ROOM = Visit(channel=ChannelId("10"), guild="7", user=UserId("5"))
THREAD = Visit(channel=ChannelId("99"), parent=ChannelId("10"), guild="7", user=UserId("5"))
DIRECT = Visit(channel=ChannelId("20"), user=UserId("5"), direct=True)
BUSINESS = Visit(channel=ChannelId("20"), user=UserId("5"), direct=True, business=True)
GROUP = Visit(channel=ChannelId("-1001"), user=UserId("6"))


@pytest.mark.parametrize(
    ("rules", "let_in", "kept_out"),
    [
        ("", [], [ROOM, THREAD, DIRECT, BUSINESS, GROUP]),
        ("*", [ROOM, THREAD, DIRECT, BUSINESS, GROUP], []),
        ("10", [ROOM, THREAD], [DIRECT, BUSINESS, GROUP]),
        ("99", [THREAD], [ROOM]),
        ("guild:7", [ROOM, THREAD], [DIRECT, BUSINESS, GROUP]),
        ("dm", [DIRECT], [ROOM, THREAD, BUSINESS, GROUP]),
        ("20", [DIRECT], [BUSINESS]),
        ("business", [BUSINESS], [DIRECT, ROOM]),
        ("user:5", [ROOM, THREAD, DIRECT, BUSINESS], [GROUP]),
        ("-1001", [GROUP], [ROOM]),
        ("*,!dm", [ROOM, BUSINESS, GROUP], [DIRECT]),
        ("!10,*", [DIRECT, GROUP], [ROOM, THREAD]),
        ("guild:7,!99", [ROOM], [THREAD]),
        ("*,!user:5", [GROUP], [ROOM, THREAD, DIRECT, BUSINESS]),
        (" dm , ! user:5 ,, ", [], [DIRECT]),
    ],
)
def test_a_rule_lets_in_what_it_names_unless_another_excludes_it(
    rules: str, let_in: list[Visit], kept_out: list[Visit]
):
    read = AllowRules.parse(rules)
    assert [visit for visit in let_in if not read.admit(visit)] == []
    assert [visit for visit in kept_out if read.admit(visit)] == []


def test_what_is_excluded_stays_out_whatever_else_is_said_for_it():
    rules = AllowRules.parse("user:5,10,*,!guild:7")
    assert rules.excludes(ROOM)
    assert not rules.admit(ROOM)
    assert not rules.excludes(GROUP)


@pytest.mark.parametrize(
    "rule",
    ["dms", "guild:", "guild:x", "user:-", "channel:5", "10.5", "!", "!!dm", "**", "٣", "1" * 21, "--5", "guild:7 dm"],
)
def test_what_is_no_rule_is_named(rule: str):
    with pytest.raises(ValueError, match="allow rule") as refused:
        AllowRules.parse(f"dm,{rule}")
    assert repr(rule[:40]) in str(refused.value)


def test_a_paired_chat_is_let_in_with_its_threads_and_never_as_a_business_chat():
    paired = {ChannelId("10"): 1_000, ChannelId("20"): 1_000}
    admission = Admission(AllowRules.parse("!user:6"), paired)
    assert [admission.admits(visit) for visit in (ROOM, THREAD, DIRECT, BUSINESS, GROUP)] == [True] * 3 + [False] * 2
    assert admission.may_admit(Visit(ChannelId("99"), parent=ChannelId("10"), guild="7"))
    assert not admission.admits(Visit(ChannelId("10"), guild="7", user=UserId("6")))
    del paired[ChannelId("10")]
    assert not admission.admits(ROOM)
    assert not admission.may_admit(Visit(ChannelId("10"), guild="7"))


def test_a_pairing_does_not_reach_back_and_a_rule_does():
    paired = {ChannelId("10"): 1_000}
    assert not Admission(AllowRules(), paired).admits(ROOM, said_at=999)
    assert Admission(AllowRules(), paired).admits(ROOM, said_at=1_000)
    assert Admission(AllowRules.parse("10"), paired).admits(ROOM, said_at=999)


visits = st.sampled_from([ROOM, THREAD, DIRECT, BUSINESS, GROUP])
names = st.sampled_from(["*", "dm", "business", "10", "20", "99", "-1001", "guild:7", "user:5", "user:6"])
rules = st.lists(st.tuples(st.booleans(), names)).map(lambda pairs: [("!" * no) + name for no, name in pairs])


@given(rules, visits)
def test_the_order_of_rules_does_not_matter_and_excluding_always_wins(some: list[str], visit: Visit):
    forwards = AllowRules.parse(",".join(some))
    assert forwards == AllowRules.parse(", ".join(reversed(some)))
    assert not (forwards.admit(visit) and forwards.excludes(visit))
    more = AllowRules.parse(",".join([*some, "!*"]))
    assert not more.admit(visit)


@given(rules, visits)
def test_a_pairing_lets_in_nothing_that_a_rule_excludes(some: list[str], visit: Visit):
    read = AllowRules.parse(",".join(some))
    everywhere = Admission(read, {ChannelId(number): 0 for number in ("10", "20", "99", "-1001")})
    assert everywhere.excludes(visit) == read.excludes(visit)
    assert everywhere.admits(visit) == (not read.excludes(visit) and (read.admit(visit) or not visit.business))


def test_a_chat_that_is_kept_out_is_kept_out_as_a_business_chat_too() -> None:
    visit = Visit(ChannelId("20001"), user=UserId("20001"), direct=True, business=True)
    assert AllowRules.parse("business").admit(visit)
    assert not AllowRules.parse("20001").admit(visit)
    assert not AllowRules.parse("business,!20001").admit(visit)
    assert not AllowRules.parse("*,!20001").admit(visit)
