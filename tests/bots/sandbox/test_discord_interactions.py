"""Presses, choices and forms, answered by the real discord.py."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import discord
import httpx
import pytest
from discord import ui

from bots.sandbox.discord import DiscordSandbox, Message
from bots.sandbox.discord.model import Channel
from bots.sandbox.discord.people import Person
from tests.bots.sandbox.discord_client import Listener, running

Press = discord.Interaction[Listener]
On = Callable[[Press], Awaitable[object]]


class Answering(Listener):
    """Answers each interaction by the function of its custom id; without one it stays silent."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: dict[str, On] = {}

    async def on_interaction(self, interaction: Press) -> None:
        data: Any = interaction.data
        if (answer := self.answers.get(data["custom_id"])) is not None:
            await answer(interaction)


@pytest.fixture
async def bot(sandbox: DiscordSandbox, channel: Channel, mona: Person) -> AsyncIterator[Answering]:
    async with running(sandbox, Answering()) as client:
        assert isinstance(client, Answering)
        yield client


@pytest.fixture
async def prompt(sandbox: DiscordSandbox, channel: Channel, bot: Answering) -> Message:
    """A message of the bot with the buttons Yes and No and a menu."""
    view = ui.View(timeout=None)
    view.add_item(ui.Button(label="Yes", custom_id="yes", style=discord.ButtonStyle.success))
    view.add_item(ui.Button(label="No", custom_id="no", disabled=True))
    view.add_item(ui.Select(custom_id="when", options=[discord.SelectOption(label="Now", value="0")]))
    place = bot.get_channel(int(channel.id))
    assert isinstance(place, discord.TextChannel)
    await place.send("Shall I?", view=view)
    return await sandbox.bot_message(channel, containing="Shall I?")


async def test_a_press_names_who_pressed_what_and_is_answered(
    channel: Channel, mona: Person, bot: Answering, prompt: Message
) -> None:
    pressed: list[Press] = []

    async def answer(press: Press) -> None:
        pressed.append(press)
        await press.response.send_message(f"thanks {press.user.mention}")

    bot.answers["yes"] = answer
    answered = await mona.press(prompt, "Yes")
    assert answered is not None
    assert (answered.text, answered.ephemeral) == (f"thanks {mona.mention}", False)
    (press,) = pressed
    assert (str(press.user.id), press.message and str(press.message.id)) == (mona.id, prompt.id)
    assert press.permissions.send_messages
    heard = await bot.heard(answered.text)
    assert heard.interaction_metadata is not None
    assert str(heard.interaction_metadata.interacted_message_id) == prompt.id


async def test_an_ephemeral_answer_is_seen_by_nobody_else(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, bot: Answering, prompt: Message
) -> None:
    async def answer(press: Press) -> None:
        await press.response.send_message("not for you", ephemeral=True)
        await press.followup.send("really", ephemeral=True)
        await press.edit_original_response(content="no")

    bot.answers["yes"] = answer
    answered = await mona.press(prompt, "yes")
    assert answered is not None
    await sandbox.until(lambda: answered.text == "no")
    assert ([message.content for message in answered.messages], answered.ephemeral) == (["no", "really"], True)
    assert sandbox.history(channel) == [prompt]


async def test_the_prompt_itself_is_updated(channel: Channel, mona: Person, bot: Answering, prompt: Message) -> None:
    bot.answers["yes"] = lambda press: press.response.edit_message(content="Done", view=None)
    answered = await mona.press(prompt, "yes")
    assert answered is not None
    assert answered.message is prompt
    assert (prompt.content, prompt.components) == ("Done", [])
    with pytest.raises(ValueError, match="no button"):
        await mona.press(prompt, "yes")


async def test_a_deferred_answer_is_filled_in_later(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, bot: Answering, prompt: Message
) -> None:
    async def answer(press: Press) -> None:
        await press.response.defer(thinking=True)
        await press.followup.send("at last")
        await press.followup.send("and more", wait=True)
        await press.delete_original_response()

    bot.answers["yes"] = answer
    answered = await mona.press(prompt, "yes")
    assert answered is not None
    await sandbox.until(lambda: answered.message is not None and answered.message.deleted)
    assert [message.content for message in answered.messages] == ["at last", "and more"]
    assert [message.content for message in sandbox.history(channel)] == ["Shall I?", "and more"]


