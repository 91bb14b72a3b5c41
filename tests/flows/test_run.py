"""``ishiki run`` as an operator starts it: a process of its own, against the loopback platforms."""

import json
import socket
from pathlib import Path

import pytest

from bots.sandbox.discord import DiscordSandbox
from bots.sandbox.discord import File as DiscordFile
from bots.sandbox.runtime import RuntimeSandbox, Turn
from bots.sandbox.telegram import TelegramSandbox
from core.ids import discord_session, telegram_session
from tests.conftest import Until
from tests.flows.operators import Operator, free_port

PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000030000000208020000001d7b2d8d") + bytes(20)


@pytest.fixture
def operator(tmp_path: Path, discord: DiscordSandbox, telegram: TelegramSandbox) -> Operator:
    return Operator(tmp_path, discord, telegram)


async def test_a_message_goes_all_the_way_on_both_platforms(
    operator: Operator, discord: DiscordSandbox, telegram: TelegramSandbox, until: Until
) -> None:
    async def think(turn: Turn) -> dict[str, object]:
        return {"reply": f"**{turn.rule}** {turn.cause['data']['data']['messageId']}"}

    channel = discord.guild("Film club").text_channel("general")
    mona, anna = discord.user("Mona"), telegram.user("Anna")
    here, there = discord_session(channel.id), telegram_session(anna.id)
    async with RuntimeSandbox(think) as runtime:
        async with operator.running(ISHIKI_RUNTIME_URL=runtime.url, ISHIKI_RUNTIME_TOKEN=runtime.token):
            asked = await mona.say(
                channel, f"<@{discord.bot.id}> is it this?", files=[DiscordFile("../../etc/x.png", PNG, "image/png")]
            )
            written = await anna.say(anna.private_chat, "hello <b>there</b>")
            answer = await discord.bot_message(channel, containing="mention")
            assert answer.content == f"**mention** {asked.id}"
            direct = await telegram.bot_message(anna.private_chat, containing="direct")
            assert direct.text == f"direct {written.id}"
            await until(lambda: "turn.done" in operator.kinds(here) and "turn.done" in operator.kinds(there))
            await mona.edit(asked, f"<@{discord.bot.id}> is it that?")
            await anna.edit(written, "hello here")
            await mona.delete(asked)
            await until(lambda: len(runtime.entries.get(here, [])) == 5 and len(runtime.entries.get(there, [])) == 2)
        assert all(call.body["trigger"] is False for call in runtime.calls if call.path == "/deliver")
    assert operator.kinds(here) == [
        "ishiki.message.created",
        "ishiki.attachment",
        "turn.start",
        "assistant",
        "tool",
        "turn.done",
        "ishiki.message.created",
        "ishiki.attachment",
        "ishiki.message.deleted",
    ]
    contents = [
        line["data"]["data"]["content"]
        for line in operator.lines(there)
        if line["data"].get("type", "").endswith("created")
    ]
    assert contents == ["hello &lt;b&gt;there&lt;/b&gt;", "hello here"]
    item = operator.lines(here)[1]["data"]["data"]["items"][0]
    assert item["filename"] == "x.png"
    sidecar = (
        operator.data / "runtimes" / here / "resources" / "assets" / f"{item['url'].removeprefix('asset://')}.json"
    )
    assert "removedAt" in json.loads(sidecar.read_bytes())
    assert not sidecar.with_suffix("").exists()
    assert (operator.data / ".store" / "journal").stat().st_size == 0
    assert (await operator.ishiki("log", "check"))[0] == 0
    for path in operator.data.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert discord.token.encode() not in content
            assert telegram.token.encode() not in content
            assert b"127.0.0.1" not in content


async def test_a_wrong_token_ends_the_start_with_the_cure(operator: Operator) -> None:
    code, _, errors = await operator.ishiki("run", DISCORD_TOKEN="wrong", TELEGRAM_TOKEN="")
    assert code == 2
    assert "DISCORD_TOKEN" in errors.splitlines()[-1]
    code, _, errors = await operator.ishiki("run", TELEGRAM_TOKEN="123456:wrong", DISCORD_TOKEN="")
    assert code == 2
    assert "TELEGRAM_TOKEN" in errors.splitlines()[-1]
    assert "Traceback" not in errors


