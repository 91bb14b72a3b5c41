"""What came while the program was off: recorded in full, and answered once."""

from pathlib import Path

import pytest

from bots.sandbox.discord import DiscordSandbox
from bots.sandbox.runtime import RuntimeSandbox
from bots.sandbox.telegram import TelegramSandbox
from core.ids import discord_session, telegram_session
from tests.conftest import Until
from tests.flows.operators import Operator


@pytest.fixture
def operator(tmp_path: Path, discord: DiscordSandbox, telegram: TelegramSandbox) -> Operator:
    return Operator(tmp_path, discord, telegram)


async def test_a_backlog_wakes_a_session_once_on_either_platform(
    operator: Operator, discord: DiscordSandbox, telegram: TelegramSandbox, until: Until
) -> None:
    channel = discord.guild("Film club").text_channel("general")
    mona, anna = discord.user("Mona"), telegram.user("Anna")
    here, there = discord_session(channel.id), telegram_session(anna.id)
    async with RuntimeSandbox() as runtime:
        told = {"ISHIKI_RUNTIME_URL": runtime.url, "ISHIKI_RUNTIME_TOKEN": runtime.token}
        async with operator.running(**told) as process:
            await mona.say(channel, "before")
            await anna.say(anna.private_chat, "before")
            await until(lambda: operator.kinds(there)[-1:] == ["turn.done"] and operator.kinds(here))
            await operator.kill(process)
        for number in range(200):  # answers that are all full
            await anna.say(anna.private_chat, f"{number}")
        asked = [await mona.say(channel, f"<@{discord.bot.id}> {number}") for number in range(3)]
        await mona.delete(asked[-1])
        async with operator.running(**told):
            await until(
                lambda: operator.kinds(here)[-1:] == ["turn.done"] and operator.kinds(there).count("turn.done") == 2
            )
            await until(lambda: len(runtime.entries.get(there, [])) == 201)
            await mona.say(channel, "after")
            await until(lambda: len(runtime.entries.get(here, [])) == 4)
        wakes = [
            (call.body["sessionId"], call.body["cause"]["entryId"]) for call in runtime.calls if call.path == "/wake"
        ]
    last = next(line["id"] for line in operator.lines(there)[::-1] if "messageId" in str(line))
    assert [entry for session, entry in wakes if session == there][1:] == [last]
    newest = next(line["id"] for line in operator.lines(here) if asked[1].id in str(line))
    assert [entry for session, entry in wakes if session == here] == [newest]
    assert (await operator.ishiki("log", "check"))[0] == 0


async def test_what_was_owed_before_a_crash_is_not_acted_on_when_it_was_taken_back_meanwhile(
    operator: Operator, discord: DiscordSandbox, until: Until
) -> None:
    channel = discord.guild("Film club").text_channel("general")
    mona = discord.user("Mona")
    here = discord_session(channel.id)
    async with RuntimeSandbox() as runtime:
        told = {"ISHIKI_RUNTIME_URL": runtime.url, "ISHIKI_RUNTIME_TOKEN": runtime.token, "TELEGRAM_TOKEN": ""}
        runtime.fail("/deliver", 503, times=1000)
        async with operator.running(**told) as process:
            asked = await mona.say(channel, f"<@{discord.bot.id}> forget that")
            await until(lambda: operator.lines(here))
            await operator.kill(process)
        await mona.delete(asked)
        runtime.recover()
        async with operator.running(**told):
            await until(lambda: len(runtime.entries.get(here, [])) == 2)
            await mona.say(channel, "after")
            await until(lambda: len(runtime.entries.get(here, [])) == 3)
        assert [call.path for call in runtime.calls if call.path == "/wake"] == []
    assert operator.lines(here)[1]["data"]["data"]["inferred"] is True
