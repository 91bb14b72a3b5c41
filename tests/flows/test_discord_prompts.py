"""Asking people on Discord: the real client against the loopback server, from the request to the outcome."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from bots.sandbox.discord import DiscordSandbox
from bots.sandbox.discord.interactions import DEFERRED_UPDATE
from bots.sandbox.discord.model import Channel, Message, MessageFlag
from bots.sandbox.discord.people import Person
from core.confirmations.asking import Origin, Request
from core.confirmations.folder import Folder
from core.confirmations.record import Question, Record
from core.entries import MessageCreated
from core.ids import control, discord_session
from tests.conftest import House, Until
from tests.fakes import FakeRuntime
from tests.flows.discord_house import Door, door_on


class SlowFolder(Folder):
    """A disk that takes its time."""

    seconds = 0.0

    def write(self, record: Record) -> None:
        time.sleep(self.seconds)
        super().write(record)


class FullFolder(Folder):
    """A disk that takes nothing while it is full."""

    full = False

    def write(self, record: Record) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        super().write(record)


@pytest.fixture
async def sandbox() -> AsyncIterator[DiscordSandbox]:
    async with DiscordSandbox() as sandbox:
        yield sandbox


@pytest.fixture
def channel(sandbox: DiscordSandbox) -> Channel:
    return sandbox.guild("Film club").text_channel("general")


@pytest.fixture
def mona(sandbox: DiscordSandbox) -> Person:
    return sandbox.user("Mona")


@pytest.fixture
def jiro(sandbox: DiscordSandbox) -> Person:
    return sandbox.user("Jiro")


@pytest.fixture
def runtime() -> FakeRuntime:
    return FakeRuntime()


@pytest.fixture
async def door(sandbox: DiscordSandbox, house: House, runtime: FakeRuntime) -> AsyncIterator[Door]:
    async with door_on(sandbox, house, runtime=runtime) as opened:
        yield opened


def leave_for(channel: Channel, mona: Person, **rest: object) -> Request:
    members: dict[str, object] = {
        "session": discord_session(channel.id),
        "kind": "confirm",
        "tool": "write_file",
        "args": {"path": "notes.md"},
        "choices": ("yes", "no"),
        "requester": mona.id,
    }
    return Request(**(members | rest))  # pyright: ignore[reportArgumentType] - a builder takes what it is given


def question_for(channel: Channel, mona: Person, *questions: Question) -> Request:
    return Request(discord_session(channel.id), "ask", questions=questions, requester=mona.id)


def prompts(sandbox: DiscordSandbox, channel: Channel) -> list[Message]:
    """Messages of ours that can be pressed or could be."""
    return [message for message in sandbox.history(channel) if message.author is sandbox.bot]


async def shown(sandbox: DiscordSandbox, channel: Channel, until: Until, count: int = 1) -> Message:
    await until(lambda: len(prompts(sandbox, channel)) == count and prompts(sandbox, channel)[-1].components)
    return prompts(sandbox, channel)[-1]


async def test_leave_is_asked_with_a_button_each_and_the_outcome_takes_their_place(
    door: Door, sandbox: DiscordSandbox, channel: Channel, mona: Person, runtime: FakeRuntime, until: Until
) -> None:
    record = await door.asked.ask(leave_for(channel, mona))
    prompt = await shown(sandbox, channel, until)
    assert "write_file" in prompt.content
    assert "notes.md" in prompt.content
    answer = await mona.press(prompt, "Yes")
    assert answer is not None
    assert answer.type == DEFERRED_UPDATE
    await until(lambda: runtime.resolved and not prompt.components)
    assert "Approved by Mona" in prompt.content
    [told] = runtime.resolved
    assert (told.status, told.choice, told.by and told.by.id) == ("approved", "yes", mona.id)
    await until(lambda: door.asked.desk.get(record.task_hash) is None)
    assert (await door.asked.desk.find(record.task_hash)).status == "approved"
    assert list((door.asked.house.sessions.folder(record.session_id) / "pending").glob("*.json")) == []


async def test_only_who_may_answers_and_others_are_told_alone(
    door: Door, sandbox: DiscordSandbox, channel: Channel, mona: Person, jiro: Person, until: Until
) -> None:
    record = await door.asked.ask(leave_for(channel, mona))
    prompt = await shown(sandbox, channel, until)
    for stranger in (jiro, sandbox.user("Robot", bot=True)):
        answer = await stranger.press(prompt, "Yes")
        assert answer is not None
        assert answer.ephemeral
    assert (await door.asked.desk.find(record.task_hash)).is_open
    assert prompt.components


async def test_a_press_is_answered_in_time_however_long_the_disk_takes_and_a_second_one_is_too_late(
    sandbox: DiscordSandbox, house: House, channel: Channel, mona: Person, runtime: FakeRuntime, until: Until
) -> None:
    folder = SlowFolder(house.sessions.folder)
    async with door_on(sandbox, house, runtime=runtime, folder=folder) as door:
        await door.asked.ask(leave_for(channel, mona))
        prompt = await shown(sandbox, channel, until)
        await until(lambda: door.asked.desk.records()[0].prompt)
        folder.seconds = 4.0
        first = await mona.press(prompt, "Yes", within=2.5)
        assert first is not None
        second = await mona.press(prompt, "No", within=2.5)
        assert second is not None
        assert not runtime.resolved
        await until(lambda: runtime.resolved)
        folder.seconds = 0.0
        assert [record.choice for record in runtime.resolved] == ["yes"]
        await until(lambda: second.messages)
        assert "decided already" in second.messages[0].content
        assert second.messages[0].flags & MessageFlag.EPHEMERAL


async def test_when_the_disk_refuses_nothing_is_decided_and_the_presser_is_told(
    sandbox: DiscordSandbox, house: House, channel: Channel, mona: Person, runtime: FakeRuntime, until: Until
) -> None:
    folder = FullFolder(house.sessions.folder)
    async with door_on(sandbox, house, runtime=runtime, folder=folder) as door:
        record = await door.asked.ask(leave_for(channel, mona))
        prompt = await shown(sandbox, channel, until)
        await until(lambda: door.asked.desk.records()[0].prompt)
        folder.full = True
        answer = await mona.press(prompt, "Yes")
        assert answer is not None
        assert answer.ephemeral
        assert "nothing is decided" in answer.text
        folder.full = False
        assert (await door.asked.desk.find(record.task_hash)).is_open
        assert await mona.press(prompt, "Yes") is not None
        await until(lambda: runtime.resolved)


async def test_a_doubled_interaction_is_answered_and_counted_once(
    door: Door, sandbox: DiscordSandbox, channel: Channel, mona: Person, runtime: FakeRuntime, until: Until
) -> None:
    await door.asked.ask(leave_for(channel, mona))
    prompt = await shown(sandbox, channel, until)
    pressed = await mona.press_unanswered(prompt, "No", told=2)
    await until(lambda: pressed.answer is not None and runtime.resolved)
    assert [record.status for record in runtime.resolved] == ["denied"]


async def test_the_same_button_from_another_channel_decides_nothing(
    door: Door, sandbox: DiscordSandbox, channel: Channel, mona: Person, until: Until
) -> None:
    record = await door.asked.ask(leave_for(channel, mona))
    prompt = await shown(sandbox, channel, until)
    elsewhere = sandbox.guild("Other club").text_channel("general")
    forged = await sandbox.user("Robot", bot=True).say(elsewhere, "press me", components=prompt.components)
    answer = await mona.press(forged, "Yes")
    assert answer is not None
    assert answer.ephemeral
    assert "another chat" in answer.text
    assert (await door.asked.desk.find(record.task_hash)).is_open


async def test_a_button_works_after_a_restart(
    sandbox: DiscordSandbox, house: House, channel: Channel, mona: Person, until: Until
) -> None:
    async with door_on(sandbox, house) as door:
        record = await door.asked.ask(leave_for(channel, mona))
        prompt = await shown(sandbox, channel, until)
        await until(lambda: door.asked.desk.records()[0].prompt)
    await house.reopen()
    runtime = FakeRuntime()
    async with door_on(sandbox, house, runtime=runtime):
        assert await mona.press(prompt, "Yes") is not None
        await until(lambda: runtime.resolved and not prompt.components)
        assert runtime.resolved[0].task_hash == record.task_hash
        assert len(prompts(sandbox, channel)) == 1


async def test_a_prompt_that_is_gone_after_a_restart_is_posted_again(
    sandbox: DiscordSandbox, house: House, channel: Channel, mona: Person, until: Until
) -> None:
    async with door_on(sandbox, house) as door:
        await door.asked.ask(leave_for(channel, mona))
        prompt = await shown(sandbox, channel, until)
        await until(lambda: door.asked.desk.records()[0].prompt)
    await house.reopen()
    await mona.delete(prompt)
    async with door_on(sandbox, house) as door:
        again = await shown(sandbox, channel, until)
        assert again.id != prompt.id
        assert await mona.press(again, "Yes") is not None
        await until(lambda: not again.components)


async def test_a_prompt_that_somebody_deletes_is_posted_again(
    door: Door, sandbox: DiscordSandbox, channel: Channel, mona: Person, until: Until
) -> None:
    await door.asked.ask(leave_for(channel, mona))
    prompt = await shown(sandbox, channel, until)
    await until(lambda: door.asked.desk.records()[0].prompt)
    await mona.delete(prompt)
    await until(lambda: [message.id for message in prompts(sandbox, channel)] not in ([], [prompt.id]))
    again = await shown(sandbox, channel, until)
    assert await mona.press(again, "Yes") is not None
    await until(lambda: not again.components)


async def test_what_nobody_answers_expires_and_a_late_press_is_told_so(
    door: Door, sandbox: DiscordSandbox, channel: Channel, mona: Person, runtime: FakeRuntime, until: Until
) -> None:
    await door.asked.ask(leave_for(channel, mona, timeout=0.6))
    prompt = await shown(sandbox, channel, until)
    button = prompt.components
    await until(lambda: runtime.resolved and not prompt.components)
    assert runtime.resolved[0].status == "expired"
    assert "Expired" in prompt.content
    prompt.components = button
    answer = await mona.press(prompt, "Yes")
    assert answer is not None
    assert "expired" in answer.text


async def test_one_of_several_is_chosen_in_a_menu(
    door: Door, sandbox: DiscordSandbox, channel: Channel, mona: Person, runtime: FakeRuntime, until: Until
) -> None:
    options = tuple(f"option {number}" for number in range(25))
    request = question_for(
        channel,
        mona,
        Question(question="Which?", options=options),
        Question(question="And which?", options=options, multi_select=True),
    )
    await door.asked.ask(request)
    first = await shown(sandbox, channel, until)
    assert "(1/2) Which?" in first.content
    menu = first.components[0]["components"][0]
    assert (menu["min_values"], menu["max_values"], len(menu["options"])) == (1, 1, 25)
    assert await mona.choose(first, menu["custom_id"], ["option 3"]) is not None
    second = await shown(sandbox, channel, until, 2)
    assert not first.components
    assert "option 3" in first.content
    menu = second.components[0]["components"][0]
    assert menu["max_values"] == 25
    assert await mona.choose(second, menu["custom_id"], ["option 5", "option 1"]) is not None
    await until(lambda: runtime.resolved)
    assert [answer.answer for answer in runtime.resolved[0].answers] == ["option 3", ("option 1", "option 5")]


async def test_free_text_is_written_into_a_form(
    door: Door,
    sandbox: DiscordSandbox,
    channel: Channel,
    mona: Person,
    jiro: Person,
    runtime: FakeRuntime,
    until: Until,
) -> None:
    await door.asked.ask(question_for(channel, mona, Question(question="What shall the file be called? " * 5)))
    prompt = await shown(sandbox, channel, until)
    refused = await jiro.press(prompt, "Answer")
    assert refused is not None
    assert refused.ephemeral
    opened = await mona.press(prompt, "Answer")
    assert opened is not None
    assert opened.modal is not None
    assert len(opened.modal["title"]) <= 45
    sent = await mona.submit_modal(opened, {"answer": "minutes.md\n"})
    assert sent is not None
    await until(lambda: runtime.resolved and not prompt.components)
    assert runtime.resolved[0].answers[0].answer == "minutes.md"


async def test_what_is_asked_cannot_ping_break_out_or_be_longer_than_a_message(
    door: Door, sandbox: DiscordSandbox, channel: Channel, mona: Person, until: Until
) -> None:
    hostile = "@everyone <@1> ``` [click](https://evil.example) " * 200
    await door.asked.ask(leave_for(channel, mona, args={"text": hostile}, text=hostile, tool="write @everyone"))
    prompt = await shown(sandbox, channel, until)
    assert len(prompt.content) <= 2000
    assert not prompt.mention_everyone
    assert not prompt.mentions
    assert prompt.content.count("```") == 2
    assert "cut" in prompt.content
    [file] = prompt.attachments
    assert file.file.name == "request.json"
    assert hostile in file.file.data.decode().replace('\\"', '"')


async def test_one_prompt_stands_in_a_chat_at_a_time_in_order_and_another_chat_goes_on(
    door: Door, sandbox: DiscordSandbox, channel: Channel, mona: Person, until: Until
) -> None:
    other = sandbox.guild("Other club").text_channel("general")
    for number in range(3):
        await door.asked.ask(leave_for(channel, mona, tool=f"tool_{number}"))
    await door.asked.ask(leave_for(other, mona, tool="tool_other"))
    for number in range(3):
        prompt = await shown(sandbox, channel, until, number + 1)
        assert f"tool_{number}" in prompt.content
        await shown(sandbox, other, until)
        await asyncio.sleep(0.05)
        assert [bool(message.components) for message in prompts(sandbox, channel)] == [False] * number + [True]
        assert await mona.press(prompt, "No") is not None


async def test_a_retraction_withdraws_what_the_message_caused(
    door: Door, sandbox: DiscordSandbox, channel: Channel, mona: Person, runtime: FakeRuntime, until: Until
) -> None:
    cause = await mona.say(channel, "delete everything!")
    await until(lambda: door.created(channel))
    session = discord_session(channel.id)
    entry = next(door.sessions.of(session).read()).entry
    fact = door.created(channel)[0]
    assert isinstance(fact, MessageCreated)
    door.asked.causes.origin = Origin(entry.id, fact)
    turn = "e061c676-0701-4e5c-b2c8-565cf9462c91"
    record = await door.asked.ask(leave_for(channel, mona, requester=None, turn=turn))
    assert (record.requester and record.requester.id, record.cause and record.cause.message_id) == (mona.id, cause.id)
    prompt = await shown(sandbox, channel, until)
    assert prompt.reference is not None
    assert prompt.reference.message_id == cause.id
    await mona.delete(cause)
    await until(lambda: runtime.resolved and not prompt.components)
    assert runtime.resolved[0].status == "denied"
    assert "Withdrawn" in prompt.content


async def test_what_is_no_control_of_ours_is_answered_too(
    door: Door, sandbox: DiscordSandbox, channel: Channel, mona: Person
) -> None:
    row = {"type": 1, "components": [{"type": 2, "style": 1, "label": "Old", "custom_id": "from another life"}]}
    message = await sandbox.user("Robot", bot=True).say(channel, "press", components=[row])
    answer = await mona.press(message, "Old")
    assert answer is not None
    assert answer.ephemeral


async def test_admins_may_answer_everything_and_a_chat_of_a_direct_message_works_alike(
    sandbox: DiscordSandbox, house: House, mona: Person, jiro: Person, until: Until
) -> None:
    direct = sandbox.dm(mona)
    async with door_on(sandbox, house, admins=[mona.id]) as door:
        record = await door.asked.ask(leave_for(direct, jiro, approvers="admins"))
        prompt = await shown(sandbox, direct, until)
        assert control(prompt.components[0]["components"][0]["custom_id"]) == (record.task_hash, 0, "0")
        assert await mona.press(prompt, "Yes") is not None
        await until(lambda: not prompt.components)
