"""The codes that are open: one per chat, three per platform, each for an hour, none that is used twice."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from core.ids import MessageId, Platform, SessionId, UserId, discord_session, telegram_session
from core.pairing.codes import LENGTH, LETTERS, MOST_OPEN, VALID_MS, Codes, Knock, OpenCode, new_code, read_code


def a_knock(platform: Platform, number: int) -> Knock:
    session = discord_session(number) if platform == "discord" else telegram_session(number)
    return Knock(platform, session, "films", UserId("5"), "Mona", MessageId("7"))


def test_a_code_is_read_as_people_type_it_and_nothing_else_is():
    code = new_code()
    assert len(code) == LENGTH
    assert set(code) <= set(LETTERS)
    assert set("IO01").isdisjoint(LETTERS)
    assert read_code(f" {code.lower()[:4]} - {code[4:]}\n") == code
    for text in ("", code[:7], code + "A", "AAAAAAA0", "AAAAAAAI", "ＡAAAAAAA", "../../AA"):
        assert read_code(text) is None


class Knocking(RuleBasedStateMachine):
    """People knock, an operator admits and forgets, groups move, and time goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.codes = Codes()
        self.now = 1_000
        self.given: list[OpenCode] = []
        self.over: set[str] = set()

    def open(self) -> list[OpenCode]:
        return list(self.codes.open_at(self.now))

    @rule(platform=st.sampled_from(["discord", "telegram"]), number=st.integers(1, 6))
    def knock(self, platform: Platform, number: int) -> None:
        knock, before = a_knock(platform, number), self.open()
        room = self.codes.has_room(platform, knock.session, self.now)
        offered = self.codes.offer(knock, self.now)
        assert (offered is not None) == room
        others = [code for code in before if code.platform == platform]
        assert room == (len(others) < MOST_OPEN and all(code.session != knock.session for code in others))
        if offered is not None:
            assert offered.expires_at == self.now + VALID_MS
            self.given.append(offered)

    @rule(passed=st.sampled_from([1, VALID_MS // 2, VALID_MS - 1, VALID_MS]))
    def wait(self, passed: int) -> None:
        self.now += passed

    @precondition(lambda self: bool(self.given))
    @rule(which=st.integers(0, 999))
    def admit(self, which: int) -> None:
        given = self.given[which % len(self.given)]
        found = self.codes.find(given.code, self.now)
        assert (found is None) == (self.now >= given.expires_at or given.code in self.over)
        if found is not None:
            self.codes.remove(found.session)
            self.over.add(given.code)

    @rule(old=st.integers(1, 6), new=st.integers(1, 6))
    def move(self, old: int, new: int) -> None:
        if old == new:
            return
        before = {code.session: code for code in self.open()}
        self.codes.move(telegram_session(old), telegram_session(new))
        if telegram_session(old) in before and telegram_session(new) in before:
            self.over.add(before[telegram_session(old)].code)
        assert telegram_session(old) not in {code.session for code in self.open()}

    @invariant()
    def bounds_hold(self) -> None:
        sessions: list[SessionId] = [code.session for code in self.open()]
        assert len(sessions) == len(set(sessions))
        for platform in ("discord", "telegram"):
            assert sum(code.platform == platform for code in self.open()) <= MOST_OPEN
        assert all(self.now < code.expires_at for code in self.open())


TestKnocking = Knocking.TestCase
TestKnocking.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
