"""The contract suites of the seams: one set of sentences, true of every implementation."""

import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial

import aiohttp
import pytest

from bots.sandbox.discord import DiscordSandbox
from bots.sandbox.discord.model import Channel
from bots.sandbox.runtime import RuntimeSandbox
from bots.sandbox.telegram import Chat as Group
from bots.sandbox.telegram import TelegramSandbox
from core.chat.port import Chat, Mode, Part, Upload
from core.chat.prompt import Prompt
from core.chat.split import utf16_length
from core.confirmations import life
from core.confirmations.words import closed_prompt, prompt_of
from core.errors import ChatRefused, ChatUnavailable, RuntimeRefused, RuntimeUnavailable
from core.ids import ChannelId, EntryId, MessageId, TurnId, discord_session, telegram_session
from core.runtime.http import HttpRuntime
from core.runtime.port import Cause, Runtime
from core.sidecars import FileRef
from tests.builders import OPERATOR, SESSION, a_confirmation, a_task, an_ask
from tests.conftest import House
from tests.fakes import FakeChat, FakeRuntime
from tests.flows import discord_house, telegram_house


@dataclass(frozen=True)
class Place:
    """A chat of some platform, what stands in it now, and one that does not exist.

    ``prompt``: the text of a message that `Chat.ask` made, and how many buttons it has.
    """

    chat: Chat
    texts: Callable[[], list[str]]
    prompt: Callable[[MessageId], tuple[str, int]]
    limit: int
    nowhere: Chat | None = None


def on_discord(sandbox: DiscordSandbox, channel: Channel, message: MessageId) -> tuple[str, int]:
    [found] = [one for one in sandbox.history(channel) if one.id == message]
    return found.content, sum(len(row["components"]) for row in found.components)


def on_telegram(group: Group, message: MessageId) -> tuple[str, int]:
    found = group.messages[int(message)]
    return found.text, len(found.buttons)


def on_fake(chat: FakeChat, message: MessageId) -> tuple[str, int]:
    now = chat.prompts[message][-1]
    return f"{now.tool} {now.code} {now.outcome}", 0 if now.outcome else len(now.options)


@pytest.fixture(params=["fake", "discord", "telegram"])
async def place(request: pytest.FixtureRequest, house: House) -> AsyncIterator[Place]:
    match request.param:
        case "discord":
            async with DiscordSandbox() as discord:
                channel = discord.guild("Film club").text_channel("general")
                session = discord_session(channel.id)
                async with discord_house.door_on(discord, house) as door:
                    nowhere = door.inbound.chat(discord_session(7))
                    assert nowhere is not None
                    texts = lambda: [message.content for message in discord.history(channel)]  # noqa: E731 - short
                    yield Place(door.chat(channel), texts, partial(on_discord, discord, channel), 2000, nowhere)
                    await door.inbound.stop()
                    away = door.inbound.chat(session)
                    assert away is not None
                    with pytest.raises(ChatUnavailable):
                        await away.send(Part("late", "late"), (), quote=None, thread=None, nonce="late")
        case "telegram":
            async with TelegramSandbox() as telegram:
                group = telegram.supergroup("Film club", [telegram.user("Mona")])
                async with telegram_house.door_on(telegram, house) as door:
                    nowhere = door.inbound.chat(telegram_session(7))
                    assert nowhere is not None
                    texts = lambda: [message.text for message in telegram.history(group)]  # noqa: E731 - short
                    yield Place(door.chat(group), texts, partial(on_telegram, group), 4096, nowhere)
        case _:
            fake = FakeChat()
            yield Place(fake, lambda: [sent.text for sent in fake.sent], partial(on_fake, fake), 2000)


MODES: list[Mode] = ["element", "raw", "markdown"]


