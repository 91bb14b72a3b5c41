"""Telegram's faults, each provoked at the loopback server, as the doctor tells them."""

import asyncio

import httpx
import pytest

from tests.bots.doctor.conftest import Patient


@pytest.mark.parametrize("token", ["123456:wrong", "no token at all"])
async def test_a_token_that_is_refused_is_named_with_the_cure(patient: Patient, token: str) -> None:
    found = await patient.look(TELEGRAM_TOKEN=token)
    assert found["telegram.token"].status == "fail"
    assert "@BotFather" in found["telegram.token"].cure
    assert found["telegram.chats"].message == "not looked at, because of telegram.token"
    assert not any(token in text for finding in found.values() for text in finding)


async def test_another_address_is_told_from_a_wrong_token(patient: Patient) -> None:
    found = (await patient.look(TELEGRAM_API_URL=patient.discord.api_url))["telegram.token"]
    assert found.status == "fail"


async def test_a_webhook_is_found_and_its_path_is_not_shown(patient: Patient) -> None:
    patient.telegram.set_webhook("http://127.0.0.1:9/hook/of-a-secret")
    found = await patient.look()
    assert found["telegram.webhook"].status == "fail"
    assert "127.0.0.1" in found["telegram.webhook"].message
    assert "secret" not in found["telegram.webhook"].message
    assert found["telegram.poller"].message == "not looked at, because of telegram.webhook"
    assert not patient.telegram.calls("getUpdates")


async def test_a_second_poller_is_found(patient: Patient) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=20) as client:

        async def poll() -> None:
            """Somebody else's program: it confirms what it took, and comes back after a refusal."""
            url = f"{patient.telegram.api_url}/bot{patient.telegram.token}/getUpdates"
            offset = 0
            while True:
                answer = (await client.get(url, params={"timeout": 5, "offset": offset})).json()
                offset = max([offset, *(update["update_id"] + 1 for update in answer.get("result", []))])
                await asyncio.sleep(0.1)

        other = asyncio.create_task(poll())
        found = (await patient.look(listened_for=2.0))["telegram.poller"]
        other.cancel()
        await asyncio.gather(other, return_exceptions=True)
    assert found.status == "fail"
    assert "409" in found.message


async def test_looking_for_a_second_poller_confirms_nothing(patient: Patient) -> None:
    found = (await patient.look(listened_for=0.5))["telegram.poller"]
    assert found.status == "ok"
    assert patient.telegram.pending_updates() == 1
    asked = patient.telegram.calls("getUpdates")
    assert asked
    assert all(call.arguments.keys() == {"limit", "timeout"} for call in asked)


async def test_privacy_mode_is_a_warning(patient: Patient) -> None:
    patient.telegram.bot.can_read_all_group_messages = False
    found = (await patient.look())["telegram.privacy"]
    assert found.status == "warn"
    assert "/setprivacy" in found.cure


async def test_that_deletions_are_not_told_is_said(patient: Patient) -> None:
    found = (await patient.look())["telegram.deletions"]
    assert found.message.startswith("Telegram does not tell bots about ordinary deletions")


async def test_a_group_that_threw_the_bot_out_is_named(patient: Patient) -> None:
    patient.telegram.remove_bot(patient.group)
    found = (await patient.look())["telegram.chats"]
    assert found.status == "fail"
    assert f"tg-{patient.group.id} (it is not there)" in found.message


async def test_a_group_in_which_members_may_not_write_is_named(patient: Patient) -> None:
    patient.telegram.forbid(patient.group, "can_send_messages")
    found = (await patient.look())["telegram.chats"]
    assert found.status == "fail"
    assert "may not write" in found.message


async def test_a_group_in_which_members_may_not_send_files_is_a_warning(patient: Patient) -> None:
    patient.telegram.forbid(patient.group, "can_send_photos")
    assert (await patient.look())["telegram.chats"].status == "warn"


async def test_a_group_that_no_rule_lets_in_is_left_alone(patient: Patient) -> None:
    patient.telegram.remove_bot(patient.group)
    assert (await patient.look(TELEGRAM_ALLOW="dm"))["telegram.chats"].status == "ok"


async def test_a_chat_that_a_rule_names_is_looked_at_before_anything_was_said_there(patient: Patient) -> None:
    found = (await patient.look(TELEGRAM_ALLOW="-1009999999"))["telegram.chats"]
    assert found.status == "fail"
    assert "tg--1009999999 (it does not know that chat)" in found.message


async def test_an_admin_who_never_wrote_to_the_bot_is_a_warning(patient: Patient) -> None:
    stranger = patient.telegram.user("Piet")
    found = (await patient.look(ISHIKI_ADMINS=f"telegram:{stranger.id}"))["telegram.admins"]
    assert found.status == "warn"
    assert "write to the bot once" in found.cure


async def test_a_server_that_fails_hangs_or_speaks_nonsense_is_told(patient: Patient) -> None:
    patient.telegram.fail("getMe", 502)
    assert "502" in (await patient.look())["telegram.token"].message
    patient.telegram.garble("getMe")
    assert "cannot be read" in (await patient.look())["telegram.token"].message
    patient.telegram.rate_limit("getMe", 60)
    assert "60 s" in (await patient.look())["telegram.token"].message
    patient.telegram.slow("getMe", 30)
    assert "does not answer" in (await patient.look(patience=0.3))["telegram.token"].message


async def test_a_webhook_whose_calls_fail_is_told(patient: Patient) -> None:
    patient.telegram.set_webhook("http://127.0.0.1:9/hook")
    async with asyncio.timeout(10):
        while (await patient.look())["telegram.updates"].status != "warn":  # noqa: ASYNC110 - the doctor has no event
            await asyncio.sleep(0.05)
