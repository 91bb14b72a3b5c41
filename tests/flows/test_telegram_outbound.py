"""What we say on Telegram, by the real library, on the loopback Telegram."""

from collections.abc import AsyncIterator

import pytest

from bots.sandbox.telegram import Chat, File, Message, Person, TelegramSandbox
from core.chat.port import Mode, Part, Upload
from core.entries import Attachment
from core.errors import ChatRefused, ChatUnavailable
from core.ids import ChannelId, MessageId, ThreadId
from core.sidecars import FileRef
from tests.conftest import House, Until
from tests.flows.telegram_house import Door, door_on

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000100000001008060000001ff3ff610000000e49444154789c63601805a321000002490001"
    "5f6d4a4b0000000049454e44ae426082"
)


@pytest.fixture
async def sandbox() -> AsyncIterator[TelegramSandbox]:
    async with TelegramSandbox() as telegram:
        yield telegram


@pytest.fixture
def mona(sandbox: TelegramSandbox) -> Person:
    return sandbox.user("Mona")


@pytest.fixture
def group(sandbox: TelegramSandbox, mona: Person) -> Chat:
    return sandbox.supergroup("Film club", [mona])


@pytest.fixture
async def door(sandbox: TelegramSandbox, house: House) -> AsyncIterator[Door]:
    async with door_on(sandbox, house) as opened:
        yield opened


async def say(
    door: Door,
    chat: Chat,
    text: str,
    *uploads: Upload,
    mode: Mode = "markdown",
    quote: int | None = None,
    thread: int | None = None,
) -> list[MessageId]:
    (part,) = door.chat(chat).compose(text, mode)
    quoted = None if quote is None else MessageId(str(quote))
    topic = None if thread is None else ThreadId(str(thread))
    return await door.chat(chat).send(part, uploads, quote=quoted, thread=topic, nonce="speech-1:1")


def newest(chat: Chat) -> Message:
    return list(chat.messages.values())[-1]


async def test_a_part_is_sent_formatted_as_a_reply(
    door: Door, sandbox: TelegramSandbox, group: Chat, mona: Person
) -> None:
    question = await mona.say(group, "which film?")
    ids = await say(door, group, "**Solaris** \U0001f600 `x<y`", quote=question.id)
    sent = newest(group)
    assert ids == [str(sent.id)]
    assert sent.text == "Solaris \U0001f600 x<y"
    assert [entity["type"] for entity in sent.payload["entities"]] == ["bold", "code"]
    assert sent.payload["reply_to_message"]["message_id"] == question.id
    await say(door, group, "and", quote=99_999)
    assert "reply_to_message" not in newest(group).payload


async def test_markup_that_telegram_refuses_is_sent_once_as_plain_text(door: Door, group: Chat) -> None:
    await door.chat(group).send(Part("<b>a</i>", "a"), [], quote=None, thread=None, nonce="n")
    assert newest(group).text == "a"
    assert len(group.messages) == 1


async def test_the_answer_goes_to_its_topic_and_to_the_chat_itself_if_that_is_gone(
    door: Door, sandbox: TelegramSandbox, mona: Person
) -> None:
    forum = sandbox.forum("Plans", [mona])
    topic = await mona.create_topic(forum, "Films")
    await say(door, forum, "in the topic", thread=topic.id)
    assert newest(forum).payload["message_thread_id"] == topic.id
    await say(door, forum, "in General", thread=1)
    assert "message_thread_id" not in newest(forum).payload
    await mona.delete_topic(forum, topic)
    await say(door, forum, "**too** late", thread=topic.id)
    assert newest(forum).text == "(The topic is gone, so this stands here.)\ntoo late"
    await say(door, forum, "w" * 4000, thread=topic.id)
    assert newest(forum).text.endswith("www")


async def test_files_go_one_by_one_by_their_type_the_first_with_the_text(door: Door, group: Chat) -> None:
    uploads = [
        Upload("cat.png", PNG, "image/png"),
        Upload("clip.mp4", b"video", "video/mp4"),
        Upload("song.mp3", b"audio", "audio/mpeg"),
        Upload("../notes.txt", b"text", "text/plain"),
    ]
    ids = await say(door, group, "**look**", *uploads)
    photo, video, audio, document = group.messages.values()
    assert ids == [str(message.id) for message in (photo, video, audio, document)]
    assert (photo.payload["caption"], photo.payload["caption_entities"][0]["type"]) == ("look", "bold")
    assert ["photo" in photo.payload, "video" in video.payload, "audio" in audio.payload] == [True, True, True]
    assert document.payload["document"]["file_name"].endswith("notes.txt")