@pytest.mark.parametrize("mode", MODES)
async def test_a_text_is_cut_to_what_the_platform_takes_and_nothing_is_lost(place: Place, mode: Mode) -> None:
    words = [f"word{number}" for number in range(2000)]
    parts = place.chat.compose(" ".join(words), mode)
    assert len(parts) > 1
    for number, part in enumerate(parts):
        await place.chat.send(part, (), quote=None, thread=None, nonce=f"k:{number}")
    assert all(utf16_length(text) <= place.limit for text in place.texts())
    said = " ".join(place.texts()) if not isinstance(place.chat, FakeChat) else "".join(place.texts())
    assert re.findall(r"word\d+", said) == words


@pytest.mark.parametrize("mode", MODES)
def test_a_blank_text_has_no_parts(place: Place, mode: Mode) -> None:
    assert place.chat.compose(" \n ", mode) == []


async def test_what_is_sent_stands_in_the_chat_under_the_id_that_is_given_back(place: Place) -> None:
    before = len(place.texts())
    [part] = place.chat.compose("hello", "raw")
    first = await place.chat.send(part, (), quote=None, thread=None, nonce="a:1")
    second = await place.chat.send(part, (), quote=None, thread=None, nonce="a:2")
    assert len({*first, *second}) == len(first) + len(second) == 2
    assert place.texts()[before:] == ["hello", "hello"]


async def test_a_quoted_message_that_is_gone_is_left_out(place: Place) -> None:
    [part] = place.chat.compose("hello", "raw")
    assert await place.chat.send(part, (), quote=MessageId("4611686018427387904"), thread=None, nonce="q:1")


async def test_the_same_nonce_is_the_same_message_where_nonces_are_known(place: Place) -> None:
    if not place.chat.knows_nonces or isinstance(place.chat, FakeChat):
        return
    [part] = place.chat.compose("hello", "raw")
    sent = [await place.chat.send(part, (), quote=None, thread=None, nonce="same:1") for _ in range(2)]
    assert sent[0] == sent[1]
    assert place.texts().count("hello") == 1


async def test_files_go_with_the_part(place: Place) -> None:
    [part] = place.chat.compose("look", "raw")
    upload = Upload("notes.txt", b"hello", "text/plain")
    assert await place.chat.send(part, [upload], quote=None, thread=None, nonce="f:1")


async def test_a_chat_that_is_not_there_refuses(place: Place) -> None:
    if place.nowhere is None:
        return
    with pytest.raises(ChatRefused):
        await place.nowhere.send(Part("hello", "hello"), (), quote=None, thread=None, nonce="n:1")
    ref = FileRef(
        platform="x", channel_id=ChannelId("7"), message_id=MessageId("8"), attachment_id="9", file_id="nothing"
    )
    with pytest.raises(ChatRefused):
        await place.nowhere.link(ref, fresh=False)


# --- asking people ------------------------------------------------------------------------------------------------


ASKED = a_confirmation(a_task(1), args={"path": "notes.md"})
OVER = closed_prompt(life.chosen(ASKED, "yes", OPERATOR, 5_000))
NOBODY_S = MessageId("4611686018427387904")


async def ask(place: Place, *, quote: MessageId | None = None, nonce: str = "p:1") -> MessageId:
    return await place.chat.ask(prompt_of(ASKED), (), quote=quote, thread=None, nonce=nonce)


async def test_a_prompt_stands_under_the_id_that_is_given_back_with_a_button_for_each_option(place: Place) -> None:
    text, buttons = place.prompt(await ask(place))
    assert "notes.md" in text
    assert buttons == len(prompt_of(ASKED).options) > 1


async def test_an_outcome_takes_the_place_of_the_buttons_and_may_be_shown_again(place: Place) -> None:
    message = await ask(place)
    for _ in range(2):
        await place.chat.revise(message, OVER, thread=None)
        text, buttons = place.prompt(message)
        assert "Approved by" in text
        assert buttons == 0


async def test_a_prompt_that_quotes_what_is_gone_is_asked_all_the_same(place: Place) -> None:
    assert place.prompt(await ask(place, quote=NOBODY_S))[1] > 0


async def test_the_same_nonce_is_the_same_prompt_where_nonces_are_known(place: Place) -> None:
    asked = [await ask(place, nonce="twice:1") for _ in range(2)]
    assert (asked[0] == asked[1]) == place.chat.knows_nonces


