"""Which entries wake (log-format 14.1)."""

import pytest

from core.codec import raw_json
from core.entries import Edited, MessageCreated, UserMessage, custom_message, message_entry
from core.wake import BACKLOG_MS, WakeRules, rule_met
from tests.builders import a_message, a_quote_of_the_bot, mention, retracted

DEFAULT = WakeRules.parse("direct,mention,reply")
AT = 1_793_600_000_000


@pytest.mark.parametrize(
    ("message", "rule"),
    [
        (a_message(is_direct=True), "direct"),
        (a_message(content=mention()), "mention"),
        (a_message(quote=a_quote_of_the_bot()), "reply"),
        (a_message(), None),
        (a_message(content='<at id="12"/> hi'), None),
        (a_message(content='<at type="all"/> hi'), None),
        (a_message(content='<at role="900000000000000009"/> hi'), None),
        (a_message(content=f"<quote>{mention()}</quote> said somebody"), None),
        (a_message(content=f"<message forward>{mention()}</message>"), None),
        (a_message(content="&lt;at id=&quot;900000000000000009&quot;/&gt;"), None),
        (a_message(is_direct=True, via="bot"), None),
        (a_message(is_direct=True, via="webhook"), None),
        (a_message(is_direct=True, via="anonymous-admin"), None),
        (a_message(content=mention(), via="channel"), None),
        (a_message(is_direct=True, edited=Edited(timestamp=AT, revision=1)), None),
    ],
)
def test_a_message_wakes_by_the_default_rules(message: MessageCreated, rule: str | None) -> None:
    assert rule_met(custom_message(message, now=AT + 5), DEFAULT) == rule


def test_a_message_recorded_ten_minutes_late_does_not_wake() -> None:
    message = a_message(is_direct=True, at=AT)
    assert rule_met(custom_message(message, now=AT + BACKLOG_MS), DEFAULT) == "direct"
    assert rule_met(custom_message(message, now=AT + BACKLOG_MS + 1), DEFAULT) is None


def test_a_keyword_is_found_in_the_plain_text_without_regard_to_case() -> None:
    rules = WakeRules.parse("keyword", "Kessel, straße")
    assert rule_met(custom_message(a_message(content="der <b>KES</b>SEL"), now=AT), rules) == "keyword"
    assert rule_met(custom_message(a_message(content="in der STRASSE"), now=AT), rules) == "keyword"
    assert rule_met(custom_message(a_message(content="der Topf"), now=AT), rules) is None


def test_always_wakes_for_every_person_and_never_for_nobody() -> None:
    entry = custom_message(a_message(), now=AT)
    assert rule_met(entry, WakeRules.parse("always")) == "always"
    assert rule_met(custom_message(a_message(is_direct=True), now=AT), WakeRules.parse("never")) is None


def test_what_is_said_in_an_api_session_always_wakes() -> None:
    message = UserMessage(id="m", timestamp=AT, content=raw_json("hi"))
    assert rule_met(message_entry(message, now=AT), WakeRules.parse("never")) == "direct"


def test_a_deletion_never_wakes() -> None:
    assert rule_met(custom_message(retracted().message, now=AT), WakeRules.parse("always")) is None


@pytest.mark.parametrize("text", ["", "never,direct", "sometimes", ","])
def test_rules_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="wanted are"):
        WakeRules.parse(text)
