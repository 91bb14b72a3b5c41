"""Asking people, with the whole program: over its API, killed in between, from the terminal."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from bots.sandbox.discord import DiscordSandbox
from bots.sandbox.discord.model import Channel
from bots.sandbox.runtime import RuntimeSandbox, Turn
from bots.sandbox.telegram import TelegramSandbox
from core.ids import SessionId, discord_session, telegram_session
from tests.conftest import Until
from tests.flows.operators import Operator

TOKEN = "the operator's own"
CHATS = 25
QUESTIONS = 4


@pytest.fixture
async def runtime() -> AsyncIterator[RuntimeSandbox]:
    async with RuntimeSandbox() as runtime:
        yield runtime


@pytest.fixture
def operator(tmp_path: Path, discord: DiscordSandbox, telegram: TelegramSandbox, runtime: RuntimeSandbox) -> Operator:
    operator = Operator(tmp_path, discord, telegram)
    operator.environment |= {
        "ISHIKI_HTTP_TOKEN": TOKEN,
        "ISHIKI_RUNTIME_URL": runtime.url,
        "ISHIKI_RUNTIME_TOKEN": runtime.token,
    }
    return operator


async def ask(api: httpx.AsyncClient, session: SessionId, **body: object) -> str:
    response = await api.post(f"/v1/session/{session}/confirm", json={"tool": "write_file"} | body)
    assert response.status_code == 202, response.text
    return response.json()["task_hash"]


async def test_a_turn_asks_its_requester_and_stop_ends_it(
    operator: Operator, discord: DiscordSandbox, runtime: RuntimeSandbox, until: Until
) -> None:
    asked: list[str] = []

    async def think(turn: Turn) -> dict[str, Any]:
        session = SessionId(turn.session)
        async with operator.api(runtime.token) as api:
            asked.extend([await ask(api, session, choices=["yes", "stop"]) for _ in range(2)])
            own = await api.post(f"/v1/session/{session}/pending/{asked[0]}", json={"choice": "yes"})
            asked.append(str(own.status_code))
        await asyncio.sleep(30)
        return {"reply": "never said"}

    runtime.think = think
    channel = discord.guild("Film club").text_channel("general")
    mona, jiro = discord.user("Mona"), discord.user("Jiro")
    session = discord_session(channel.id)
    async with operator.running():
        cause = await mona.say(channel, f"<@{discord.bot.id}> write it down")
        prompt = await discord.bot_message(channel, containing="write_file")
        assert prompt.reference is not None
        assert prompt.reference.message_id == cause.id
        refused = await jiro.press(prompt, "Yes")
        assert refused is not None
        assert "Mona" in refused.text
        await until(lambda: len(asked) == 3)
        assert await mona.press(prompt, "Stop") is not None
        await until(lambda: operator.kinds(session)[-1] == "turn.aborted")
        await until(lambda: len(runtime.decisions) == 2)
        assert {decision["status"] for decision in runtime.decisions.values()} == {"stopped"}
        assert [*runtime.decisions, "403"] == asked


async def test_a_press_whose_acknowledgement_never_came_counts_once_over_a_kill(
    operator: Operator, discord: DiscordSandbox, telegram: TelegramSandbox, runtime: RuntimeSandbox, until: Until
) -> None:
    channel = discord.guild("Film club").text_channel("general")
    mona, anna = discord.user("Mona"), telegram.user("Anna")
    here, there = discord_session(channel.id), telegram_session(anna.id)
    async with operator.running() as process, operator.api(TOKEN) as api:
        await mona.say(channel, "hello")
        await anna.say(anna.private_chat, "hello")
        await until(lambda: operator.lines(here) and operator.lines(there))
        first = await ask(api, here, requester=mona.id)
        second = await ask(api, there, requester=str(anna.id))
        prompt = await discord.bot_message(channel)
        other = await telegram.bot_message(anna.private_chat, containing="write_file")
        runtime.fail("/resolve", 503, times=1000)
        discord.fail("POST /interactions/", 0, times=10)
        telegram.lose_answer("answerCallbackQuery")
        await mona.press_unanswered(prompt, "Yes")
        await anna.press_unanswered(other, "No")

        async def both() -> list[str]:
            found = [
                await api.get(f"/v1/session/{sid}/pending/{task}") for sid, task in ((here, first), (there, second))
            ]
            return [one.json()["status"] for one in found]

        async with asyncio.timeout(10):
            while await both() != ["approved", "denied"]:  # noqa: ASYNC110 - another process is asked
                await asyncio.sleep(0.02)
        await operator.kill(process)
    runtime.faults.clear()
    async with operator.running(), operator.api(TOKEN) as api:
        await until(lambda: len(runtime.decisions) == 2 and not prompt.components and not other.buttons)
        told = [call for call in runtime.calls if call.path == "/resolve" and call.status == 204]
        assert sorted((call.body["taskHash"], call.body["status"]) for call in told) == sorted(
            [(first, "approved"), (second, "denied")]
        )
        late = await api.post(f"/v1/session/{here}/pending/{first}", json={"choice": "no"})
        assert late.status_code == 410


def told_in_order(runtime: RuntimeSandbox) -> dict[str, list[str]]:
    """The approvals that each session was told, by hash; a repeat is the same."""
    order: dict[str, list[str]] = {}
    for call in runtime.calls:
        if call.path == "/resolve" and call.status == 204:
            assert call.body["status"] == "approved"
            hashes = order.setdefault(call.body["sessionId"], [])
            if call.body["taskHash"] not in hashes:
                hashes.append(call.body["taskHash"])
    return order


async def test_many_questions_in_many_chats_keep_their_order_and_none_is_lost_over_kills(
    operator: Operator, discord: DiscordSandbox, runtime: RuntimeSandbox, until: Until
) -> None:
    club = discord.guild("Film club")
    channels = [club.text_channel(f"room-{number}") for number in range(CHATS)]
    mona = discord.user("Mona")
    asked: dict[str, list[str]] = {channel.id: [] for channel in channels}

    def open_prompts(channel: Channel) -> list[str]:
        return [
            message.id for message in discord.history(channel) if message.author is discord.bot and message.components
        ]

    async def answer_some(most: int) -> None:
        """Press in whatever chat has a prompt, until so many are decided."""
        while len(runtime.decisions) < most:
            for channel in channels:
                assert len(open_prompts(channel)) <= 1
                found = [one for one in discord.history(channel) if one.id in open_prompts(channel)]
                if found:
                    await mona.press_unanswered(found[0], "Yes")
            await asyncio.sleep(0.05)

    async with operator.running() as process, operator.api(TOKEN) as api:
        for channel in channels:
            await mona.say(channel, "hello")
        await until(lambda: all(operator.lines(discord_session(channel.id)) for channel in channels))
        for number in range(QUESTIONS):
            for channel in channels:
                hashes = asked[channel.id]
                hashes.append(await ask(api, discord_session(channel.id), requester=mona.id, text=f"number {number}"))
        await until(lambda: all(open_prompts(channel) for channel in channels))
        await operator.kill(process)
    for most in (CHATS, 2 * CHATS):
        async with operator.running() as process:
            async with asyncio.timeout(40):
                await answer_some(most)
            await operator.kill(process)
    async with operator.running():
        async with asyncio.timeout(60):
            await answer_some(CHATS * QUESTIONS)
        await until(lambda: not any(open_prompts(channel) for channel in channels))
    assert told_in_order(runtime) == {discord_session(channel.id): asked[channel.id] for channel in channels}


async def test_the_terminal_answers_while_it_runs_and_while_it_does_not(
    operator: Operator, discord: DiscordSandbox, runtime: RuntimeSandbox, until: Until
) -> None:
    channel = discord.guild("Film club").text_channel("general")
    mona = discord.user("Mona")
    session = discord_session(channel.id)
    async with operator.running(), operator.api(runtime.token) as api:
        await mona.say(channel, "hello")
        await until(lambda: operator.lines(session))
        first = await ask(api, session)
        second = await ask(api, session)
        code, shown, _ = await operator.ishiki("pending")
        assert code == 0
        assert first in shown
        assert second in shown
        assert (await operator.ishiki("answer", first, "yes"))[0] == 0
        await until(lambda: runtime.decisions.get(first))
        assert runtime.decisions[first]["by"]["platform"] == "cli"
        prompt = await discord.bot_message(channel)
        await until(lambda: not prompt.components)
        assert "operator" in prompt.content
    assert (await operator.ishiki("answer", second, "no"))[0] == 0
    code, _, told = await operator.ishiki("answer", second, "yes")
    assert (code, "Traceback" in told) == (1, False)
    async with operator.running():
        await until(lambda: runtime.decisions.get(second))
        assert runtime.decisions[second]["status"] == "denied"


async def test_a_session_without_anybody_in_it_is_asked_and_then_it_is_over(
    operator: Operator, runtime: RuntimeSandbox, until: Until
) -> None:
    async with operator.running(), operator.api(TOKEN) as api:
        session = SessionId((await api.post("/v1/session", json={})).json()["session_id"])
        task = await ask(api, session, timeout=0.5)
        record = (await api.get(f"/v1/session/{session}/pending/{task}", params={"wait": 5})).json()
        assert record["status"] == "expired"
        await until(lambda: runtime.decisions.get(task))


async def test_a_helper_asks_in_the_chat_that_its_work_came_from(
    operator: Operator, discord: DiscordSandbox, runtime: RuntimeSandbox, until: Until
) -> None:
    async def think(turn: Turn) -> dict[str, Any]:
        async with operator.api(runtime.token) as api:
            if turn.session.startswith("temp-"):
                task = await ask(api, SessionId(turn.session))
                decided = await api.get(f"/v1/session/{turn.session}/pending/{task}", params={"wait": 10})
                return {"reply": f"helper: {decided.json()['status']}"}
            helped = await api.post("/v1/send", json={"content": "look it up", "origin": turn.session})
            return {"reply": helped.json()["text"]}

    runtime.think = think
    channel = discord.guild("Film club").text_channel("general")
    mona = discord.user("Mona")
    async with operator.running():
        await mona.say(channel, f"<@{discord.bot.id}> look it up")
        prompt = await discord.bot_message(channel, containing="write_file")
        assert await mona.press(prompt, "Yes") is not None
        await discord.bot_message(channel, containing="helper: approved")
