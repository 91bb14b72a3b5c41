"""Delivery, waking and turns, over a real log, with a fake agent and a fake chat on the far sides."""

import asyncio
import json
import shutil
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec import Raw

import core.chat.speak
from core.chat.speak import Speaker
from core.clock import now_ms
from core.entries import MessageCreated
from core.errors import ChatRefused, ChatUnavailable, RuntimeCallError, RuntimeRefused, RuntimeUnavailable
from core.gateway import Gateway
from core.health import Health
from core.ids import EntryId, SessionId, TurnId, discord_session, rest_of
from core.runtime.deliver import Deliver
from core.runtime.outlook import IsAnswer, nothing_asked
from core.runtime.port import Answer
from core.runtime.turns import Turns
from core.wake import BACKLOG_MS, WakeRules
from tests.builders import SESSION, a_task, mention, retracted, said
from tests.conftest import House, Until
from tests.fakes import FakeChat, FakeRuntime

NOW = 10**15  # ms; far ahead, so that no message counts as backlog


class Agent:
    """A house with an agent and a chat."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.runtime = FakeRuntime()
        self.chat = FakeChat()
        self.health = Health("runtime", problem=None)
        self.is_answer: IsAnswer = nothing_asked

    async def start(self, rules: str = "direct,mention,reply", at_once: int = 4) -> None:
        sessions, store = self.house.sessions, self.house.store
        deliver = Deliver(self.runtime, store, store, self.health)
        speaker = Speaker(sessions, lambda _: self.chat, store, _no_file)
        sessions.settle_cut_off_turns(speaker.owed)
        wakes = WakeRules.parse(rules)
        self.turns = Turns(self.runtime, deliver, speaker, store, wakes, is_answer=self.is_answer, at_once=at_once)
        self.gateway = Gateway(sessions, [deliver, self.turns], store)
        await self.gateway.start()

    async def restart(self, *, forgetting: bool = False) -> None:
        """``forgetting``: somebody deletes history.db in between."""
        await self.gateway.stop()
        await self.house.close()
        if forgetting:
            for left in (self.house.folder / ".store").glob("history.db*"):
                left.unlink()
        await self.house.open()
        await self.start()

    def lines(self) -> list[dict[str, Any]]:
        path = self.house.folder / "runtimes" / SESSION / "events.jsonl"
        return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []

    def kinds(self) -> list[str]:
        return [_kind(line) for line in self.lines()]

    def delivered(self) -> list[dict[str, Any]]:
        return [json.loads(line) for _, lines, _ in self.runtime.delivered for line in lines]


async def _no_file(_session: object, url: str) -> Any:
    raise AssertionError(url)


def _kind(line: dict[str, Any]) -> str:
    data = line["data"]
    return (data.get("type") or data.get("role")) if line["type"] in {"message", "event"} else line["type"]


@pytest.fixture
async def agent(house: House) -> AsyncIterator[Agent]:
    agent = Agent(house)
    await agent.start()
    yield agent
    await agent.gateway.stop()


async def say(agent: Agent, *facts: object) -> None:
    await agent.house.sessions.of(SESSION).append(facts)  # pyright: ignore[reportArgumentType]


async def test_everything_is_delivered_in_order_and_only_a_mention_wakes(agent: Agent, until: Until) -> None:
    agent.runtime.answers = [Answer(reply="in the left one")]
    await say(agent, said(1, "the kettle", at=NOW), said(2, mention(), at=NOW))
    await until(lambda: "turn.done" in agent.kinds())
    assert [line["data"]["data"]["messageId"] for line in agent.delivered()] == ["1", "2"]
    assert len(agent.runtime.woken) == 1
    assert agent.runtime.woken[0][2].rule == "mention"
    assert agent.kinds()[2:] == ["turn.start", "assistant", "tool", "turn.done"]
    turn = agent.lines()[2]["data"]["turnId"]
    assert all(line["turnId"] == turn for line in agent.lines()[2:])
    call = agent.lines()[3]["data"]["content"][0]
    assert call["input"] == {"messages": ["in the left one"], "mode": "markdown", "quote": "2"}
    result = agent.lines()[4]["data"]["content"][0]
    assert (result["toolCallId"], result["output"]) == (
        call["toolCallId"],
        {"type": "json", "value": {"ok": True, "ids": ["9001"]}},
    )
    assert [sent.quote for sent in agent.chat.sent] == ["2"]


async def test_an_edit_and_a_deletion_are_delivered_and_do_not_wake(agent: Agent, until: Until) -> None:
    await say(agent, said(1, "hi", at=NOW))
    await say(agent, said(1, mention(), edited_at=NOW + 1, at=NOW), retracted(1))
    await until(lambda: len(agent.delivered()) == 3)
    assert agent.runtime.woken == []


async def test_a_runtime_that_is_down_holds_the_session_and_then_gets_the_same_batch(
    agent: Agent, until: Until
) -> None:
    agent.runtime.errors = [RuntimeUnavailable("down", retry_after=0.01) for _ in range(3)]
    await say(agent, said(1, at=NOW))
    await until(lambda: agent.health.problem == "down")
    await say(agent, said(2, at=NOW))
    await until(lambda: len(agent.delivered()) == 2)
    assert agent.health.ready
    assert [line["data"]["data"]["messageId"] for line in agent.delivered()] == ["1", "2"]


async def test_an_entry_that_is_refused_is_parked_and_later_ones_go_on(agent: Agent, until: Until) -> None:
    agent.runtime.errors = [RuntimeRefused("422"), RuntimeRefused("422")]  # the batch of two, then its first half
    await say(agent, said(1, at=NOW), said(2, at=NOW))
    await until(lambda: len(agent.delivered()) == 1)
    assert agent.delivered()[0]["data"]["data"]["messageId"] == "2"
    parked = await agent.house.store.outbox(f"deliver:{SESSION}:{agent.lines()[0]['id']}")
    assert parked == ("parked", "422")


async def test_what_arrives_during_a_turn_bears_its_id_and_gets_one_more_turn(agent: Agent, until: Until) -> None:
    agent.runtime.holding = asyncio.Event()
    await say(agent, said(1, mention(), at=NOW))
    await until(lambda: agent.runtime.woken)
    await say(agent, said(2, mention(), at=NOW), said(3, at=NOW))
    await say(agent, said(4, mention(), at=NOW))
    await until(lambda: len(agent.delivered()) == 4)
    assert len(agent.runtime.woken) == 1
    agent.runtime.holding.set()
    await until(lambda: agent.kinds().count("turn.done") == 2)
    first, second = (turn for _, turn, _ in agent.runtime.woken)
    inside = [line.get("turnId") for line in agent.lines() if _kind(line) == "ishiki.message.created"]
    assert inside == [None, first, first, first]
    assert second not in inside
    assert agent.runtime.woken[1][2].entry_id == agent.lines()[4]["id"]


async def test_what_the_runtime_says_it_has_seen_gets_no_further_turn(agent: Agent, until: Until) -> None:
    agent.runtime.holding = asyncio.Event()
    await say(agent, said(1, mention(), at=NOW))
    await until(lambda: agent.runtime.woken)
    await say(agent, said(2, mention(), at=NOW))
    await until(lambda: len(agent.delivered()) == 2)
    agent.runtime.answers = [Answer(seen=EntryId(agent.lines()[-1]["id"]))]
    agent.runtime.holding.set()
    await until(lambda: "turn.done" in agent.kinds())
    await say(agent, said(3, at=NOW))
    await until(lambda: len(agent.delivered()) == 3)
    assert len(agent.runtime.woken) == 1


async def test_a_message_retracted_before_its_turn_wakes_nobody(agent: Agent, until: Until) -> None:
    agent.runtime.errors = [RuntimeUnavailable("down", retry_after=0.1)]
    await say(agent, said(1, mention(), at=NOW))
    await say(agent, retracted(1))
    await until(lambda: len(agent.delivered()) == 2)
    await say(agent, said(2, at=NOW))
    await until(lambda: len(agent.delivered()) == 3)
    assert agent.runtime.woken == []


async def test_a_retracted_message_does_not_take_an_earlier_one_with_it(agent: Agent, until: Until) -> None:
    await agent.gateway.stop()
    await agent.start(at_once=1)
    agent.runtime.holding = asyncio.Event()
    elsewhere = agent.house.sessions.of(discord_session(7))
    await elsewhere.append([said(9, mention(), at=NOW)])
    await until(lambda: agent.runtime.woken)
    await say(agent, said(1, mention("one"), at=NOW), said(2, mention("two"), at=NOW))
    await until(lambda: len(agent.delivered()) == 3)
    await asyncio.sleep(0.05)  # the turn waits for its place by now
    await say(agent, retracted(2))
    agent.runtime.holding.set()
    await until(lambda: "turn.done" in agent.kinds())
    assert agent.runtime.woken[1][2].entry_id == agent.lines()[0]["id"]


async def test_a_runtime_that_refuses_one_entry_gets_all_the_others(agent: Agent, until: Until) -> None:
    class Choosy(FakeRuntime):
        async def deliver(self, session: Any, lines: Any, *, key: Any) -> None:
            if any(b"poison" in line for line in lines):
                raise RuntimeRefused("422")
            await super().deliver(session, lines, key=key)

    agent.runtime = Choosy()
    await agent.gateway.stop()
    await agent.start()
    await say(agent, *(said(number, "poison" if number == 3 else "fine", at=NOW) for number in range(1, 9)))
    await until(lambda: len(agent.delivered()) == 7)
    assert [line["data"]["data"]["messageId"] for line in agent.delivered()] == ["1", "2", "4", "5", "6", "7", "8"]


async def test_a_session_that_is_held_stays_in_the_health_while_others_go_on(agent: Agent, until: Until) -> None:
    class Selective(FakeRuntime):
        async def deliver(self, session: Any, lines: Any, *, key: Any) -> None:
            if session == SESSION:
                raise RuntimeUnavailable("403", retry_after=60)
            await super().deliver(session, lines, key=key)

    agent.runtime = Selective()
    await agent.gateway.stop()
    await agent.start()
    await say(agent, said(1, at=NOW))
    await until(lambda: not agent.health.ready)
    await agent.house.sessions.of(discord_session(7)).append([said(1, at=NOW)])
    await until(agent.delivered)
    assert agent.health.problem == "403"


async def test_a_database_that_was_deleted_wakes_nobody_for_what_was_answered(agent: Agent, until: Until) -> None:
    await say(agent, said(1, mention(), at=NOW))
    await until(lambda: "turn.done" in agent.kinds())
    await agent.restart(forgetting=True)
    await until(lambda: len(agent.delivered()) == 2)  # told again, as at least once allows
    await say(agent, said(2, mention(), at=NOW))
    await until(lambda: agent.kinds().count("turn.done") == 2)
    assert [woken[2].entry_id for woken in agent.runtime.woken] == [agent.lines()[0]["id"], agent.lines()[-3]["id"]]


async def test_a_runtime_that_is_new_is_not_woken_for_what_was_said_long_ago(
    house: House, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_ago = now_ms() - BACKLOG_MS - 60_000
    with monkeypatch.context() as clock:
        clock.setattr("core.sessions.session.now_ms", lambda: long_ago)
        await house.sessions.of(SESSION).append([said(1, mention(), at=long_ago)])
    agent = Agent(house)
    await agent.start()
    await until(lambda: len(agent.delivered()) == 1)
    await say(agent, said(2, mention(), at=NOW))
    await until(lambda: "turn.done" in agent.kinds())
    assert len(agent.runtime.woken) == 1
    await agent.gateway.stop()


async def test_an_album_wakes_once_after_it_has_been_quiet(agent: Agent, until: Until) -> None:
    for number in (3, 1, 2):
        await say(agent, said(number, mention(), at=NOW, album="77"))
        await asyncio.sleep(0.05)
    await until(lambda: "turn.done" in agent.kinds())
    assert len(agent.runtime.woken) == 1
    created = [line["timestamp"] for line in agent.lines() if _kind(line) == "ishiki.message.created"]
    start = next(line["timestamp"] for line in agent.lines() if _kind(line) == "turn.start")
    assert start - created[-1] >= 1500
    await say(agent, said(4, mention(), at=NOW, album="77"))
    await agent.restart()
    await until(lambda: len(agent.delivered()) == 4)
    await say(agent, said(5, mention(), at=NOW))
    await until(lambda: agent.kinds().count("turn.done") == 2)
    assert len(agent.runtime.woken) == 2


@pytest.mark.parametrize(
    ("answer", "name"),
    [(RuntimeUnavailable("503"), "RuntimeUnavailable"), (RuntimeCallError("no"), "RuntimeCallError")],
)
async def test_a_turn_that_the_runtime_does_not_answer_fails_and_is_not_repeated(
    agent: Agent, until: Until, answer: Exception, name: str
) -> None:
    agent.runtime.answers = [answer]
    await say(agent, said(1, mention(), at=NOW))
    await until(lambda: "turn.failed" in agent.kinds())
    assert agent.lines()[-1]["data"]["error"]["name"] == name
    await agent.restart()
    await say(agent, said(2, at=NOW))
    await until(lambda: len(agent.delivered()) == 2)
    assert len(agent.runtime.woken) == 1


@pytest.mark.parametrize("direct", [True, False])
async def test_who_wrote_in_a_direct_chat_is_told_that_the_turn_failed(
    agent: Agent, until: Until, *, direct: bool
) -> None:
    agent.runtime.answers = [RuntimeUnavailable("503")]
    await say(agent, said(1, mention(), at=NOW, is_direct=direct))
    await until(lambda: "turn.failed" in agent.kinds())
    assert agent.kinds()[1:] == ["turn.start", *(["assistant", "tool"] if direct else []), "turn.failed"]
    assert [(sent.quote, "later" in sent.text) for sent in agent.chat.sent] == ([("1", True)] if direct else [])


async def test_a_turn_fails_all_the_same_where_the_chat_refuses_to_be_told(agent: Agent, until: Until) -> None:
    agent.runtime.answers = [RuntimeUnavailable("503")]
    agent.chat.refusals = [ChatRefused("blocked")]
    await say(agent, said(1, at=NOW, is_direct=True))
    await until(lambda: "turn.failed" in agent.kinds())
    assert agent.chat.sent == []


async def test_entries_of_a_runtime_are_taken_whole_and_platform_facts_are_refused(agent: Agent, until: Until) -> None:
    usage = '{"inputTokens":1,"inputTokenDetails":{},"outputTokens":1,"outputTokenDetails":{},"totalTokens":2}'
    assistant = (
        '{"type":"message","data":{"id":"5f1f4a0c-7d4e-4f27-8a7f-6cfb8b6f1101","timestamp":5,"role":"assistant",'
        f'"content":"thinking","usage":{usage},"zz":1.50}}}}'
    )
    refused = (
        '{"type":"event","data":{"type":"turn.done","turnId":"x"}}',
        '{"type":"state","data":{"version":1}}',
        '{"type":"message","data":{"role":"user","content":"x"}}',
        '{"type":"message","data":{"role":"custom","type":"ishiki.message.deleted","data":{"messageId":"3"}}}',
        '{"type":"message","data":{"role":"custom","type":"ishiki.attachment","data":{"source":"platform","items":[]}}}',
        '{"type":"message","data":{"role":"assistant"}}',
        '{"type":"ishiki.tools.catalog","data":{}}',
        "[1]",
    )
    store = '{"type":"ishiki.codemode.store","data":{"set":{"a":[1,2.50]},"delete":[]},"timestamp":77}'
    entries = tuple(Raw(text.encode()) for text in (assistant, *refused, store))
    agent.runtime.answers = [Answer(entries=entries)]
    await say(agent, said(1, mention(), at=NOW))
    await until(lambda: "turn.done" in agent.kinds())
    assert agent.kinds()[1:] == ["turn.start", "assistant", "ishiki.codemode.store", "turn.done"]
    raw = (agent.house.folder / "runtimes" / SESSION / "events.jsonl").read_text().splitlines()
    assert assistant[len('{"type":"message",') : -1] in raw[2]
    assert '"data":{"set":{"a":[1,2.50]},"delete":[]},"timestamp":77' in raw[3]


async def test_entries_of_a_runtime_become_one_compact_line_each_in_the_formats_order(
    agent: Agent, until: Until
) -> None:
    pretty = """{
      "type": "message", "turnId": "elsewhere", "id": "CAUSE",
      "data": {"content": [ {"type": "text", "text": "a\\nb"} ], "usage": null,
               "role": "assistant", "zz": 1.50, "id": "MESSAGE"}
    }"""
    await say(agent, said(1, at=NOW))
    cause, message = agent.lines()[0]["id"], agent.lines()[0]["data"]["id"]
    same = '{"type":"ishiki.compact","id":"x","data":{"summary":"\\ud83d","lastEntryId":"a"}}'
    tool = '{"type":"message","data":{"role":"tool","content":"no list"}}'
    entries = tuple(
        Raw(text.encode()) for text in (pretty.replace("CAUSE", cause).replace("MESSAGE", message), same, same, tool)
    )
    agent.runtime.answers = [Answer(entries=entries)]
    await say(agent, said(2, mention(), at=NOW))
    await until(lambda: "turn.done" in agent.kinds())
    raw = (agent.house.folder / "runtimes" / SESSION / "events.jsonl").read_text().splitlines()
    assert agent.kinds()[2:] == ["turn.start", "assistant", "ishiki.compact", "ishiki.compact", "turn.done"]
    members = list(agent.lines()[3]["data"])
    assert members == ["id", "timestamp", "role", "content", "zz"]
    assert '"content":[{"type":"text","text":"a\\nb"}],"zz":1.50}' in raw[3]
    ids = [line["id"] for line in agent.lines()]
    ids += [line["data"]["id"] for line in agent.lines() if "id" in line["data"]]
    assert len(set(ids)) == len(ids)
    assert agent.lines()[3]["turnId"] == agent.lines()[2]["turnId"]
    assert "\\ud83d" in raw[4]


async def test_a_turn_that_trips_us_ends_all_the_same(agent: Agent, until: Until) -> None:
    agent.runtime.answers = [ZeroDivisionError("what was said")]
    await say(agent, said(1, mention(), at=NOW))
    await until(lambda: "turn.failed" in agent.kinds())
    assert "what was said" not in json.dumps(agent.lines()[-1])
    await say(agent, said(2, mention(), at=NOW))
    await until(lambda: "turn.done" in agent.kinds())


class DyingChat(FakeChat):
    """The process ends while the second part is on its way, or waits to be tried again."""

    refused = False

    async def send(self, *arguments: Any, **named: Any) -> Any:
        if len(self.sent) == 1:
            if self.refused:
                raise ChatUnavailable("slow down", retry_after=60)
            await asyncio.Event().wait()
        return await super().send(*arguments, **named)


@asynccontextmanager
async def after_a_kill(
    agent: Agent, until: Until, *, knows_nonces: bool = True, refused: bool = False
) -> AsyncGenerator[Agent]:
    """The next process, where the last one was killed with a reply half said."""
    agent.chat = DyingChat(limit=4, knows_nonces=knows_nonces)
    agent.chat.refused = refused
    agent.runtime.answers = [Answer(reply="abcdefghijkl")]
    await say(agent, said(1, mention(), at=NOW))
    await until(lambda: agent.chat.sent)
    await asyncio.sleep(0.1)  # the ledger is told of the refusal
    copy = agent.house.folder.with_name("after")
    shutil.copytree(agent.house.folder, copy)  # what a killed process leaves behind
    later = House(copy)
    await later.open()
    again = Agent(later)
    again.chat = FakeChat(limit=4, sent=list(agent.chat.sent), knows_nonces=knows_nonces)
    await again.start()
    yield again
    await again.gateway.stop()
    await later.close()


async def test_a_reply_that_a_kill_cut_off_is_said_to_its_end_after_the_start(agent: Agent, until: Until) -> None:
    async with after_a_kill(agent, until) as again:
        await until(lambda: again.kinds()[-1] == "turn.done")
        assert again.kinds()[1:] == ["turn.start", "turn.failed", "turn.start", "assistant", "tool", "turn.done"]
        assert [sent.text for sent in again.chat.sent] == ["abcd", "efgh", "ijkl"]
        turn = again.lines()[1]["turnId"]
        assert [sent.nonce for sent in again.chat.sent] == [f"{turn}:{number}" for number in (1, 2, 3)]
        assert {line["turnId"] for line in again.lines()[3:]} == {rest_of(turn)}
        assert again.lines()[4]["data"]["content"][0]["input"]["messages"] == ["abcdefghijkl"]
        value = again.lines()[5]["data"]["content"][0]["output"]["value"]
        assert value == {"ok": True, "ids": ["9001", "9002", "9003"]}
        await again.restart()
        await say(again, said(2, at=NOW))
        assert again.kinds()[-1] == "ishiki.message.created"
        assert len(again.kinds()) == 8


async def test_where_nobody_can_tell_whether_a_part_was_sent_the_rest_is_given_up(agent: Agent, until: Until) -> None:
    async with after_a_kill(agent, until, knows_nonces=False) as again:
        await until(lambda: again.kinds()[-1] == "turn.done")
        value = again.lines()[-2]["data"]["content"][0]["output"]["value"]
        assert (value["sent"], value["failedAt"], value["error"]["name"]) == (["9001"], 0, "UnknownOutcome")
        assert len(again.chat.sent) == 1


async def test_a_reply_that_was_cut_off_long_ago_is_only_written_down(
    agent: Agent, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core.chat.speak, "FINISHED_WITHIN_MS", -1)
    async with after_a_kill(agent, until) as again:
        await until(lambda: again.kinds()[-1] == "turn.done")
        value = again.lines()[-2]["data"]["content"][0]["output"]["value"]
        assert (value["sent"], value["failedAt"], value["error"]["name"]) == (["9001"], 0, "Interrupted")
        assert len(again.chat.sent) == 1


async def test_a_part_that_was_surely_not_sent_is_sent_after_a_kill_on_any_platform(agent: Agent, until: Until) -> None:
    async with after_a_kill(agent, until, knows_nonces=False, refused=True) as again:
        await until(lambda: again.kinds()[-1] == "turn.done")
        assert [sent.text for sent in again.chat.sent] == ["abcd", "efgh", "ijkl"]


async def test_a_reply_that_the_chat_refuses_is_written_down_as_failed(agent: Agent, until: Until) -> None:
    agent.chat.refusals = [ChatRefused("the bot may not write here", name="Forbidden")]
    agent.runtime.answers = [Answer(reply="hello")]
    await say(agent, said(1, mention(), at=NOW))
    await until(lambda: "turn.done" in agent.kinds())
    value = agent.lines()[-2]["data"]["content"][0]["output"]["value"]
    error = {"name": "Forbidden", "message": "the bot may not write here"}
    assert value == {"ok": False, "error": error, "sent": [], "failedAt": 0}


async def test_a_stop_aborts_the_turn_and_a_restart_does_not_repeat_it(agent: Agent, until: Until) -> None:
    agent.runtime.holding = asyncio.Event()
    await say(agent, said(1, mention(), at=NOW))
    await until(lambda: agent.runtime.woken)
    await agent.restart()
    assert agent.kinds()[-1] == "turn.aborted"
    agent.runtime.holding = None
    await say(agent, said(2, mention(), at=NOW))
    await until(lambda: "turn.done" in agent.kinds())
    assert len(agent.runtime.woken) == 2
    assert agent.kinds().count("turn.start") == 2


async def test_a_wake_that_was_owed_when_the_process_ended_is_paid_after_the_restart(
    house: House, until: Until
) -> None:
    await house.sessions.of(SESSION).append([said(1, mention(), at=NOW)])
    await house.reopen()
    agent = Agent(house)
    await agent.start()
    await until(lambda: "turn.done" in agent.kinds())
    await agent.restart()
    await say(agent, said(2, at=NOW))
    await until(lambda: len(agent.delivered()) == 2)
    assert len(agent.runtime.woken) == 1
    await agent.gateway.stop()


async def test_at_most_twenty_turns_run_in_a_minute(agent: Agent, until: Until) -> None:
    for number in range(1, 22):
        await say(agent, said(number, mention(), at=NOW))
        await until(lambda wanted=number: agent.kinds().count("turn.done") == min(wanted, 20))
    await until(lambda: len(agent.delivered()) == 21)
    await asyncio.sleep(0.1)
    assert len(agent.runtime.woken) == 20


async def test_old_backlog_is_delivered_and_wakes_nobody(agent: Agent, until: Until) -> None:
    await say(agent, said(1, mention(), at=1_793_600_000_000))
    await until(agent.delivered)
    await say(agent, said(2, at=NOW))
    await until(lambda: len(agent.delivered()) == 2)
    assert agent.runtime.woken == []


async def test_while_a_turn_runs_and_after_it_is_known_what_it_answers(agent: Agent, until: Until) -> None:
    agent.runtime.holding = asyncio.Event()
    await say(agent, said(2, mention(), at=NOW))
    await until(lambda: agent.runtime.woken)
    turn = agent.runtime.woken[0][1]
    found = agent.turns.cause(SESSION, turn)
    assert found is not None
    assert found.message is not None
    assert (found.entry, found.message.message_id) == (agent.lines()[0]["id"], "2")
    agent.runtime.holding.set()
    await until(lambda: "turn.done" in agent.kinds())
    assert agent.turns.cause(SESSION, turn) == found, "it may still ask"
    assert agent.turns.cause(discord_session(7), turn) is None
    assert agent.turns.cause(SESSION, TurnId("another")) is None


async def test_a_turn_that_somebody_stops_ends_at_once_and_the_next_one_runs(agent: Agent, until: Until) -> None:
    agent.runtime.holding = asyncio.Event()
    await say(agent, said(1, mention(), at=NOW))
    await until(lambda: agent.runtime.woken)
    agent.turns.stop(*agent.runtime.woken[0][:2], a_task(1))
    await until(lambda: "turn.aborted" in agent.kinds())
    aborted = agent.lines()[-1]["data"]
    assert (aborted["turnId"], aborted["reason"]) == (agent.runtime.woken[0][1], f"stopped {a_task(1)}")
    assert agent.chat.sent == []
    agent.runtime.holding.set()
    agent.runtime.answers = [Answer(reply="yes?")]
    await say(agent, said(2, mention(), at=NOW))
    await until(lambda: "turn.done" in agent.kinds())
    assert agent.kinds().count("turn.start") == 2
    await agent.restart()
    await asyncio.sleep(0.05)
    assert len(agent.runtime.woken) == 2, "a stopped turn is not run again"


async def test_stopping_what_does_not_run_stops_nothing(agent: Agent, until: Until) -> None:
    agent.turns.stop(SESSION, TurnId("none"), a_task(1))
    await say(agent, said(1, mention(), at=NOW))
    await until(lambda: "turn.done" in agent.kinds())
    agent.turns.stop(*agent.runtime.woken[0][:2], a_task(1))
    await say(agent, said(2, mention(), at=NOW))
    await until(lambda: agent.kinds().count("turn.done") == 2)
    assert "turn.aborted" not in agent.kinds()


async def test_an_answer_to_a_question_is_delivered_and_wakes_nobody(agent: Agent, until: Until) -> None:
    async def is_answer(session: SessionId, message: MessageCreated) -> bool:
        return session == SESSION and message.message_id == "1"

    await agent.gateway.stop()
    agent.is_answer = is_answer
    await agent.start()
    await say(agent, said(1, mention(), at=NOW))
    await until(lambda: len(agent.delivered()) == 1)
    await asyncio.sleep(0.05)
    assert agent.runtime.woken == []
    await say(agent, said(2, mention(), at=NOW))
    await until(lambda: "turn.done" in agent.kinds())
    assert len(agent.runtime.woken) == 1
    await agent.restart()
    await asyncio.sleep(0.05)
    assert len(agent.runtime.woken) == 1
