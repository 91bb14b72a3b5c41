"""``action.log`` as it is written from a real log: every line once, also over a kill; old lines are cut off."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from core.actionlog.file import add, load
from core.actionlog.follow import ActionLog
from core.actionlog.line import Line
from core.entries import (
    AnyEntry,
    AssistantMessage,
    FailureCause,
    ToolMessage,
    TurnAborted,
    TurnDone,
    TurnFailed,
    TurnStart,
    UserMessage,
    message_entry,
    turn_event,
)
from core.gateway import Gateway
from core.ids import TurnId
from core.sessions.facts import Written
from tests.builders import MONA, SESSION, a_confirmation, retracted, said
from tests.conftest import House, Until

TURN = TurnId("e061c676-0701-4e5c-b2c8-565cf9462c91")
NOW = 1_793_530_000_000


def _raw(value: Any) -> Raw:
    return Raw(json.dumps(value).encode())


def step(*parts: dict[str, Any]) -> AnyEntry:
    return message_entry(
        AssistantMessage(id="a", timestamp=NOW, content=_raw(list(parts))), now=NOW + 1500, turn_id=TURN
    )


def results(*parts: dict[str, Any]) -> AnyEntry:
    return message_entry(ToolMessage(id="t", timestamp=NOW, content=_raw(list(parts))), now=NOW + 1600, turn_id=TURN)


def result(tool: str, output: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool-result", "toolCallId": "1", "toolName": tool, "output": output}


def call(tool: str, given: Any) -> dict[str, Any]:
    return {"type": "tool-call", "toolCallId": "1", "toolName": tool, "input": given}


async def follow(house: House) -> Gateway:
    gateway = Gateway(house.sessions, [ActionLog(house.sessions.folder, house.store, gathered=0)], house.store)
    await gateway.start()
    return gateway


def path_in(house: House) -> Path:
    return house.folder / "runtimes" / SESSION / "action.log"


def told(house: House) -> list[str]:
    """The lines without moment and window."""
    text = path_in(house).read_text() if path_in(house).exists() else ""
    return [re.sub(r"^\[[^]]*\]\[[0-9a-f]{8}\]", "", line) for line in text.split("\n")[:-1]]


async def test_each_kind_has_its_line(house: House, until: Until) -> None:
    gateway = await follow(house)
    session = house.sessions.of(SESSION)
    user = UserMessage(id="u", timestamp=NOW, content=_raw("two\r\nlines"))
    await session.append([said(1, "is <b>it</b> Friday?"), Written((message_entry(user, now=NOW),))])
    await session.append([Written((turn_event(TurnStart(turn_id=TURN), now=NOW),))])
    await session.append([said(2, "or Thursday?")])
    await session.append([said(2, "Friday!", edited_at=NOW)])
    await session.append([retracted(1)])
    secret = {"path": "x", "api_key": "sk-123"}
    said_it = call("send_message", {"messages": ["yes, at eight"], "mode": "markdown"})
    reasoning = {"type": "reasoning", "text": "hm"}
    denied, failed = {"type": "execution-denied"}, {"type": "error-text", "value": "long output"}
    lines = (
        step(reasoning, said_it, call("read_file", secret), {"type": "text", "text": "done"}),
        results(
            result("send_message", {"type": "json", "value": {"ok": True, "ids": ["1"]}}),
            result("send_message", {"type": "json", "value": {"ok": False}}),
            result("read_file", failed),
            result("write_file", denied),
        ),
        turn_event(TurnDone(turn_id=TURN, usage=_raw({"inputTokens": 9, "outputTokens": 4})), now=NOW + 62_500),
        turn_event(TurnFailed(turn_id=TURN, error=FailureCause(name="X", message="it broke")), now=NOW),
        turn_event(TurnAborted(turn_id=TURN, reason="stop"), now=NOW),
    )
    await session.append([Written(lines)])
    await until(lambda: len(told(house)) == 16)
    turn = f"[{TURN}]"
    assert told(house) == [
        "[user][] is it Friday?",
        "[user][] two\x1flines",
        f"[steer]{turn} or Thursday?",
        f"[edit]{turn} 2 Friday!",
        f"[delete]{turn} 1",
        f"[thinking]{turn} hm",
        f'[tool_call]{turn} Send("yes, at eight")',
        f'[tool_call]{turn} ReadFile({{"path":"x","api_key":"…"}})',
        f"[assistant]{turn} done",
        f"[tool_result]{turn} send_message ok",
        f"[tool_result]{turn} send_message err",
        f"[tool_result]{turn} read_file err",
        f"[tool_skipped]{turn} write_file",
        f"[done]{turn} dur=1m2.5s in=9 out=4",
        f"[error]{turn} - it broke",
        f"[canceled]{turn} ",
    ]
    await gateway.stop()


async def test_no_line_stands_twice_after_a_kill(house: House, until: Until, tmp_path: Path) -> None:
    gateway = await follow(house)
    await house.sessions.of(SESSION).append([said(1, "one"), said(2, "two"), said(3, "two")])
    await until(lambda: len(told(house)) == 3)
    shutil.copytree(house.folder, tmp_path / "after")  # before the receipt was written
    path = tmp_path / "after" / "runtimes" / SESSION / "action.log"
    path.write_bytes(path.read_bytes()[:-2])  # and the last line was torn
    await gateway.stop()
    after = House(tmp_path / "after")
    await after.open()
    gateway = await follow(after)
    await after.sessions.of(SESSION).append([said(4, "three")])
    await until(lambda: "[user][] three" in told(after))
    texts = [event for line, event in load(path.parent).events if line.kind == "user"]
    assert [text[0] for text in texts if isinstance(text, tuple)] == ["one", "two", "tw", "two", "three"]
    await gateway.stop()
    await after.close()


async def test_a_confirmation_is_told_once_and_so_is_its_decision(house: House) -> None:
    await house.sessions.of(SESSION).append([said()])
    record = a_confirmation(at=NOW, turn_id=TURN)
    decided = record.with_(status="approved", choice="yes", by=MONA, decided_at=NOW + 1)
    actions = ActionLog(house.sessions.folder, house.store)
    for change in (record, record, decided, decided):
        actions.on_record(change)
    await actions.stop()
    again = ActionLog(house.sessions.folder, house.store)
    again.on_record(decided)  # after a restart, when it is handed on
    await again.stop()
    task = record.task_hash
    assert told(house) == [
        f"[tool_confirm][{TURN}] write_file",
        f"[pending][{TURN}] {task}",
        f"[decision][{TURN}] {task} approved yes discord:11",
    ]


async def test_a_folder_that_is_gone_is_not_made_again(house: House) -> None:
    actions = ActionLog(house.sessions.folder, house.store)
    actions.on_record(a_confirmation())
    await actions.stop()
    assert not path_in(house).parent.exists()


@pytest.mark.parametrize("length", [10, 500])
def test_what_is_old_is_cut_off_at_a_line(tmp_path: Path, length: int) -> None:
    line = Line("2026-11-01 19:04:09.900", "3fa91c0e", "user", "", "é" * length)
    for _ in range(40):
        add(tmp_path, [line], most=1000, kept=600)
        size = (tmp_path / "action.log").stat().st_size
        assert size <= max(1000, len(str(line).encode()) + 1)
    assert set((tmp_path / "action.log").read_text().split("\n")[:-1]) == {str(line)}
    assert load(tmp_path).dropped == 0
