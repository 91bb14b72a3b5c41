"""The Bot API methods of the sandbox, called by the real python-telegram-bot."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import httpx
import pytest
from telegram import (
    Bot,
    ForceReply,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputMediaDocument,
    InputMediaPhoto,
    Message,
    ReactionTypeEmoji,
    ReplyParameters,
    TelegramObject,
)
from telegram.error import BadRequest, ChatMigrated, Conflict, Forbidden, InvalidToken, NetworkError, RetryAfter
from telegram.request import HTTPXRequest

from bots.sandbox.telegram import CallbackAnswer, File, TelegramSandbox

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000020000000308060000000b6d5bb50000000d4944415478da6364f8cf500f000386018089"
    "e44d240000000049454e44ae426082"
)


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramSandbox]:
    async with TelegramSandbox() as sandbox:
        yield sandbox


def bot_for(telegram: TelegramSandbox, token: str = "") -> Bot:
    return Bot(
        token or telegram.token,
        base_url=f"{telegram.api_url}/bot",
        base_file_url=f"{telegram.api_url}/file/bot",
        request=HTTPXRequest(connection_pool_size=8),
    )


@pytest.fixture
async def bot(telegram: TelegramSandbox) -> AsyncIterator[Bot]:
    async with bot_for(telegram) as client:
        yield client


def keyboard(*data: str) -> InlineKeyboardMarkup:
    return InlineKeyboardMarkup([[InlineKeyboardButton(f"Press {one}", callback_data=one) for one in data]])


async def test_it_listens_on_loopback_and_knows_the_bot(telegram: TelegramSandbox, bot: Bot) -> None:
    me = await bot.get_me()
    assert telegram.api_url.startswith("http://127.0.0.1:")
    assert (me.id, me.username, me.is_bot) == (telegram.bot.id, "sandbox_bot", True)
    assert me.can_read_all_group_messages
    assert me.api_kwargs == {}


async def test_a_token_may_be_percent_encoded_and_parameters_may_come_in_any_form(telegram: TelegramSandbox) -> None:
    mona = telegram.user("Mona")
    await mona.say(mona.private_chat, "/start")
    chat_id, encoded = str(mona.id), telegram.token.replace(":", "%3A")
    async with httpx.AsyncClient(base_url=f"{telegram.api_url}/bot{encoded}/") as http:
        answers = [
            await http.get("sendMessage", params={"chat_id": chat_id, "text": "1"}),
            await http.post("sendMessage", params={"chat_id": chat_id, "text": "1"}),
            await http.post("SENDMESSAGE", data={"chat_id": chat_id, "text": "1"}),
            await http.post("sendmessage", json={"chat_id": mona.id, "text": "1"}),
            await http.post("sendMessage", files={"chat_id": (None, chat_id), "text": (None, "1")}),
        ]
        unknown = await http.get("sendCake")
    assert [answer.json()["ok"] for answer in answers] == [True] * 5
    assert answers[0].headers["content-type"] == "application/json"
    assert unknown.status_code == 404
    assert unknown.json() == {"ok": False, "error_code": 404, "description": "Not Found"}


async def test_a_wrong_token_is_told_apart_from_no_token(telegram: TelegramSandbox) -> None:
    async with httpx.AsyncClient(base_url=telegram.api_url) as http:
        wrong = await http.get("/bot123:wrong/getMe")
        none = await http.get("/botwrong/getMe")
        root = await http.get("/")
    assert wrong.json() == {"ok": False, "error_code": 401, "description": "Unauthorized"}
    assert (wrong.status_code, none.status_code, root.status_code) == (401, 404, 404)
    with pytest.raises(InvalidToken):
        async with bot_for(telegram, "123:wrong"):
            pass


async def test_a_bot_may_not_write_to_strangers_or_to_those_who_blocked_it(telegram: TelegramSandbox, bot: Bot) -> None:
    mona = telegram.user("Mona")
    with pytest.raises(BadRequest, match="Chat not found"):
        await bot.send_message(mona.private_chat.id, "hi")
    await mona.say(mona.private_chat, "/start")
    await mona.block_bot()
    with pytest.raises(Forbidden, match="Forbidden: bot was blocked by the user"):
        await bot.send_message(mona.id, "hi")
    await mona.unblock_bot()
    assert (await bot.send_message(mona.id, "hi")).text == "hi"
    group = telegram.supergroup("Kitchen", [mona])
    await mona.remove_bot(group)
    with pytest.raises(Forbidden, match="Forbidden: bot was kicked from the supergroup chat"):
        await bot.send_message(group.id, "hi")


async def test_text_is_limited_after_parsing_in_utf16_units(telegram: TelegramSandbox, bot: Bot) -> None:
    mona = telegram.user("Mona")
    await mona.say(mona.private_chat, "/start")
    assert (await bot.send_message(mona.id, f"<b>{'🎂' * 2048}</b>", parse_mode="HTML")).text == "🎂" * 2048
    for text, words in (("🎂" * 2048 + "x", "Message is too long"), ("  ", "Message text is empty")):
        with pytest.raises(BadRequest, match=words):
            await bot.send_message(mona.id, text)
    with pytest.raises(BadRequest, match="Message caption is too long"):
        await bot.send_photo(mona.id, PIXEL, caption="x" * 1025)
    assert len(telegram.history(mona.private_chat)) == 2


async def test_replies_and_quotes_are_checked(telegram: TelegramSandbox, bot: Bot) -> None:
    mona = telegram.user("Mona")
    asked = await mona.say(mona.private_chat, "🎂 cake today?")
    reply = await bot.send_message(
        mona.id, "yes", reply_parameters=ReplyParameters(asked.id, quote="cake", quote_position=3)
    )
    assert reply.reply_to_message is not None
    assert reply.reply_to_message.message_id == asked.id
    assert reply.quote is not None
    assert (reply.quote.text, reply.quote.position) == ("cake", 3)
    with pytest.raises(BadRequest, match="Message to be replied not found"):
        await bot.send_message(mona.id, "yes", reply_to_message_id=999)
    free = await bot.send_message(mona.id, "yes", reply_to_message_id=999, allow_sending_without_reply=True)
    assert free.reply_to_message is None


async def test_a_topic_is_spoken_in_until_it_is_deleted(telegram: TelegramSandbox, bot: Bot) -> None:
    mona = telegram.user("Mona")
    forum = telegram.forum("House", [mona])
    topic = await mona.create_topic(forum, "Cakes")
    asked = await mona.say(forum, "hello", topic=topic)
    inside = await bot.send_message(forum.id, "hi", message_thread_id=topic.id)
    assert (inside.message_thread_id, inside.is_topic_message) == (topic.id, True)
    reply = await bot.send_message(forum.id, "hi", reply_to_message_id=asked.id)
    assert reply.message_thread_id == topic.id
    await mona.delete_topic(forum, topic)
    for thread in (topic.id, 1):
        with pytest.raises(BadRequest, match="Message thread not found"):
            await bot.send_message(forum.id, "hi", message_thread_id=thread)
    assert (await bot.send_message(forum.id, "hi")).message_thread_id is None


async def test_a_press_is_answered_once_and_not_too_late(telegram: TelegramSandbox, bot: Bot) -> None:
    mona = telegram.user("Mona")
    await mona.say(mona.private_chat, "/start")
    await bot.send_message(mona.id, "Sure?", reply_markup=keyboard("yes", "no"))
    prompt = await telegram.bot_message(mona.private_chat, containing="Sure?")
    pressing = asyncio.create_task(mona.press(prompt, "Press yes"))
    query = (await bot.get_updates(offset=-1, timeout=5))[0].callback_query
    assert query is not None
    assert query.data == "yes"
    assert isinstance(query.message, Message)
    await query.answer("done", show_alert=True)
    assert await pressing == CallbackAnswer("done", show_alert=True)
    late = "Query is too old and response timeout expired or query id is invalid"
    with pytest.raises(BadRequest, match=late):
        await query.answer()
    again = await mona.press_unanswered(prompt, "no")
    telegram.expire_callbacks()
    with pytest.raises(BadRequest, match=late):
        await bot.answer_callback_query(again.id)
    await bot.delete_message(mona.id, prompt.id)
    assert await mona.press(prompt, "no", within=0) is None
    gone = (await bot.get_updates(offset=-1))[0].callback_query
    assert gone is not None
    assert gone.message is not None
    assert not gone.message.is_accessible
    with pytest.raises(ValueError, match="no button 'maybe'"):
        await mona.press(prompt, "maybe")


@pytest.mark.parametrize("data", ["", "🎂" * 17])
async def test_button_data_is_1_to_64_bytes(telegram: TelegramSandbox, bot: Bot, data: str) -> None:
    mona = telegram.user("Mona")
    await mona.say(mona.private_chat, "/start")
    with pytest.raises(BadRequest, match="Button_data_invalid"):
        await bot.send_message(mona.id, "Sure?", reply_markup=keyboard(data))
    await bot.send_message(mona.id, "Sure?", reply_markup=keyboard("🎂" * 16))


async def test_edits_change_the_message_and_refuse_what_changes_nothing(telegram: TelegramSandbox, bot: Bot) -> None:
    mona = telegram.user("Mona")
    asked = await mona.say(mona.private_chat, "/start")
    sent = await bot.send_message(mona.id, "Sure?", reply_markup=keyboard("yes"))
    edited = await bot.edit_message_text("<b>Yes</b>", mona.id, sent.message_id, parse_mode="HTML")
    assert isinstance(edited, Message)
    assert (edited.text, edited.reply_markup) == ("Yes", None)
    assert edited.edit_date is not None
    shown = telegram.history(mona.private_chat)[-1]
    assert (shown.text, shown.buttons) == ("Yes", [])
    assert shown.former_buttons[0]["callback_data"] == "yes"
    with pytest.raises(BadRequest, match="Message is not modified: specified new message content and reply markup"):
        await bot.edit_message_text("<b>Yes</b>", mona.id, sent.message_id, parse_mode="HTML")
    await bot.edit_message_reply_markup(mona.id, sent.message_id, reply_markup=keyboard("again"))
    with pytest.raises(BadRequest, match="Message is not modified"):
        await bot.edit_message_reply_markup(mona.id, sent.message_id, reply_markup=keyboard("again"))
    with pytest.raises(BadRequest, match="Message can't be edited"):
        await bot.edit_message_text("x", mona.id, asked.id)
    await bot.delete_message(mona.id, sent.message_id)
    with pytest.raises(BadRequest, match="Message to edit not found"):
        await bot.edit_message_text("x", mona.id, sent.message_id)
    with pytest.raises(BadRequest, match="Message to delete not found"):
        await bot.delete_message(mona.id, sent.message_id)


async def test_force_reply_is_kept_for_the_person_but_shown_in_no_payload(telegram: TelegramSandbox, bot: Bot) -> None:
    mona = telegram.user("Mona")
    await mona.say(mona.private_chat, "/start")
    sent = await bot.send_message(mona.id, "Which?", reply_markup=ForceReply(selective=True))
    assert sent.reply_markup is None
    assert telegram.history(mona.private_chat)[-1].sent_markup == {"force_reply": True, "selective": True}


async def test_what_the_bot_uploads_can_be_downloaded_again(telegram: TelegramSandbox, bot: Bot) -> None:
    mona = telegram.user("Mona")
    await mona.say(mona.private_chat, "/start")
    photo = await bot.send_photo(mona.id, PIXEL, caption="<i>look</i>", parse_mode="HTML")
    assert (photo.photo[-1].width, photo.photo[-1].height, photo.caption) == (2, 3, "look")
    document = await bot.send_document(mona.id, b"words", filename="notes.txt")
    assert document.document is not None
    assert (document.document.file_name, document.document.file_size) == ("notes.txt", 5)
    file = await bot.get_file(document.document.file_id)
    assert bytes(await file.download_as_bytearray()) == b"words"
    again = await bot.send_document(mona.id, document.document.file_id)
    assert again.document == document.document
    assert (await bot.send_voice(mona.id, b"OggS", duration=2)).voice is not None
    assert (await bot.send_video(mona.id, b"\0", width=4, height=2)).video is not None
    assert (await bot.send_audio(mona.id, b"ID3", title="Song")).audio is not None
    assert (await bot.send_sticker(mona.id, b"RIFF", emoji="🎂")).sticker is not None
    assert (await bot.send_animation(mona.id, b"GIF89a", filename="a.gif")).animation is not None
    album = await bot.send_media_group(
        mona.id, [InputMediaPhoto(PIXEL, caption="two"), InputMediaPhoto(photo.photo[-1].file_id)]
    )
    assert len({one.media_group_id for one in album}) == 1
    assert [one.caption for one in album] == ["two", None]
    documents = await bot.send_media_group(mona.id, [InputMediaDocument(b"a", filename="a.txt")] * 2)
    assert [one.document.file_name for one in documents if one.document] == ["a.txt", "a.txt"]


async def test_large_unknown_and_spoilt_files_are_refused_as_told(telegram: TelegramSandbox, bot: Bot) -> None:
    mona = telegram.user("Mona")
    film = await mona.say(mona.private_chat, document=File("film.mkv", size=700 * 2**20))
    with pytest.raises(BadRequest, match="File is too big"):
        await bot.get_file(film.payload["document"]["file_id"])
    with pytest.raises(BadRequest, match="Wrong file_id or the file is temporarily unavailable"):
        await bot.get_file("nothing")
    short = await mona.say(mona.private_chat, document=File("lie.txt", b"longer than declared", size=3))
    file = await bot.get_file(short.payload["document"]["file_id"])
    assert file.file_size == 3
    assert len(await file.download_as_bytearray()) == 20
    assert file.file_path is not None
    telegram.spoil_file("lie.txt", "missing")
    telegram.spoil_file("lie.txt", "slow")
    telegram.spoil_file("lie.txt", "endless")
    async with httpx.AsyncClient() as http:
        path = file.file_path.replace(telegram.token, telegram.token.replace(":", "%3A"))
        assert (await http.get(path)).status_code == 404
        assert (await http.get(path)).content == b"longer than declared"
        async with http.stream("GET", path) as endless:
            got = 0
            async for chunk in endless.aiter_bytes():
                got += len(chunk)
                if got > 2**20:
                    break
        assert (await http.get(path)).status_code == 200
        assert (await http.get(path + "x")).status_code == 404


async def test_floods_and_failures_are_worded_as_the_real_ones_and_wear_off(
    telegram: TelegramSandbox, bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PTB_TIMEDELTA", "1")  # else the library warns of its own RetryAfter
    mona = telegram.user("Mona")
    await mona.say(mona.private_chat, "/start")
    group = telegram.group("Kitchen", [mona])
    telegram.rate_limit("send", retry_after=7, times=2, chat=mona.private_chat)
    for _ in range(2):
        with pytest.raises(RetryAfter) as caught:
            await bot.send_message(mona.id, "hi")
        assert caught.value.retry_after == timedelta(seconds=7)
        await bot.send_message(group.id, "other chats go on")
    await bot.send_message(mona.id, "hi")
    telegram.fail("sendMessage", 500)
    with pytest.raises(NetworkError, match="Internal Server Error"):
        await bot.send_message(mona.id, "hi")
    telegram.fail("getUpdates", 409)
    with pytest.raises(Conflict, match="terminated by other getUpdates request"):
        await bot.get_updates()
    upgraded = telegram.group("Old", [mona])
    new = await telegram.migrate(upgraded, mona)
    with pytest.raises(ChatMigrated) as moved:
        await bot.send_message(upgraded.id, "hi")
    assert moved.value.new_chat_id == new.id


async def test_a_lost_answer_leaves_the_message_sent(telegram: TelegramSandbox, bot: Bot) -> None:
    mona = telegram.user("Mona")
    await mona.say(mona.private_chat, "/start")
    telegram.lose_answer("sendMessage")
    with pytest.raises(NetworkError):
        await bot.send_message(mona.id, "hi")
    assert [one.text for one in telegram.history(mona.private_chat)] == ["/start", "hi"]


async def test_polling_can_stall_and_be_cut(telegram: TelegramSandbox, bot: Bot) -> None:
    telegram.stall_polling()
    stalled = asyncio.create_task(bot.get_updates(timeout=0, read_timeout=30))
    await telegram.until(lambda: telegram.calls("getUpdates"))
    mona = telegram.user("Mona")
    await mona.say(mona.private_chat, "nobody hears")
    done, _ = await asyncio.wait({stalled}, timeout=0.2)
    assert not done
    telegram.drop_connections()
    with pytest.raises(NetworkError):
        await stalled
    telegram.resume_polling()
    assert len(await bot.get_updates()) == 1


async def test_the_next_message_of_the_bot_can_be_waited_for(telegram: TelegramSandbox, bot: Bot) -> None:
    mona = telegram.user("Mona")
    await mona.say(mona.private_chat, "/start")
    waiting = asyncio.create_task(telegram.bot_message(mona.private_chat, containing="two"))
    await bot.send_message(mona.id, "one")
    await bot.send_message(mona.id, "two")
    assert (await waiting).text == "two"
    with pytest.raises(TimeoutError, match=r"the bot said \['one', 'two'\]"):
        await telegram.bot_message(mona.private_chat, within=0.05)


async def test_chats_members_and_connections_can_be_asked_for(telegram: TelegramSandbox, bot: Bot) -> None:
    mona, lisa = telegram.user("Mona"), telegram.user("Lisa")
    await mona.say(mona.private_chat, "/start")
    group = telegram.supergroup("Kitchen", [mona], username="kitchen")
    channel = telegram.channel("News", mona, discussion=group)
    connection = await mona.connect_business()
    full = await bot.get_chat("@kitchen")
    assert (full.id, full.linked_chat_id, full.api_kwargs) == (group.id, channel.id, {})
    assert (await bot.get_chat(mona.id)).first_name == "Mona"
    assert (await bot.get_chat_member(group.id, mona.id)).status == "creator"
    assert (await bot.get_chat_member(group.id, lisa.id)).status == "left"
    admins = await bot.get_chat_administrators(channel.id)
    assert [one.user.id for one in admins] == [mona.id, telegram.bot.id]
    assert all(isinstance(one, TelegramObject) and one.api_kwargs == {} for one in admins)
    with pytest.raises(BadRequest, match="There are no administrators in the private chat"):
        await bot.get_chat_administrators(mona.id)
    asked = await bot.get_business_connection(connection.id)
    assert (asked.user_chat_id, asked.is_enabled) == (mona.id, True)
    assert asked.date <= datetime.now(UTC)
    assert asked.rights is not None
    assert asked.rights.can_reply


async def test_small_duties_are_done(telegram: TelegramSandbox, bot: Bot) -> None:
    mona = telegram.user("Mona")
    asked = await mona.say(mona.private_chat, "/start")
    assert await bot.send_chat_action(mona.id, "typing")
    with pytest.raises(BadRequest, match="Wrong parameter action in request"):
        await bot.send_chat_action(mona.id, "dancing")
    assert await bot.set_message_reaction(mona.id, asked.id, ReactionTypeEmoji("👍"))
    assert asked.reactions == {telegram.bot.id: ["👍"]}
    assert await bot.set_my_commands([("start", "begin")])
    assert [one.command for one in await bot.get_my_commands()] == ["start"]


async def test_a_bot_may_not_write_where_members_may_not_or_where_it_was_thrown_out(
    telegram: TelegramSandbox, bot: Bot
) -> None:
    group = telegram.group("Kitchen", [telegram.user("Mona")])
    telegram.forbid(group, "can_send_messages")
    with pytest.raises(BadRequest, match="enough rights"):
        await bot.send_message(group.id, "hi")
    permissions = (await bot.get_chat(group.id)).permissions
    assert permissions is not None
    assert (permissions.can_send_messages, permissions.can_send_photos) == (False, True)
    telegram.remove_bot(group)
    with pytest.raises(Forbidden):
        await bot.send_message(group.id, "hi")
    assert (await bot.get_chat_member(group.id, telegram.bot.id)).status == "kicked"


async def test_answers_can_be_late_or_no_json_and_tell_the_time_of_the_world(telegram: TelegramSandbox) -> None:
    async with httpx.AsyncClient(base_url=f"{telegram.api_url}/bot{telegram.token}") as client:
        telegram.garble("getMe")
        with pytest.raises(ValueError, match="Expecting value"):
            (await client.get("/getMe")).json()
        telegram.slow("getMe", 30)
        with pytest.raises(httpx.ReadTimeout):
            await client.get("/getMe", timeout=0.1)
        telegram.shift_clock(-3600)
        told = parsedate_to_datetime((await client.get("/getMe")).headers["Date"])
    assert abs(datetime.now(UTC) - told - timedelta(hours=1)) < timedelta(seconds=5)
