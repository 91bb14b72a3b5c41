"""What a table of sessions says of a log."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.codec import encode, raw_json
from core.entries import (
    AnyEntry,
    AssistantMessage,
    FailureCause,
    TurnDone,
    TurnFailed,
    TurnStart,
    UserMessage,
    message_entry,
    turn_event,
)
from core.ids import TurnId, new_uuid
from core.log import tally as under_test
from core.log.tally import Tally, tally


def an_answer(turn: TurnId, tool: str = "send_message") -> AnyEntry:
    call = [{"type": "tool-call", "toolCallId": "c", "toolName": tool, "input": {"content": "hi"}}]
    message = AssistantMessage(id=new_uuid(), timestamp=3, content=raw_json(call), finish_reason="tool-calls")
    return message_entry(message, now=3, turn_id=turn)


def a_start(turn: TurnId) -> AnyEntry:
    return turn_event(TurnStart(turn_id=turn), now=2)


def a_done(turn: TurnId) -> AnyEntry:
    return turn_event(TurnDone(turn_id=turn), now=4)


def a_failure(turn: TurnId) -> AnyEntry:
    return turn_event(TurnFailed(turn_id=turn, error=FailureCause(name="X", message="y")), now=5)


def counted(entries: Sequence[AnyEntry], tail: bytes = b"") -> Tally:
    log = b"".join(encode(entry) + b"\n" for entry in entries) + tail
    return tally(lambda offset, count: log[offset : offset + count], len(log))


def test_turns_that_said_nothing_and_turns_that_failed_are_counted():
    one, two, three, four = (TurnId(new_uuid()) for _ in range(4))
    entries = [
        *(a_start(one), an_answer(one), a_done(one)),
        *(a_start(two), an_answer(two, "read_file"), a_done(two)),
        *(a_start(three), a_failure(three)),
        a_start(four),
    ]
    assert counted(entries) == Tally(entries=9, last_at=2, silent=1, failed=1, turned=True)


def test_what_is_said_in_a_chat_counts_as_no_turn():
    words = '"type":"event","data":{"type":"turn.failed" "toolName":"send_message" "type":"tool-call","turnId":"x"}'
    said = message_entry(UserMessage(id=new_uuid(), timestamp=1, content=raw_json(words)), now=7)
    assert counted([said]) == Tally(entries=1, last_at=7)


def test_an_empty_log_and_a_torn_tail():
    assert counted([]) == Tally()
    assert counted([a_start(TurnId("t"))], b'{"id":"torn') == Tally(entries=1, last_at=2, turned=True)


@given(st.lists(st.sampled_from("sadf"), max_size=30), st.integers(1, 700))
def test_where_the_blocks_end_does_not_matter(kinds: list[str], block: int):
    make = {"s": a_start, "a": an_answer, "d": a_done, "f": a_failure}
    entries = [make[kind](TurnId(f"t{number // 3}")) for number, kind in enumerate(kinds)]
    whole = counted(entries)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(under_test, "_BLOCK", block)
        assert counted(entries) == whole
    assert whole.entries == len(kinds)
