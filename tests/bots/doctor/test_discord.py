"""Discord's faults, each provoked at the loopback server, as the doctor tells them."""

import asyncio
import time

import pytest

from bots.sandbox.discord.model import Intent, Permission
from tests.bots.doctor.conftest import Patient


async def test_a_token_that_is_refused_is_named_with_the_cure_and_nothing_else_is_blamed(patient: Patient) -> None:
    found = await patient.look(DISCORD_TOKEN="wrong.token.of-somebody-else")
    assert found["discord.token"].status == "fail"
    assert "401" in found["discord.token"].message
    assert "Reset Token" in found["discord.token"].cure
    assert found["discord.intents"].message == "not looked at, because of discord.token"
    assert found["telegram.token"].status == "ok"


async def test_a_token_of_other_letters_is_refused_like_any_other(patient: Patient) -> None:
    assert "401" in (await patient.look(DISCORD_TOKEN="жетон"))["discord.token"].message


async def test_a_missing_intent_is_found_without_a_login(patient: Patient) -> None:
    patient.discord.world.granted = Intent.ANY
    found = (await patient.look())["discord.intents"]
    assert found.status == "fail"
    assert "4014" in found.message
    assert patient.discord.gateway.identified == 0


async def test_a_channel_without_the_right_to_write_is_named(patient: Patient) -> None:
    await patient.discord.deny(patient.channel, Permission.SEND_MESSAGES)
    found = (await patient.look())["discord.channels"]
    assert (found.status, found.check) == ("fail", "discord.channels")
    assert f"dc-{patient.channel.id} (Send Messages)" in found.message


async def test_a_channel_that_cannot_be_seen_is_named(patient: Patient) -> None:
    await patient.discord.deny(patient.channel, Permission.VIEW_CHANNEL)
    found = (await patient.look())["discord.channels"]
    assert found.status == "fail"
    assert f"dc-{patient.channel.id} (View Channel)" in found.message


async def test_a_channel_without_history_and_files_is_a_warning(patient: Patient) -> None:
    await patient.discord.deny(patient.channel, Permission.READ_MESSAGE_HISTORY | Permission.ATTACH_FILES)
    found = (await patient.look())["discord.channels"]
    assert found.status == "warn"
    assert "(Read Message History, Attach Files)" in found.message


async def test_a_thread_has_the_rights_of_its_channel(patient: Patient) -> None:
    world = patient.discord.world
    thread = world.start_thread(patient.channel, "Friday", world.owner)
    await patient.discord.deny(patient.channel, Permission.SEND_MESSAGES_IN_THREADS)
    found = (await patient.look(DISCORD_ALLOW=f"{thread.id}"))["discord.channels"]
    assert found.status == "fail"
    assert f"dc-{thread.id} (Send Messages in Threads)" in found.message


async def test_what_is_refused_later_is_a_warning(patient: Patient) -> None:
    patient.discord.fail("GET /applications/@me", 403, times=9)
    found = (await patient.look())["discord.intents"]
    assert (found.status, "403" in found.message) == ("warn", True)


async def test_a_channel_that_is_gone_or_let_in_no_more_needs_no_rights(patient: Patient) -> None:
    await patient.discord.deny(patient.channel, Permission.VIEW_CHANNEL | Permission.SEND_MESSAGES)
    await patient.discord.delete_channel(patient.channel)
    assert (await patient.look())["discord.channels"].status == "ok"


async def test_a_channel_that_no_rule_lets_in_is_left_alone(patient: Patient) -> None:
    await patient.discord.deny(patient.channel, Permission.SEND_MESSAGES)
    assert (await patient.look(DISCORD_ALLOW="dm"))["discord.channels"].status == "ok"


async def test_a_server_that_the_bot_is_not_in_is_named(patient: Patient) -> None:
    found = (await patient.look(DISCORD_ALLOW="guild:4711"))["discord.servers"]
    assert found.status == "fail"
    assert "4711" in found.message


async def test_a_channel_that_a_rule_names_is_looked_at_before_anything_was_said_there(patient: Patient) -> None:
    found = (await patient.look(DISCORD_ALLOW=f"{patient.channel.id},4711"))["discord.channels"]
    assert found.status == "warn"
    assert "dc-4711 (there is no such channel)" in found.message


async def test_a_bot_that_is_in_no_server_is_a_warning(patient: Patient) -> None:
    assert (await patient.look(DISCORD_ALLOW="dm"))["discord.servers"].status == "ok"
    assert patient.channel.guild is not None
    await patient.discord.leave(patient.channel.guild)
    assert (await patient.look(DISCORD_ALLOW="dm"))["discord.servers"].status == "warn"


