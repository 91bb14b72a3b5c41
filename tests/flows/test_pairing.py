"""Chats that no rule lets in: they are told a code, once, and an operator admits them."""

import json
import re
from pathlib import Path

import pytest

from bots.sandbox.discord import DiscordSandbox
from bots.sandbox.discord.model import User
from bots.sandbox.telegram import TelegramSandbox
from core.ids import discord_session, telegram_session
from core.pairing.bell import WELCOME
from tests.conftest import House, Until
from tests.flows import discord_house, telegram_house
from tests.flows.operators import Operator

CODE = re.compile(r"ishiki pair ([A-HJ-NP-Z2-9]{8})\b")


@pytest.fixture
def operator(tmp_path: Path, discord: DiscordSandbox, telegram: TelegramSandbox) -> Operator:
    return Operator(tmp_path, discord, telegram)


def code_in(text: str) -> str:
    found = CODE.search(text)
    assert found is not None, text
    return found[1]


def everything_in(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


# --- Discord ------------------------------------------------------------------------------------------------------


async def test_a_discord_channel_is_told_one_code_and_heard_from_when_it_was_admitted(
    discord: DiscordSandbox, house: House, until: Until
):
    guild, mona, ada = discord.guild("Film club"), discord.user("Mona"), discord.user("Ada")
    films = guild.text_channel("films")
    async with discord_house.door_on(discord, house, allow="", admins=[ada.id]) as door:
        asked = await mona.say(films, f"<@{discord.bot.id}> a secret?")
        told = await discord.bot_message(films)
        code = code_in(told.content)
        admin = await discord.bot_message(discord.dm(ada))
        assert code_in(admin.content) == code
        assert "Mona" in admin.content
        assert "films (Film club)" in admin.content
        await mona.say(films, f"<@{discord.bot.id}> again")
        await mona.say(films, "chatter")
        await mona.edit(asked, f"<@{discord.bot.id}> a secret still?")
        assert not house.sessions.exists(discord_session(films.id))

        await door.book.admit(code)
        await discord.bot_message(films, containing=WELCOME)
        await mona.edit(asked, f"<@{discord.bot.id}> no secret any more?")
        await mona.delete(asked)
        thread = await mona.start_thread(films, "plans")
        await mona.say(films, "first")
        await mona.say(thread, "inside")
        await until(lambda: door.texts(films)[-1:] == ["first"] and door.texts(thread)[-1:] == ["inside"])
        assert [text for text in door.texts(films) if "secret" in text] == []
        assert door.deleted(films) == []
        await until(lambda: len(discord.history(films)) >= 4)
        said = [message.content for message in discord.history(films) if message.author is discord.bot]
        assert len(said) == 2


async def test_what_was_said_before_the_pairing_is_not_caught_up_and_what_was_missed_since_is(
    discord: DiscordSandbox, house: House, until: Until
):
    guild, mona = discord.guild("Film club"), discord.user("Mona")
    films, other = guild.text_channel("films"), guild.text_channel("other")
    async with discord_house.door_on(discord, house, allow=other.id) as door:
        await door.caught_up()
        await mona.say(films, "long before")
        await mona.say(films, f"<@{discord.bot.id}> a secret?")
        code = code_in((await discord.bot_message(films)).content)
        await door.book.admit(code)
        await discord.bot_message(films, containing=WELCOME)
    await mona.say(films, "missed")
    async with discord_house.door_on(discord, house, allow=other.id) as door:
        await until(lambda: door.texts(films) == ["missed"])
        await door.caught_up()
        assert door.texts(films) == ["missed"]
        assert await door.book.revoke(discord_session(films.id))
        await mona.say(films, "after")
        await mona.say(other, "seen")
        await until(lambda: door.texts(other) == ["seen"])
        assert door.texts(films) == ["missed"]


async def test_a_direct_chat_that_was_paired_and_has_no_log_yet_is_caught_up_too(
    discord: DiscordSandbox, house: House, until: Until
):
    mona = discord.user("Mona")
    direct = discord.dm(mona)
    async with discord_house.door_on(discord, house, allow="") as door:
        await door.caught_up()
        await mona.say(direct, "a secret")
        await door.book.admit(code_in((await discord.bot_message(direct)).content))
        await discord.bot_message(direct, containing=WELCOME)
    await mona.say(direct, "missed")
    async with discord_house.door_on(discord, house, allow="") as door:
        await door.caught_up()
        await until(lambda: door.texts(direct) == ["missed"])


async def test_an_excluded_chat_a_bot_and_a_webhook_are_told_nothing_and_a_paired_chat_can_be_excluded_later(
    discord: DiscordSandbox, house: House, until: Until
):
    guild, mona, robot = discord.guild("Film club"), discord.user("Mona"), discord.user("Robot", bot=True)
    films, out, seen = guild.text_channel("films"), guild.text_channel("out"), guild.text_channel("seen")
    hook = discord.webhook(films, "Hook")
    me = f"<@{discord.bot.id}>"
    async with discord_house.door_on(discord, house, allow=f"!{out.id},{seen.id}") as door:
        await mona.say(out, me)
        await robot.say(films, me)
        await hook.say(me)
        await mona.say(seen, "done")
        await until(lambda: door.texts(seen) == ["done"])
        assert list(door.book.open_codes()) == []
        await mona.say(films, me)
        await door.book.admit(code_in((await discord.bot_message(films)).content))
        await discord.bot_message(films, containing=WELCOME)
    async with discord_house.door_on(discord, house, allow=f"!{films.id},{seen.id}") as door:
        await mona.say(films, f"{me} let me in")
        await mona.say(seen, "over")
        await until(lambda: door.texts(seen)[-1:] == ["over"])
        assert door.texts(films) == []
        assert list(door.book.open_codes()) == []
    assert discord.history(out)[-1].author is mona


async def test_three_codes_are_open_on_a_platform_and_direct_chats_are_told_one_each(
    discord: DiscordSandbox, house: House, until: Until
):
    people = [discord.user(name) for name in ("Ann", "Ben", "Cid", "Dee")]

    def said_to(person: User) -> list[str]:
        return [message.content for message in discord.history(discord.dm(person)) if message.author is discord.bot]

    async with discord_house.door_on(discord, house, allow="", admins=[people[0].id]) as door:
        for person in people[:3]:
            await person.say(discord.dm(person), "hello")
            code_in((await discord.bot_message(discord.dm(person), containing="not set up")).content)
        await people[3].say(discord.dm(people[3]), "hello")
        await until(lambda: len(list(door.book.open_codes())) == 3)
        await discord.until(lambda: len(said_to(people[0])) == 3)
        assert "Ann" not in "".join(said_to(people[0])[1:])  # who asked need not be told that they did
        assert said_to(people[3]) == []
        assert await door.book.revoke(discord_session(discord.dm(people[1]).id))
        await people[3].say(discord.dm(people[3]), "hello?")
        await discord.bot_message(discord.dm(people[3]))


async def test_names_out_of_a_chat_are_inert_where_admins_read_them(discord: DiscordSandbox, house: House):
    ada = discord.user("Ada")
    mallory = discord.user(f"**x** @everyone <@{ada.id}> https://e.example \u202e<b>")
    async with discord_house.door_on(discord, house, allow="", admins=[ada.id]):
        await mallory.say(discord.dm(mallory), "hello")
        told = await discord.bot_message(discord.dm(ada))
    assert f"\\<@{ada.id}>" in told.content
    assert "\\*\\*x" in told.content
    assert "\u202e" not in told.content


# --- Telegram -----------------------------------------------------------------------------------------------------


async def test_a_telegram_group_is_told_one_code_in_its_topic_and_heard_from_when_it_was_admitted(
    telegram: TelegramSandbox, house: House, until: Until
):
    anna, ada = telegram.user("Anna"), telegram.user("Ada")
    forum = telegram.forum("Film club", [anna])
    topic = await anna.create_topic(forum, "plans")
    await ada.say(ada.private_chat, "/start")
    async with telegram_house.door_on(telegram, house, allow="", admins=[ada.id]) as door:
        asked = await anna.say(forum, "@sandbox_bot a secret?", topic=topic)
        told = await telegram.bot_message(forum)
        assert told.payload["message_thread_id"] == topic.id
        code = code_in(told.text)
        assert "Anna" in (await telegram.bot_message(ada.private_chat, containing=code)).text
        await anna.say(forum, "@sandbox_bot again")
        await anna.say(forum, "/start@sandbox_bot")
        await until(lambda: telegram.pending_updates() == 0)
        assert not house.sessions.exists(telegram_session(forum.id))
        await door.book.admit(code.lower()[:4] + " " + code[4:])
        await telegram.bot_message(forum, containing=WELCOME)
        await anna.edit(asked, "@sandbox_bot no secret any more?")
        await anna.say(forum, "first")
        await until(lambda: door.texts(forum) == ["first"])
        await until(lambda: telegram.pending_updates() == 0)
        assert door.texts(forum) == ["first"]
        assert len(telegram.calls("sendMessage")) == 4  # Ada's own chat knocked too


async def test_who_is_no_person_and_a_customer_in_a_business_chat_are_told_nothing(
    telegram: TelegramSandbox, house: House, until: Until
):
    anna, boss, robot = telegram.user("Anna"), telegram.user("Boss"), telegram.user("Robot", is_bot=True)
    group, seen = telegram.supergroup("Group", [anna]), telegram.supergroup("Seen", [anna])
    connection = await boss.connect_business()
    customer = anna.business_chat(connection)
    async with telegram_house.door_on(telegram, house, allow=f"{seen.id}") as door:
        await anna.say(group, "@sandbox_bot hi", anonymous=True)
        await anna.say(group, "@sandbox_bot hi", as_chat=seen)
        await robot.say(group, "@sandbox_bot hi")
        await anna.say(customer, "hello")
        await anna.say(group, "chatter")
        await telegram.user("Newcomer").join(group)
        await anna.say(seen, "done")
        await until(lambda: door.texts(seen) == ["done"])
        assert list(door.book.open_codes()) == []
        await anna.say(anna.private_chat, "hello")
        await door.book.admit(code_in((await telegram.bot_message(anna.private_chat)).text))
        await anna.say(anna.private_chat, "in")
        await anna.say(customer, "still out")
        await until(lambda: door.texts(anna.private_chat) == ["in"])
        await until(lambda: telegram.pending_updates() == 0)
        assert door.facts(customer) == []


@pytest.mark.parametrize("admitted_first", [True, False])
async def test_a_pairing_and_an_open_code_go_on_with_a_group_that_became_a_supergroup(
    telegram: TelegramSandbox, house: House, until: Until, *, admitted_first: bool
):
    anna = telegram.user("Anna")
    group = telegram.group("Film club", [anna])
    async with telegram_house.door_on(telegram, house, allow="") as door:
        await anna.say(group, "@sandbox_bot hi" if admitted_first else "/start@Sandbox_Bot hi")
        code = code_in((await telegram.bot_message(group)).text)
        if admitted_first:
            await door.book.admit(code)
        supergroup = await telegram.migrate(group, anna)
        await until(lambda: telegram.pending_updates() == 0)
        if not admitted_first:
            assert (await door.book.admit(code)).session == telegram_session(supergroup.id)
        await anna.say(supergroup, "on")
        await until(lambda: "on" in door.texts(supergroup))
    async with telegram_house.door_on(telegram, house, allow="") as door:
        await anna.say(supergroup, "and on")
        await until(lambda: door.texts(supergroup)[-1:] == ["and on"])
        assert await door.book.revoke(telegram_session(supergroup.id))
        await anna.say(supergroup, "out")
        await until(lambda: telegram.pending_updates() == 0)
        assert door.texts(supergroup)[-1:] == ["and on"]


# --- the whole program --------------------------------------------------------------------------------------------


async def test_an_operator_admits_chats_from_a_terminal_while_it_runs_and_while_it_does_not(
    operator: Operator, discord: DiscordSandbox, telegram: TelegramSandbox, until: Until
):
    guild, mona, anna = discord.guild("Film club"), discord.user("Mona"), telegram.user("Anna")
    films = guild.text_channel("films")
    here, there = discord_session(films.id), telegram_session(anna.id)
    nobody = {"DISCORD_ALLOW": "", "TELEGRAM_ALLOW": ""}

    async def listed() -> list[dict[str, object]]:
        code, output, errors = await operator.ishiki("pair", "--json")
        assert (code, errors) == (0, "")
        return [json.loads(line) for line in output.splitlines()]

    async with operator.running(**nobody):
        await mona.say(films, f"<@{discord.bot.id}> a secret?")
        await anna.say(anna.private_chat, "a secret")
        on_discord = code_in((await discord.bot_message(films)).content)
        on_telegram = code_in((await telegram.bot_message(anna.private_chat)).text)
        rows = {row["session"]: row for row in await listed()}
        assert rows[here]["code"] == on_discord
        assert rows[here]["user"] == {"id": mona.id, "name": "Mona"}
        code, output, _ = await operator.ishiki("pair", on_discord.lower())
        assert (code, output) == (0, f"{here} is let in\n")
        await discord.bot_message(films, containing=WELCOME)
        await mona.say(films, "first")
        await until(lambda: len(operator.lines(here)) == 1)
        code, _, errors = await operator.ishiki("pair", on_discord)
        assert (code, errors.count("\n")) == (1, 1)
        code, output, _ = await operator.ishiki("sessions", "--json")
        row = json.loads(output)
        assert (code, row["session"], row["entries"], row["open"]) == (0, here, 1, 0)
        await until(lambda: b"films (Film club)" in b"".join(everything_in(operator.data / ".store")))
    assert not (operator.data / "runtimes" / there).exists()
    code, output, _ = await operator.ishiki("pair", on_telegram)
    assert code == 0
    assert "next start" in output
    async with operator.running(**nobody):
        await anna.say(anna.private_chat, "second")
        await mona.say(films, "third")
        await until(lambda: len(operator.lines(there)) == 1 and len(operator.lines(here)) == 2)
        code, output, _ = await operator.ishiki("pair", "--revoke", here)
        assert code == 0
        await mona.say(films, "fourth")
        await anna.say(anna.private_chat, "fifth")
        await until(lambda: len(operator.lines(there)) == 2)
        assert len(operator.lines(here)) == 2
        code, output, _ = await operator.ishiki("sessions")
        assert "#films (Film club)" in output
        assert "Anna" in output
    assert [row["session"] for row in await listed()] == [there]
    runtimes = [*(operator.data / "runtimes").rglob("events.jsonl")]
    assert all(b"secret" not in path.read_bytes() for path in runtimes)
    code, _, errors = await operator.ishiki("deliver", "retry")
    assert code == 1
    assert "ishiki run" in errors