WORDS = an_ask(task=a_task(2))
GONE = {
    "open": prompt_of(ASKED),
    "over": OVER,
    "words": prompt_of(WORDS),
    "words over": closed_prompt(life.chosen(WORDS, "stop", OPERATOR, 5_000)),
}


@pytest.mark.parametrize("prompt", GONE.values(), ids=GONE)
async def test_a_prompt_that_is_gone_is_said_to_be(place: Place, prompt: Prompt) -> None:
    if isinstance(place.chat, FakeChat):
        place.chat.gone.add(NOBODY_S)
    with pytest.raises(ChatRefused) as refused:
        await place.chat.revise(NOBODY_S, prompt, thread=None)
    assert refused.value.name == "NotFound"


async def test_nobody_is_asked_in_a_chat_that_is_not_there(place: Place) -> None:
    if place.nowhere is not None:
        with pytest.raises(ChatRefused):
            await place.nowhere.ask(prompt_of(ASKED), (), quote=None, thread=None, nonce="n:2")


# --- the runtime --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Agent:
    """A runtime, the ways to make its next calls fail, and the decisions that it took."""

    runtime: Runtime
    fail: Callable[[int], None]
    fail_resolve: Callable[[int], None]
    told: Callable[[], list[str]]


@pytest.fixture(params=["fake", "http"])
async def agent(request: pytest.FixtureRequest) -> AsyncIterator[Agent]:
    if request.param == "fake":
        fake = FakeRuntime()
        errors: dict[int, Exception] = {503: RuntimeUnavailable("503"), 422: RuntimeRefused("422")}
        yield Agent(
            fake,
            lambda status: fake.errors.append(errors[status]),
            lambda status: fake.deaf.append(RuntimeUnavailable(str(status))),
            lambda: [record.task_hash for record in fake.resolved],
        )
        return
    async with RuntimeSandbox() as server, aiohttp.ClientSession() as client:
        yield Agent(
            HttpRuntime(client, server.url, server.token),
            lambda status: server.fail("/deliver", status),
            lambda status: server.fail("/resolve", status),
            lambda: [call.body["taskHash"] for call in server.calls if call.path == "/resolve" and call.status == 204],
        )


LINE = b'{"id":"a","type":"message","data":{"id":"m"},"timestamp":1}'


async def test_a_runtime_takes_lines_and_answers_a_wake(agent: Agent) -> None:
    await agent.runtime.deliver(SESSION, [LINE], key=EntryId("a"))
    await agent.runtime.deliver(SESSION, [LINE], key=EntryId("a"))
    answer = await agent.runtime.wake(SESSION, TurnId("t"), Cause(EntryId("a"), "direct"))
    assert (answer.reply, answer.entries, answer.seen) == (None, (), None)


async def test_a_runtime_that_fails_says_whether_asking_again_may_help(agent: Agent) -> None:
    agent.fail(503)
    with pytest.raises(RuntimeUnavailable):
        await agent.runtime.deliver(SESSION, [LINE], key=EntryId("a"))
    agent.fail(422)
    with pytest.raises(RuntimeRefused):
        await agent.runtime.deliver(SESSION, [LINE], key=EntryId("a"))


async def test_a_runtime_takes_a_decision_and_a_repeat_of_it(agent: Agent) -> None:
    record = life.chosen(ASKED, "yes", OPERATOR, 5_000)
    for _ in range(2):
        await agent.runtime.resolve(record)
    assert set(agent.told()) == {record.task_hash}


@pytest.mark.parametrize("status", [400, 401, 404, 409, 413, 422, 429, 500, 503])
async def test_a_decision_that_is_not_taken_may_always_be_told_again(agent: Agent, status: int) -> None:
    record = life.chosen(ASKED, "yes", OPERATOR, 5_000)
    agent.fail_resolve(status)
    with pytest.raises(RuntimeUnavailable):
        await agent.runtime.resolve(record)
    assert agent.told() == []
    await agent.runtime.resolve(record)
    assert agent.told() == [record.task_hash]
