"""``ishiki doctor`` as an operator types it."""

import asyncio
import json
from pathlib import Path

import pytest

from bots.sandbox.discord import DiscordSandbox
from bots.sandbox.runtime import RuntimeSandbox
from bots.sandbox.telegram import TelegramSandbox
from tests.flows.operators import Operator


@pytest.fixture
def operator(tmp_path: Path, discord: DiscordSandbox, telegram: TelegramSandbox) -> Operator:
    return Operator(tmp_path, discord, telegram)


def findings(output: str) -> dict[str, dict[str, str]]:
    lines = [json.loads(line) for line in output.splitlines()]
    assert all(line.keys() == {"check", "status", "message", "cure"} for line in lines)
    return {line["check"]: line for line in lines}


async def test_a_house_at_work_is_looked_at_and_not_disturbed(
    operator: Operator, discord: DiscordSandbox, telegram: TelegramSandbox
) -> None:
    channel = discord.guild("Film club").text_channel("general")
    mona, anna = discord.user("Mona"), telegram.user("Anna")
    assert channel.guild is not None
    operator.environment |= {"DISCORD_ALLOW": f"guild:{channel.guild.id}", "TELEGRAM_ALLOW": "dm"}
    async with RuntimeSandbox() as runtime:
        operator.environment |= {"ISHIKI_RUNTIME_URL": runtime.url, "ISHIKI_RUNTIME_TOKEN": runtime.token}
        async with operator.running() as process:
            await mona.say(channel, "hello")
            await anna.say(anna.private_chat, "hello")
            asked = [call.arguments for call in telegram.calls("getUpdates")]
            code, output, errors = await operator.ishiki("doctor", "--json")
            found = findings(output)
            assert (code, errors) == (0, "")
            assert [line for line in found.values() if line["status"] != "ok"] == []
            assert f"process {process.pid}" in found["holder"]["message"]
            assert "is ready" in found["api"]["message"]
            # Only the one that runs has asked for updates, and it is still logged in as it was.
            new = [call.arguments for call in telegram.calls("getUpdates")][len(asked) :]
            assert all("allowed_updates" in arguments for arguments in new)
            assert (discord.gateway.identified, discord.gateway.resumed) == (1, 0)
            _, shown, _ = await operator.ishiki("doctor")
    assert shown.splitlines()[-1].endswith("0 warn, 0 fail")
    for secret in (discord.token, telegram.token, runtime.token, telegram.api_url, discord.api_url):
        assert secret not in output + shown


async def test_a_house_that_is_robbed_of_its_updates_is_asked_itself(
    operator: Operator, telegram: TelegramSandbox
) -> None:
    async with operator.running(DISCORD_TOKEN=""):
        telegram.set_webhook("http://127.0.0.1:9/hook")
        async with operator.api("nobody") as api:
            telegram.drop_connections()
            async with asyncio.timeout(20):
                while "a webhook is set" not in (await api.get("/readyz")).text:  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.1)
        code, output, _ = await operator.ishiki("doctor", "--json", DISCORD_TOKEN="")
        telegram.set_webhook("")
    found = findings(output)
    assert code == 1
    assert found["telegram.webhook"]["status"] == "fail"
    assert found["telegram.poller"]["message"].startswith("`ishiki run` says: a webhook is set")
    assert found["api"]["status"] == "warn"


async def test_what_fails_is_told_with_its_cure_and_exit_code_1(operator: Operator) -> None:
    code, output, errors = await operator.ishiki("doctor", DISCORD_TOKEN="wrong", TELEGRAM_TOKEN="")
    assert (code, errors) == (1, "")
    assert "fail  discord.token" in output
    assert "(401) → set DISCORD_TOKEN" in output
    assert "Traceback" not in output
    assert not operator.data.exists()


async def test_a_setting_that_is_none_is_the_first_failure_with_exit_code_2(operator: Operator) -> None:
    code, output, errors = await operator.ishiki("doctor", ISHIKI_HTTP_PROT="1")
    assert (code, errors) == (2, "")
    assert output.startswith("fail  settings")
    assert "ISHIKI_HTTP_PORT" in output
    code, output, _ = await operator.ishiki("doctor", "--json", ISHIKI_HTTP_PORT="many")
    assert (code, findings(output)["settings"]["status"]) == (2, "fail")


async def test_a_stranger_without_any_setting_is_told_what_to_set(operator: Operator) -> None:
    code, output, _ = await operator.ishiki("doctor", "--json", DISCORD_TOKEN="", TELEGRAM_TOKEN="")
    assert code == 0
    assert "DISCORD_TOKEN" in findings(output)["settings"]["message"]
