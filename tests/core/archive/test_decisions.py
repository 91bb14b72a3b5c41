"""What was decided stays readable, and leave is kept, found and ended as it was given."""

import pytest

from core.archive.decisions import Decisions
from core.confirmations import life
from core.confirmations.life import Given
from core.confirmations.record import Record
from core.ids import MessageId, SessionId
from tests.builders import MONA, SESSION, a_confirmation, a_task, an_ask
from tests.conftest import House

CHAT = SessionId("tg--5")


@pytest.fixture
def decisions(house: House) -> Decisions:
    return Decisions(house.store)


async def keep(decisions: Decisions, record: Record) -> None:
    text = record.model_dump_json(exclude_defaults=True)
    await decisions.put_decision(record.task_hash, record.session_id, record.status, record.decided_at or 0, text)


async def test_a_decision_is_read_back_equal_also_after_a_restart(house: House, decisions: Decisions) -> None:
    record = life.chosen(a_confirmation(a_task(1), text="Ü\u202e👍", objective="tidy up"), "yes", MONA, 5_000)
    await keep(decisions, record)
    await house.reopen()
    found = await Decisions(house.store).decision(a_task(1))
    assert found is not None
    assert Record.model_validate_json(found) == record
    assert await Decisions(house.store).decision(a_task(2)) is None


async def test_keeping_it_again_is_no_error_and_the_last_state_counts(decisions: Decisions) -> None:
    record = life.chosen(a_confirmation(a_task(1)), "yes", MONA, 5_000)
    await keep(decisions, record)
    await keep(decisions, record.with_(resolved_at=6_000))
    found = await decisions.decision(a_task(1))
    assert found is not None
    assert Record.model_validate_json(found).resolved_at == 6_000


async def test_a_reply_that_was_an_answer_is_known_in_its_own_chat(decisions: Decisions) -> None:
    record = an_ask(task=a_task(1), session_id=CHAT)
    await keep(decisions, life.given(record, Given(text="so", reply=MessageId("9")), MONA, 5_000))
    assert await decisions.was_answer(CHAT, MessageId("9"), 4_000)
    assert await decisions.was_answer(CHAT, MessageId("9"), 5_000)
    assert not await decisions.was_answer(CHAT, MessageId("99"), 4_000)
    for other in ("tg-5", "tg--55", "tg--5~x", "dc-5"):
        assert not await decisions.was_answer(SessionId(other), MessageId("9"), 4_000)


async def test_a_reply_is_known_where_the_platform_s_clock_is_ahead_of_ours(decisions: Decisions) -> None:
    record = an_ask(task=a_task(1), session_id=CHAT)
    await keep(decisions, life.given(record, Given(text="so", reply=MessageId("9")), MONA, 5_000))
    assert await decisions.was_answer(CHAT, MessageId("9"), 65_000)


async def test_rules_are_found_by_session_tool_and_arguments_exactly(decisions: Decisions) -> None:
    await decisions.grant(SESSION, "rm", "a" * 64, "admin cli:operator", 2)
    await decisions.grant(SESSION, "rm", "a" * 64, "discord:11", 1)
    await decisions.grant(SESSION, "rm", "b" * 64, "discord:12", 3)
    await decisions.grant(CHAT, "rm", "a" * 64, "telegram:13", 4)
    assert await decisions.granted([SESSION], "rm", "a" * 64) == ["discord:11", "admin cli:operator"]
    assert await decisions.granted([CHAT, SESSION], "rm", "a" * 64) == [
        "discord:11",
        "admin cli:operator",
        "telegram:13",
    ]
    assert await decisions.granted([SESSION], "rmdir", "a" * 64) == []
    assert await decisions.granted([], "rm", "a" * 64) == []


async def test_a_revoked_rule_is_gone_and_the_others_are_not(house: House, decisions: Decisions) -> None:
    for by in ("discord:11", "discord:12"):
        await decisions.grant(SESSION, "rm", "a" * 64, by, 1)
    first = (await decisions.rules())[0]
    assert await decisions.revoke(first)
    assert not await decisions.revoke(first)
    await house.reopen()
    assert [rule.granted_by for rule in await Decisions(house.store).rules()] == ["discord:12"]