async def test_a_choice_brings_its_values(mona: Person, bot: Answering, prompt: Message) -> None:
    async def answer(press: Press) -> None:
        data: Any = press.data
        await press.response.send_message(str(data["values"]))

    bot.answers["when"] = answer
    answered = await mona.choose(prompt, "when", ["Now"])
    assert answered is not None
    assert answered.text == "['0']"
    with pytest.raises(ValueError, match="does not offer"):
        await mona.choose(prompt, "when", ["Never"])


async def test_a_form_is_opened_filled_in_and_sent(mona: Person, bot: Answering, prompt: Message) -> None:
    class Reason(ui.Modal, title="Why?"):
        text: ui.TextInput["Reason"] = ui.TextInput(label="Reason", custom_id="reason")

        async def on_submit(self, interaction: discord.Interaction[Any], /) -> None:
            await interaction.response.send_message(f"because {self.text.value}")

    bot.answers["yes"] = lambda press: press.response.send_modal(Reason())
    opened = await mona.press(prompt, "yes")
    assert opened is not None
    answered = await mona.submit_modal(opened, {"reason": "of the plot"})
    assert answered is not None
    assert answered.text == "because of the plot"


async def test_a_silent_bot_fails_the_press_and_is_too_late_then(
    channel: Channel, mona: Person, bot: Answering, prompt: Message
) -> None:
    assert await mona.press(prompt, "yes", within=0.05) is None
    interaction = await mona.press_unanswered(prompt, "yes")
    interaction.began -= 3.1
    late: Press = (await bot.events("interaction", 2))[-1]
    with pytest.raises(discord.NotFound) as refusal:
        await late.response.defer()
    assert refusal.value.code == 10062


async def test_an_interaction_told_twice_is_answered_once(mona: Person, bot: Answering, prompt: Message) -> None:
    codes: asyncio.Queue[int] = asyncio.Queue()

    async def answer(press: Press) -> None:
        try:
            await press.response.defer()
            codes.put_nowait(0)
        except discord.HTTPException as refusal:
            codes.put_nowait(refusal.code)

    bot.answers["yes"] = answer
    await mona.press_unanswered(prompt, "yes", told=2)
    async with asyncio.timeout(5):
        assert [await codes.get(), await codes.get()] == [0, 40060]


async def test_a_press_in_direct_messages_has_a_user_and_no_member(
    sandbox: DiscordSandbox, mona: Person, bot: Answering
) -> None:
    bot.answers["ok"] = lambda press: press.response.send_message(f"{press.guild_id} {press.user.name}")
    place = await (await bot.fetch_user(int(mona.id))).create_dm()
    view = ui.View(timeout=None)
    view.add_item(ui.Button(label="Fine", custom_id="ok"))
    await place.send("Well?", view=view)
    answered = await mona.press(await sandbox.bot_message(sandbox.dm(mona)), "Fine")
    assert answered is not None
    assert answered.text == "None mona"


async def test_wrong_callbacks_and_tokens_are_refused(
    sandbox: DiscordSandbox, mona: Person, bot: Answering, prompt: Message
) -> None:
    interaction = await mona.press_unanswered(prompt, "yes")
    async with httpx.AsyncClient(base_url=sandbox.api_url, trust_env=False) as http:
        callback = f"/interactions/{interaction.id}/{interaction.token}/callback"
        followup = f"/webhooks/{sandbox.bot.id}/{interaction.token}"
        codes = [
            (await http.post(callback, json={"type": 1})).json()["code"],
            (await http.post(callback, json={"type": 4, "data": {"content": "x" * 2001}})).json()["code"],
            (await http.post(followup, json={"content": "too early"})).json()["code"],
            (await http.post(callback.replace(interaction.token, "x"), json={"type": 6})).json()["code"],
            (await http.post(callback, json={"type": 6})).status_code,
            (await http.get(followup + "/messages/1")).json()["code"],
        ]
    assert codes == [50035, 50035, 10015, 10062, 204, 10008]
