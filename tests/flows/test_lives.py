"""Sessions that end, turns that are alive, and the audit line, with the real program (sessions.md 7)."""

import asyncio
import os
import re
import sqlite3
import time
from pathlib import Path

import pytest

from bots.sandbox.discord import DiscordSandbox
from bots.sandbox.runtime import RuntimeSandbox, Turn
from bots.sandbox.telegram import TelegramSandbox
from core.actionlog.file import load
from core.ids import SessionId, discord_session, new_session
from tests.conftest import Until
from tests.flows.operators import Operator


@pytest.fixture
def operator(tmp_path: Path, discord: DiscordSandbox, telegram: TelegramSandbox) -> Operator:
    return Operator(tmp_path, discord, telegram)


def make_old(operator: Operator, session: SessionId, *, seconds: float) -> Path:
    folder = operator.data / "runtimes" / session
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_text('{"id":"a","type":"state","data":{"version":1},"timestamp":1}\n')
    then = time.time() - seconds
    for path in (folder / "events.jsonl", folder):
        os.utime(path, (then, then))
    return folder


async def test_only_temp_sessions_that_are_idle_go_at_the_start_and_old_layouts_stay(
    operator: Operator, until: Until
) -> None:
    idle = make_old(operator, new_session("temp"), seconds=1900)
    kept = [
        make_old(operator, new_session("temp"), seconds=1700),
        make_old(operator, new_session("cli"), seconds=10**6),
        make_old(operator, new_session("chat"), seconds=10**6),
        make_old(operator, SessionId("dc-5"), seconds=10**6),
    ]
    old = [kept[0] / name for name in ("bot.json", "bot.md", "config.json", "status.json", "usage.log")]
    for path in old:
        path.write_text("{not json")
    (kept[1] / "history").mkdir()
    async with operator.running():
        await until(lambda: not idle.exists())
    assert all(folder.exists() for folder in kept)
    assert {path.read_text() for path in old} == {"{not json"}
    assert (kept[1] / "history").is_dir()


def keys(operator: Operator) -> list[tuple[str, int]]:
    database = sqlite3.connect(operator.data / ".store" / "history.db")
    try:
        return database.execute("SELECT key, expires_at FROM live").fetchall()
    finally:
        database.close()


async def test_a_turn_of_a_killed_process_holds_a_key_that_runs_out(
    operator: Operator, discord: DiscordSandbox, until: Until
) -> None:
    async def think(_turn: Turn) -> dict[str, object]:
        await asyncio.sleep(60)
        return {}

    channel, mona = discord.guild("Film club").text_channel("general"), discord.user("Mona")
    async with RuntimeSandbox(think) as runtime:
        settings = {"ISHIKI_RUNTIME_URL": runtime.url, "ISHIKI_RUNTIME_TOKEN": runtime.token}
        async with operator.running(**settings) as process:
            await mona.say(channel, f"<@{discord.bot.id}> think")
            await until(lambda: "turn.start" in operator.kinds(discord_session(channel.id)))
            await operator.kill(process)
        ((key, expires_at),) = keys(operator)
        assert re.fullmatch(rf"action:{discord_session(channel.id)}:[0-9a-f-]{{36}}", key)
        assert expires_at <= time.time() * 1000 + 60_000
        async with operator.running(**settings):
            await until(lambda: not keys(operator))


async def test_every_line_of_the_action_log_is_read_back_and_a_new_session_is_named(
    operator: Operator, discord: DiscordSandbox, until: Until
) -> None:
    async def think(_turn: Turn) -> dict[str, object]:
        return {"reply": "yes,\nat eight"}

    channel, mona = discord.guild("Film club").text_channel("general"), discord.user("Mona")
    folder = operator.data / "runtimes" / discord_session(channel.id)
    async with RuntimeSandbox(think) as runtime:
        settings = {"ISHIKI_RUNTIME_URL": runtime.url, "ISHIKI_RUNTIME_TOKEN": runtime.token}
        async with operator.running(**settings):
            await mona.say(channel, f"<@{discord.bot.id}> is it\nFriday?")
            await until(lambda: any(line.kind == "done" for line, _ in load(folder).events))
    found = load(folder)
    assert found.dropped == 0
    assert [line.kind for line, _ in found.events] == ["user", "tool_call", "tool_result", "done"]
    assert found.events[0][0].content.endswith("is it\nFriday?")
    assert {line.task is not None for line, _ in found.events} == {True}
    assert len({line.window for line, _ in found.events}) == 1