async def test_certificates_that_cannot_be_read_end_the_start_with_the_cure(operator: Operator) -> None:
    nothing = str(operator.data / "none.pem")
    code, _, errors = await operator.ishiki("run", SSL_CERT_FILE=nothing)
    assert (code, errors.count("SSL_CERT_FILE"), "Traceback" in errors) == (2, 1, False)
    code, _, errors = await operator.ishiki("run", SSL_CERT_FILE=nothing, ISHIKI_DATA_DIR="/dev/null/x")
    assert (code, "Traceback" in errors) == (2, False)
    assert "/dev/null/x" in errors


async def test_an_unknown_setting_is_named(operator: Operator) -> None:
    code, _, errors = await operator.ishiki("run", ISHIKI_DATADIR="x")
    assert (code, errors.count("\n")) == (2, 1)
    assert "ISHIKI_DATADIR" in errors


async def test_a_file_in_the_place_of_the_data_folder_is_named_and_left_alone(operator: Operator) -> None:
    operator.data.write_text("mine")
    code, _, errors = await operator.ishiki("run")
    assert (code, errors.count("\n")) == (2, 1)
    assert "data" in errors
    assert operator.data.read_text() == "mine"


async def test_a_second_process_on_the_folder_is_told_who_holds_it(operator: Operator) -> None:
    async with operator.running() as first:
        code, _, errors = await operator.ishiki("run", ISHIKI_HTTP_PORT=str(free_port()))
        assert code == 2
        assert str(first.pid) in errors


async def test_a_port_that_is_taken_is_named(operator: Operator) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code, _, errors = await operator.ishiki("run", ISHIKI_HTTP_PORT=port)
    assert code == 2
    assert port in errors


async def test_a_damaged_log_is_named_and_other_sessions_go_on(
    operator: Operator, discord: DiscordSandbox, until: Until
) -> None:
    guild, mona = discord.guild("Film club"), discord.user("Mona")
    damaged, whole = guild.text_channel("damaged"), guild.text_channel("whole")
    folder = operator.data / "runtimes" / discord_session(damaged.id)
    folder.mkdir(parents=True)
    torn = '{"id":"a","type":"state","data":{"version":1},"timestamp":1}\nnot json\n{"id":"b","type":"state","da'
    (folder / "events.jsonl").write_text(torn)
    async with operator.running():
        await mona.say(damaged, "after the tear")
        await mona.say(whole, "untouched")
        await until(lambda: operator.lines(discord_session(whole.id)))
        await until(lambda: b"after the tear" in (folder / "events.jsonl").read_bytes())
    lines = (folder / "events.jsonl").read_text().splitlines()
    assert lines[:3] == torn.splitlines()
    assert json.loads(lines[3])["data"]["data"]["content"] == "after the tear"
    code, output, _ = await operator.ishiki("log", "check")
    assert code == 1
    assert "line 2" in output
    assert "line 3" in output


async def test_a_chat_that_no_rule_lets_in_leaves_no_trace(
    operator: Operator, discord: DiscordSandbox, telegram: TelegramSandbox, until: Until
) -> None:
    guild, mona, anna = discord.guild("Film club"), discord.user("Mona"), telegram.user("Anna")
    allowed, other = guild.text_channel("allowed"), guild.text_channel("other")
    async with operator.running(DISCORD_ALLOW=allowed.id, TELEGRAM_ALLOW="-1"):
        message = await mona.say(other, "secret")
        await mona.edit(message, "secret still")
        await mona.delete(message)
        await anna.say(anna.private_chat, "secret")
        thread = await mona.start_thread(allowed, "inside")
        await mona.say(thread, "hello")
        await until(lambda: operator.lines(discord_session(thread.id)))
        await until(lambda: telegram.pending_updates() == 0)
    everything = [path for path in operator.data.rglob("*") if path.is_file()]
    assert all(b"secret" not in path.read_bytes() for path in everything)
    assert not (operator.data / "runtimes" / discord_session(other.id)).exists()
    assert not (operator.data / "runtimes" / telegram_session(anna.id)).exists()
