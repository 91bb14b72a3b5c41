"""Every update that the sandbox makes, read back by python-telegram-bot, and how the queue hands them out."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from aiohttp import web
from telegram import TelegramObject, Update, WebhookInfo

from bots.sandbox.telegram import Chat, Contact, File, Person, Poll, TelegramSandbox, Venue

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000020000000308060000000b6d5bb50000000d4944415478da6364f8cf500f000386018089"
    "e44d240000000049454e44ae426082"
)


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramSandbox]:
    async with TelegramSandbox() as sandbox:
        yield sandbox


class Poller:
    """A bot of raw HTTP."""

    def __init__(self, telegram: TelegramSandbox, http: httpx.AsyncClient) -> None:
        self._url = f"{telegram.api_url}/bot{telegram.token}/"
        self._http = http
        self.offset = 0

    async def ask(self, method: str, **arguments: Any) -> dict[str, Any]:
        return (await self._http.post(self._url + method, json=arguments, timeout=10)).json()

    async def peek(self, **arguments: Any) -> list[dict[str, Any]]:
        return (await self.ask("getUpdates", **arguments))["result"]

    async def take(self, **arguments: Any) -> list[dict[str, Any]]:
        updates = await self.peek(offset=self.offset, **arguments)
        self.offset = updates[-1]["update_id"] + 1 if updates else self.offset
        return updates


@pytest.fixture
async def poller(telegram: TelegramSandbox) -> AsyncIterator[Poller]:
    async with httpx.AsyncClient() as http:
        yield Poller(telegram, http)


def undocumented(value: object) -> Iterator[str]:
    if isinstance(value, TelegramObject):
        yield from (f"{type(value).__name__}.{name}" for name in value.api_kwargs)
        for kind in type(value).__mro__:
            for name in getattr(kind, "__slots__", ()):
                if not name.startswith("_"):
                    yield from undocumented(getattr(value, name, None))
    elif isinstance(value, list | tuple):
        for item in value:  # pyright: ignore[reportUnknownVariableType] - any list of the library
            yield from undocumented(item)  # pyright: ignore[reportUnknownArgumentType] - any list of the library


def assert_survives(sent: Any, read: Any, where: str) -> None:
    """Whatever was sent stands in what the library makes of it again."""
    if isinstance(sent, dict):
        for name, value in sent.items():  # pyright: ignore[reportUnknownVariableType] - JSON
            assert name in read, f"{where}.{name} got lost"
            assert_survives(value, read[name], f"{where}.{name}")
    elif isinstance(sent, list):
        assert len(sent) == len(read), where  # pyright: ignore[reportUnknownArgumentType] - JSON
        for index, value in enumerate(sent):  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType] - JSON
            assert_survives(value, read[index], f"{where}[{index}]")
    else:
        assert sent == read, where


def parsed(raw: dict[str, Any]) -> Update:
    update = Update.de_json(raw, None)
    assert list(undocumented(update)) == []
    assert_survives(raw, update.to_dict(), "update")
    return update


async def test_every_kind_of_content_is_read_back_whole(telegram: TelegramSandbox, poller: Poller) -> None:
    mona = telegram.user("Mona", username="mona", last_name="Lisa", is_premium=True)
    helper = telegram.user("Helper", is_bot=True, username="helper_bot")
    chat = telegram.supergroup("Kitchen", [mona])
    first = await mona.say(chat, "Hello /start@sandbox_bot @mona #tag https://example.org/x mona@example.org")
    await mona.say(chat, f"<b>bold</b> <a href='tg://user?id={mona.id}'>you</a>", html=True)
    await mona.say(chat, "a reply", reply_to=first, quote="/start")
    await mona.say(chat, "seen", photo=File("p.png", PIXEL))
    await mona.say(chat, "read", document=File("../../etc/x", b"%PDF-", "application/pdf"))
    await mona.say(chat, audio=File("a.mp3", b"ID3", duration=3))
    await mona.say(chat, voice=File("v.ogg", b"OggS", duration=3))
    await mona.say(chat, video=File("v.mp4", b"\0", duration=3))
    await mona.say(chat, video_note=File("n.mp4", b"\0", duration=3))
    await mona.say(chat, animation=File("g.mp4", b"\0", duration=3))
    for name in ("s.webp", "s.tgs", "s.webm"):
        await mona.say(chat, sticker=File(name, b"\0"), emoji="🎂")
    await mona.say(chat, location=(52.5, 13.4))
    await mona.say(chat, venue=Venue(52.5, 13.4, "Bakery", "Street 1"))
    await mona.say(chat, contact=Contact("+491", "Lisa", "L", mona.id))
    await mona.say(chat, dice=("🎲", 4))
    await mona.say(chat, poll=Poll("Cake?", ["yes", "no"]))
    await mona.say(chat, forward=first)
    await mona.say(chat, forward=first, hide_forwarder=True)
    await mona.say(chat, "inline", via_bot=helper)
    await helper.say(chat, "I am a bot")
    await mona.say(chat, "who?", anonymous=True)
    channel = telegram.channel("News", mona, username="news")
    await mona.say(chat, "as channel", as_chat=channel)
    await mona.say(chat, extra={"story": {"chat": channel.payload(), "id": 7}})
    await mona.say(chat, document=File("film.mkv", size=700 * 2**20))
    messages = [parsed(raw).message for raw in await poller.take()]
    assert len(messages) == 26
    said = [one for one in messages if one is not None]
    assert {one.type for one in said[0].entities} == {"bot_command", "mention", "hashtag", "url", "email"}
    mention = said[1].entities[1].user
    assert mention is not None
    assert mention.id == mona.id
    assert said[2].quote is not None
    assert said[2].quote.position == 6
    assert said[2].message_thread_id == first.id
    assert not said[2].is_topic_message
    assert said[9].animation is not None
    assert said[9].document is not None
    assert said[22].sender_chat is not None
    assert said[22].sender_chat.id == chat.id
    assert said[25].document is not None
    assert said[25].document.file_size == 700 * 2**20
    assert {one.chat.id for one in said} == {chat.id}


async def test_a_photo_is_a_list_of_sizes_and_the_largest_is_the_original(
    telegram: TelegramSandbox, poller: Poller
) -> None:
    mona = telegram.user("Mona")
    await mona.say(mona.private_chat, photo=File("p.jpg", b"\xff\xd8\xff", width=1200, height=800))
    message = parsed((await poller.take())[0]).message
    assert message is not None
    assert [(size.width, size.height) for size in message.photo] == [(90, 60), (1200, 800)]


async def test_an_album_comes_in_the_order_asked_for(telegram: TelegramSandbox, poller: Poller) -> None:
    mona = telegram.user("Mona")
    files = [File("a.png", PIXEL), File("b.png", PIXEL), File("c.mp4", b"\0")]
    album = await mona.send_album(mona.private_chat, files, "three", order=[2, 0, 1])
    updates = [parsed(raw).message for raw in await poller.take()]
    assert [one.message_id for one in updates if one] == [album[2].id, album[0].id, album[1].id]
    assert len({one.media_group_id for one in updates if one}) == 1
    assert [one.caption for one in updates if one] == [None, "three", None]


async def test_edits_bear_whole_seconds_and_touches_the_same_content(telegram: TelegramSandbox, poller: Poller) -> None:
    mona = telegram.user("Mona")
    plain = await mona.say(mona.private_chat, "<b>old</b>", html=True)
    photo = await mona.say(mona.private_chat, "caption", photo=File("p.png", PIXEL))
    await mona.edit(plain, "new")
    await mona.touch(plain)
    await mona.edit(photo, "new caption")
    edits = [parsed(raw) for raw in await poller.take()][2:]
    assert [edit.edited_message and edit.edited_message.text for edit in edits] == ["new", "new", None]
    assert edits[0].edited_message is not None
    assert edits[0].edited_message.entities == ()
    assert edits[2].edited_message is not None
    assert edits[2].edited_message.caption == "new caption"
    assert isinstance(plain.payload["edit_date"], int)


async def test_bots_are_not_told_of_deletions_in_ordinary_chats(telegram: TelegramSandbox, poller: Poller) -> None:
    mona = telegram.user("Mona")
    message = await mona.say(mona.private_chat, "gone soon")
    await mona.delete(message)
    assert len(await poller.take()) == 1
    assert telegram.history(mona.private_chat) == []


async def test_a_channel_post_goes_on_into_the_linked_group(telegram: TelegramSandbox, poller: Poller) -> None:
    mona = telegram.user("Mona")
    group = telegram.supergroup("Talk", [mona])
    channel = telegram.channel("News", mona, discussion=group)
    post = await mona.say(channel, "fresh")
    await mona.edit(post, "fresher")
    posted, forwarded, edited = [parsed(raw) for raw in await poller.take()]
    assert posted.channel_post is not None
    assert posted.channel_post.from_user is None
    assert forwarded.message is not None
    assert forwarded.message.from_user is not None
    assert forwarded.message.from_user.id == 777000
    assert forwarded.message.is_automatic_forward
    assert forwarded.message.sender_chat is not None
    assert forwarded.message.sender_chat.id == channel.id
    assert edited.edited_channel_post is not None
    await mona.say(group, "a comment")
    assert ["message" in raw for raw in await poller.take()] == [True]
    await poller.ask("sendMessage", chat_id=channel.id, text="from the bot")
    assert [raw["message"]["text"] for raw in await poller.take()] == ["from the bot"]


async def test_topics_begin_with_their_service_message(telegram: TelegramSandbox, poller: Poller) -> None:
    mona = telegram.user("Mona")
    forum = telegram.forum("House", [mona])
    topic = await mona.create_topic(forum, "Cakes")
    await mona.say(forum, "in it", topic=topic)
    await mona.say(forum, "in General")
    made, inside, general = [parsed(raw).message for raw in await poller.take()]
    assert made is not None
    assert inside is not None
    assert general is not None
    assert made.forum_topic_created is not None
    assert inside.message_thread_id == made.message_id == topic.id
    assert inside.is_topic_message
    assert inside.reply_to_message is not None
    assert inside.reply_to_message.forum_topic_created is not None
    assert general.message_thread_id is None
    assert not general.is_topic_message


async def test_business_chats_have_the_customers_number_and_tell_of_deletions(
    telegram: TelegramSandbox, poller: Poller
) -> None:
    mona, owner = telegram.user("Mona"), telegram.user("Owner")
    connection = await owner.connect_business()
    chat = mona.business_chat(connection)
    direct = await mona.say(mona.private_chat, "direct")
    asked = await mona.say(chat, "how much?")
    answered = await owner.say(chat, "much")
    await owner.edit(answered, "very much")
    await mona.delete(asked, answered)
    sent = await poller.ask("sendMessage", chat_id=mona.id, business_connection_id=connection.id, text="beep")
    await owner.disconnect_business(connection)
    updates = [parsed(raw) for raw in await poller.take()]
    assert updates[0].business_connection is not None
    assert updates[0].business_connection.is_enabled
    business = updates[2].business_message
    assert business is not None
    assert business.chat.id == mona.id == mona.private_chat.id
    assert business.business_connection_id == connection.id
    assert asked.id == direct.id
    assert updates[4].edited_business_message is not None
    assert updates[5].deleted_business_messages is not None
    assert updates[5].deleted_business_messages.message_ids == (asked.id, answered.id)
    own = updates[6].business_message
    assert own is not None
    assert own.sender_business_bot is not None
    assert own.from_user is not None
    assert (own.sender_business_bot.id, own.from_user.id) == (telegram.bot.id, owner.id)
    assert sent["result"]["message_id"] == own.message_id
    assert updates[7].business_connection is not None
    assert not updates[7].business_connection.is_enabled


async def test_membership_titles_and_pins_are_told(telegram: TelegramSandbox, poller: Poller) -> None:
    mona, lisa = telegram.user("Mona"), telegram.user("Lisa")
    group = telegram.group("Kitchen", [mona])
    await poller.peek(allowed_updates=["message", "my_chat_member", "chat_member"])
    await mona.add_bot(group, "administrator")
    await lisa.join(group)
    await mona.pin(await mona.rename(group, "Bakery"))
    await lisa.leave(group)
    await mona.remove_bot(group)
    await mona.say(group, "now among us")
    updates = [parsed(raw) for raw in await poller.take()]
    kinds = [next(name for name in update.to_dict() if name != "update_id") for update in updates]
    member, message, mine = "chat_member", "message", "my_chat_member"
    assert kinds == [mine, member, message, message, message, member, message, mine, message]
    assert updates[4].message is not None
    assert updates[4].message.pinned_message is not None
    assert updates[4].message.chat.title == "Bakery"


async def test_reactions_come_only_if_asked_for_by_name(telegram: TelegramSandbox, poller: Poller) -> None:
    mona = telegram.user("Mona")
    message = await mona.say(mona.private_chat, "hm")
    await mona.react(message, "👍")
    assert len(await poller.take()) == 1
    await poller.take(allowed_updates=["message_reaction", "message_reaction_count"])
    await mona.react(message, "🔥")
    post = await mona.say(telegram.channel("News", mona), "unwanted")
    await mona.react(post, "🔥")
    reaction, count = [parsed(raw) for raw in await poller.take()]
    assert reaction.message_reaction is not None
    assert [one.to_dict() for one in reaction.message_reaction.old_reaction] == [{"type": "emoji", "emoji": "👍"}]
    assert count.message_reaction_count is not None
    assert count.message_reaction_count.reactions[0].total_count == 1


async def test_a_group_becomes_a_supergroup_with_both_notices_or_one(telegram: TelegramSandbox, poller: Poller) -> None:
    mona = telegram.user("Mona")
    for notices in ((True, True), (True, False), (False, True)):
        group = telegram.group("Kitchen", [mona])
        new = await telegram.migrate(group, mona, old_notice=notices[0], new_notice=notices[1])
        told = [parsed(raw).message for raw in await poller.take()]
        assert [one.chat.id for one in told if one] == [
            chat.id for chat, wanted in zip((group, new), notices, strict=True) if wanted
        ]
        refused = await poller.ask("sendMessage", chat_id=group.id, text="hi")
        assert refused["description"] == "Bad Request: group chat was upgraded to a supergroup chat"
        assert refused["parameters"] == {"migrate_to_chat_id": new.id}
        assert (await poller.ask("sendMessage", chat_id=new.id, text="hi"))["ok"]


async def test_message_ids_run_per_supergroup_and_over_all_other_chats(telegram: TelegramSandbox) -> None:
    mona, lisa = telegram.user("Mona"), telegram.user("Lisa")
    one, two = telegram.supergroup("One", [mona]), telegram.supergroup("Two", [mona])
    group = telegram.group("Three", [mona])

    async def say(person: Person, chat: Chat) -> int:
        return (await person.say(chat, "x")).id

    assert [await say(mona, one), await say(mona, two), await say(mona, one)] == [2, 2, 3]
    assert [await say(mona, mona.private_chat), await say(lisa, lisa.private_chat), await say(mona, group)] == [1, 2, 3]


async def test_privacy_mode_lets_through_what_is_meant_for_the_bot(poller: Poller, telegram: TelegramSandbox) -> None:
    telegram.bot.can_read_all_group_messages = False
    mona = telegram.user("Mona")
    group = telegram.group("Kitchen", [mona])
    sent = await poller.ask("sendMessage", chat_id=group.id, text="hello")
    await mona.say(group, "among us")
    await mona.say(group, "/cake")
    await mona.say(group, "/cake@other_bot")
    await mona.say(group, "🎂 hey @Sandbox_Bot")
    await mona.say(group, "yes", reply_to=telegram.history(group)[0])
    assert [raw["message"]["text"] for raw in await poller.take()] == ["/cake", "🎂 hey @Sandbox_Bot", "yes"]
    telegram.bot.can_read_all_group_messages = True
    await mona.say(group, "still among us")
    await mona.remove_bot(group)
    await mona.add_bot(group)
    await poller.take()
    await mona.say(group, "now you hear it")
    assert [raw["message"]["text"] for raw in await poller.take()] == ["now you hear it"]
    assert sent["ok"]


async def test_an_unconfirmed_update_comes_again_and_a_confirmed_one_never(
    telegram: TelegramSandbox, poller: Poller
) -> None:
    mona = telegram.user("Mona")
    for number in range(5):
        await mona.say(mona.private_chat, f"{number}")
    first = await poller.peek(limit=2)
    assert [one["message"]["text"] for one in first] == ["0", "1"]
    assert await poller.peek(limit=2) == first
    assert [one["message"]["text"] for one in await poller.peek(offset=first[1]["update_id"])] == ["1", "2", "3", "4"]
    assert (await poller.peek())[0]["message"]["text"] == "1"
    assert [one["message"]["text"] for one in await poller.peek(offset=-2)] == ["3", "4"]
    assert telegram.pending_updates() == 2


async def test_update_ids_may_start_again_at_any_number(telegram: TelegramSandbox, poller: Poller) -> None:
    mona = telegram.user("Mona")
    await mona.say(mona.private_chat, "before")
    await poller.take()
    assert await poller.take() == []
    telegram.restart_update_ids(1000)
    await mona.say(mona.private_chat, "after")
    assert [one["update_id"] for one in await poller.take()] == [1000]
    assert telegram.pending_updates() == 1
    assert await poller.take() == []


async def test_updates_are_kept_for_a_day(telegram: TelegramSandbox, poller: Poller) -> None:
    mona = telegram.user("Mona")
    telegram.shift_clock(-25 * 3600)
    await mona.say(mona.private_chat, "too old")
    telegram.shift_clock(2 * 3600)
    message = await mona.say(mona.private_chat, "old")
    telegram.shift_clock(23 * 3600)
    now = await mona.say(mona.private_chat, "new")
    assert [one["message"]["text"] for one in await poller.take()] == ["old", "new"]
    assert now.payload["date"] - message.payload["date"] >= 23 * 3600


async def test_a_long_poll_answers_as_soon_as_something_happens(telegram: TelegramSandbox, poller: Poller) -> None:
    mona = telegram.user("Mona")
    waiting = asyncio.create_task(poller.take(timeout=50))
    await telegram.until(lambda: telegram.calls("getUpdates"))
    await mona.say(mona.private_chat, "wake up")
    async with asyncio.timeout(5):
        assert [one["message"]["text"] for one in await waiting] == ["wake up"]


async def test_a_second_poller_ends_the_first_with_409(telegram: TelegramSandbox, poller: Poller) -> None:
    first = asyncio.create_task(poller.ask("getUpdates", timeout=50))
    await telegram.until(lambda: telegram.calls("getUpdates"))
    await poller.ask("getUpdates", timeout=0)
    refused = await first
    assert refused["error_code"] == 409
    assert refused["description"] == (
        "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
    )


async def test_anything_can_be_pushed_even_what_no_library_parses(telegram: TelegramSandbox, poller: Poller) -> None:
    await telegram.push({"telepathy": {"thought": "cake"}})
    await telegram.push({"message": {"message_id": "not a number"}})
    await telegram.push({"update_id": 800_000_000, "message": None})
    updates = await poller.take()
    assert ["telepathy" in one or "message" in one for one in updates] == [True] * 3
    assert updates[2]["update_id"] == 800_000_000


async def test_allowed_updates_are_remembered_until_named_anew(telegram: TelegramSandbox, poller: Poller) -> None:
    mona = telegram.user("Mona")
    await poller.take(allowed_updates=["edited_message"])
    message = await mona.say(mona.private_chat, "unseen")
    await mona.edit(message, "seen")
    assert ["edited_message" in one for one in await poller.take()] == [True]
    await poller.take(allowed_updates=[])
    await mona.say(mona.private_chat, "seen again")
    assert ["message" in one for one in await poller.take()] == [True]


async def test_a_webhook_gets_each_update_again_until_it_is_answered_with_2xx(
    telegram: TelegramSandbox, poller: Poller
) -> None:
    got: list[tuple[str | None, str]] = []

    async def receive(request: web.Request) -> web.Response:
        update = await request.json()
        got.append((request.headers.get("X-Telegram-Bot-Api-Secret-Token"), update["message"]["text"]))
        return web.Response(status=500 if len(got) == 1 else 200)

    app = web.Application()
    app.router.add_post("/hook", receive)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
        polling = asyncio.create_task(poller.ask("getUpdates", timeout=50))
        await telegram.until(lambda: telegram.calls("getUpdates"))
        assert (await poller.ask("setWebhook", url=url, secret_token="s-1"))["ok"]
        assert (await polling)["description"] == "Conflict: terminated by setWebhook request"
        mona = telegram.user("Mona")
        await mona.say(mona.private_chat, "one")
        await mona.say(mona.private_chat, "two")
        await telegram.until(lambda: telegram.pending_updates() == 0)
        assert got == [("s-1", "one"), ("s-1", "one"), ("s-1", "two")]
        info = WebhookInfo.de_json((await poller.ask("getWebhookInfo"))["result"], None)
        assert (info.url, info.pending_update_count, info.api_kwargs) == (url, 0, {})
        assert info.last_error_message == "Wrong response from the webhook: 500 Internal Server Error"
        assert (await poller.ask("getUpdates"))["description"] == (
            "Conflict: can't use getUpdates method while webhook is active;"
            " use deleteWebhook to delete the webhook first"
        )
        assert (await poller.ask("deleteWebhook"))["ok"]
        assert (await poller.ask("getUpdates"))["ok"]
        assert not (await poller.ask("setWebhook", url="https://example.org/hook"))["ok"]
    finally:
        await runner.cleanup()