async def test_a_text_too_long_for_a_caption_stands_in_front_of_its_file(door: Door, group: Chat) -> None:
    await say(door, group, "w" * 2000, Upload("cat.png", PNG, "image/png"))
    text, photo = group.messages.values()
    assert len(text.text) == 2000
    assert "caption" not in photo.payload


async def test_a_business_chat_is_answered_through_its_connection(
    door: Door, sandbox: TelegramSandbox, mona: Person
) -> None:
    customer = sandbox.user("Cleo")
    connection = await mona.connect_business()
    chat = customer.business_chat(connection)
    await customer.say(chat, "are you open?")
    await say(door, chat, "yes")
    assert sandbox.calls("sendMessage")[-1].arguments["business_connection_id"] == connection.id
    assert newest(chat).text == "yes"


async def test_refusals_say_what_to_do_and_floods_say_how_long(
    door: Door, sandbox: TelegramSandbox, group: Chat, mona: Person
) -> None:
    await mona.say(mona.private_chat, "hi")
    sandbox.rate_limit("sendMessage", 7, chat=group)
    with pytest.raises(ChatUnavailable) as flood:
        await say(door, group, "a")
    assert (flood.value.retry_after, flood.value.name) == (7.0, "RateLimited")
    await say(door, mona.private_chat, "others go on")
    await mona.block_bot()
    with pytest.raises(ChatRefused, match="blocked") as blocked:
        await say(door, mona.private_chat, "a")
    assert blocked.value.name == "Forbidden"
    old = sandbox.group("Old", [mona])
    await sandbox.migrate(old, mona)
    with pytest.raises(ChatRefused, match="supergroup") as migrated:
        await say(door, old, "a")
    assert migrated.value.name == "ChatMoved"
    with pytest.raises(ChatRefused, match="does not know") as unknown:
        await say(door, sandbox.user("Nobody").private_chat, "a")
    assert unknown.value.name == "ChatNotFound"


async def test_what_may_have_been_sent_is_not_called_unsent(door: Door, sandbox: TelegramSandbox, group: Chat) -> None:
    sandbox.lose_answer("sendMessage")
    with pytest.raises(ChatRefused) as lost:
        await say(door, group, "a")
    assert lost.value.name == "UnknownOutcome"
    assert len(group.messages) == 1
    sandbox.rate_limit("sendDocument", 3)
    with pytest.raises(ChatRefused) as partly:
        await say(door, group, "b", Upload("a.png", PNG, "image/png"), Upload("b.txt", b"b", "text/plain"))
    assert partly.value.name == "PartlySent"


async def test_nothing_is_sent_while_telegram_cannot_be_reached(
    sandbox: TelegramSandbox, house: House, group: Chat
) -> None:
    async with door_on(sandbox, house, api_url="http://127.0.0.1:9", ready=False) as door:
        with pytest.raises(ChatUnavailable, match="not connected"):
            await say(door, group, "a")


async def test_a_file_has_a_link_below_the_file_address_of_the_bot(
    door: Door, sandbox: TelegramSandbox, group: Chat, mona: Person, until: Until
) -> None:
    await mona.say(group, "here", document=File("notes.txt", b"text"))
    await until(lambda: [fact for fact in door.facts(group) if isinstance(fact, Attachment)])
    file_id = newest(group).payload["document"]["file_id"]
    link = await door.chat(group).link(ref(group, file_id), fresh=False)
    assert link.url.startswith(f"{sandbox.api_url}/file/bot{sandbox.token}/documents/")
    assert link.hosts == {sandbox.api_url.removeprefix("http://")}


async def test_files_too_big_or_gone_are_refused_by_name(
    door: Door, sandbox: TelegramSandbox, group: Chat, mona: Person
) -> None:
    big = await mona.say(group, "big", video=File("film.mp4", None, size=30_000_000))
    with pytest.raises(ChatRefused) as too_big:
        await door.chat(group).link(ref(group, big.payload["video"]["file_id"]), fresh=False)
    assert too_big.value.name == "FileTooLarge"
    with pytest.raises(ChatRefused) as gone:
        await door.chat(group).link(ref(group, "nothing"), fresh=True)
    assert gone.value.name == "NotFound"
    sandbox.fail("getFile", 502)
    with pytest.raises(ChatUnavailable):
        await door.chat(group).link(ref(group, "nothing"), fresh=True)


def ref(chat: Chat, file_id: str) -> FileRef:
    return FileRef(platform="telegram", channel_id=ChannelId(str(chat.id)), message_id=MessageId("1"), file_id=file_id)