async def test_a_server_that_fails_is_a_warning_where_something_else_is_known(patient: Patient) -> None:
    patient.discord.fail("GET /applications/@me", 503, times=9)
    found = await patient.look()
    assert found["discord.token"].status == "ok"
    assert found["discord.intents"].status == "warn"
    assert "503" in found["discord.intents"].message


@pytest.mark.parametrize("status", [500, 502, 0])
async def test_a_server_that_fails_altogether_is_a_failure(patient: Patient, status: int) -> None:
    patient.discord.fail("GET /users/@me", status, times=9)
    assert (await patient.look())["discord.token"].status == "fail"


async def test_an_answer_that_is_no_json_is_told(patient: Patient) -> None:
    patient.discord.garble("GET /users/@me", times=9)
    found = (await patient.look())["discord.token"]
    assert (found.status, found.message) == ("fail", "what Discord answers cannot be read")


async def test_a_rate_limit_is_waited_for_where_it_is_short_and_told_where_it_is_long(patient: Patient) -> None:
    patient.discord.rate_limit("GET /users/@me", 0.05)
    assert (await patient.look())["discord.token"].status == "ok"
    patient.discord.rate_limit("GET /gateway/bot", 300)
    found = (await patient.look())["discord.logins"]
    assert found.status == "warn"
    assert "300 s" in found.message


async def test_a_server_that_hangs_holds_up_nothing_else(patient: Patient) -> None:
    patient.discord.slow("GET /", 30, times=99)
    began = time.monotonic()
    found = await patient.look(patience=0.3)
    assert time.monotonic() - began < 3
    assert found["discord.token"].message == "Discord does not answer"
    assert found["telegram.token"].status == "ok"


async def test_a_check_that_takes_too_long_is_cut_off(patient: Patient) -> None:
    patient.discord.slow("GET /users/@me", 30, times=99)
    found = (await patient.look(limit=0.3))["discord.token"]
    assert found.status == "fail"
    assert "no answer within" in found.message


async def test_no_network_is_told_with_the_cure(patient: Patient) -> None:
    closed = "http://127.0.0.1:1"
    found = await patient.look(DISCORD_API_URL=closed, DISCORD_GATEWAY_URL="ws://127.0.0.1:1", TELEGRAM_API_URL=closed)
    for name in ("discord.token", "discord.gateway", "telegram.token"):
        assert found[name].status == "fail"
        assert "cannot be reached" in found[name].message
        assert "network" in found[name].cure
        assert closed not in found[name].message
    assert found["clock"].status == "warn"


async def test_what_is_no_gateway_is_told(patient: Patient) -> None:
    async def say_nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(say_nonsense, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        found = (await patient.look(DISCORD_GATEWAY_URL=f"ws://127.0.0.1:{port}/"))["discord.gateway"]
    assert found.status == "fail"


async def test_another_address_is_told_from_a_wrong_token(patient: Patient) -> None:
    found = (await patient.look(DISCORD_API_URL=f"{patient.telegram.api_url}/api/v10"))["discord.token"]
    assert found.status == "fail"
    assert "no Discord API" in found.message


async def test_buttons_that_go_elsewhere_are_a_failure(patient: Patient) -> None:
    patient.discord.world.switches["interactions_endpoint_url"] = "https://example.org/hook?key=secret"
    found = (await patient.look())["discord.application"]
    assert found.status == "fail"
    assert "example" not in found.message


async def test_a_public_bot_that_lets_everybody_in_is_a_warning(patient: Patient) -> None:
    assert (await patient.look(DISCORD_ALLOW="*"))["discord.application"].status == "warn"
    patient.discord.world.switches["bot_public"] = False
    assert (await patient.look(DISCORD_ALLOW="*"))["discord.application"].status == "ok"


async def test_logins_that_run_out_are_told(patient: Patient) -> None:
    patient.discord.world.logins_left = 3
    assert (await patient.look())["discord.logins"].status == "warn"
    patient.discord.world.logins_left = 0
    assert (await patient.look())["discord.logins"].status == "fail"


async def test_an_admin_whom_discord_does_not_know_is_a_warning(patient: Patient) -> None:
    found = (await patient.look(ISHIKI_ADMINS="discord:4711"))["discord.admins"]
    assert found.status == "warn"
    assert "4711" in found.message
