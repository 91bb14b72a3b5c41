"""The real python-telegram-bot library against the loopback Telegram, into a real log."""

import asyncio
import errno
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from bots.sandbox.telegram import Chat, Contact, File, Person, Poll, TelegramSandbox, Venue
from bots.sandbox.telegram.payloads import Saying
from bots.telegram.updates import KINDS
from core.content import plain_text, sources
from core.entries import Attachment, MessageCreated, MessageDeleted
from core.errors import LogUnavailable, TokenRefused
from core.ids import telegram_session
from tests.conftest import House, Until
from tests.core.log.disks import FailingDisk
from tests.flows.telegram_house import Door, door_on, session_of

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


# --- what is recorded ---------------------------------------------------------------------------------------------


async def test_messages_and_edits_stand_in_the_log_and_are_confirmed(
    door: Door, sandbox: TelegramSandbox, group: Chat, mona: Person, until: Until
) -> None:
    message = await mona.say(group, "Thursday?")
    await mona.edit(message, "Friday?")
    await mona.touch(message)
    await mona.say(mona.private_chat, "between us")
    await until(lambda: door.texts(mona.private_chat) and not sandbox.pending_updates())
    first, edited = door.created(group)
    assert (first.content, first.user.name, first.is_direct) == ("Thursday?", "Mona", False)
    assert (edited.content, edited.edited and edited.edited.revision) == ("Friday?", 1)
    assert door.created(mona.private_chat)[0].is_direct
    assert door.health.problem is None


async def test_a_log_that_cannot_be_used_keeps_no_other_chat_waiting(
    sandbox: TelegramSandbox, house: House, group: Chat, mona: Person, until: Until
) -> None:
    (house.folder / "runtimes" / telegram_session(group.id) / "events.jsonl").mkdir(parents=True)
    async with door_on(sandbox, house) as door:
        await mona.say(group, "nowhere to put it")
        await mona.say(mona.private_chat, "between us")
        await until(lambda: door.texts(mona.private_chat) and not sandbox.pending_updates())
        assert door.health.unread["unwritable"] == 1
    (parked,) = await house.store.parked()
    assert "nowhere to put it" in parked[2]


async def test_what_the_bot_says_itself_is_no_message(
    door: Door, sandbox: TelegramSandbox, mona: Person, until: Until
) -> None:
    customer = sandbox.user("Cleo")
    chat = customer.business_chat(await mona.connect_business())
    await customer.say(chat, "open?")
    await until(lambda: door.texts(chat))
    (part,) = door.chat(chat).compose("yes", "raw")
    await door.chat(chat).send(part, [], quote=None, thread=None, nonce="n")
    await customer.say(chat, "thanks")
    await until(lambda: len(door.texts(chat)) == 2)
    assert door.texts(chat) == ["open?", "thanks"]


async def test_all_kinds_are_asked_for_by_name_each_time(
    door: Door, sandbox: TelegramSandbox, group: Chat, mona: Person, until: Until
) -> None:
    await mona.say(group, "a")
    await until(lambda: len(sandbox.calls("getUpdates")) > 2)
    assert {call.arguments["allowed_updates"] for call in sandbox.calls("getUpdates")} == {json.dumps(KINDS)}


async def test_a_backlog_is_recorded_in_full_and_in_order(
    sandbox: TelegramSandbox, house: House, group: Chat, mona: Person, until: Until
) -> None:
    for number in range(250):
        await mona.say(group, str(number))
    async with door_on(sandbox, house) as door:
        await until(lambda: not sandbox.pending_updates())
        assert door.texts(group) == [str(number) for number in range(250)]


async def test_the_same_update_again_leaves_one_entry_over_a_restart_too(
    sandbox: TelegramSandbox, house: House, group: Chat, mona: Person, until: Until
) -> None:
    async with door_on(sandbox, house) as door:
        message = await mona.say(group, "once")
        await until(lambda: door.texts(group))
        await sandbox.redeliver(message)
        await until(lambda: not sandbox.pending_updates())
    await house.reopen()
    await sandbox.redeliver(message)
    async with door_on(sandbox, house) as door:
        await until(lambda: not sandbox.pending_updates())
        assert door.texts(group) == ["once"]


async def test_numbers_that_start_anew_below_are_followed(
    door: Door, sandbox: TelegramSandbox, group: Chat, mona: Person, until: Until
) -> None:
    await mona.say(group, "before")
    await until(lambda: not sandbox.pending_updates() and door.texts(group))
    sandbox.restart_update_ids(at=1000)
    for text in ("after", "and more"):
        await mona.say(group, text)
        await until(lambda: not sandbox.pending_updates())
    assert door.texts(group) == ["before", "after", "and more"]


async def test_edits_that_come_twice_or_out_of_order_leave_one_revision_each(
    door: Door, sandbox: TelegramSandbox, group: Chat, mona: Person, until: Until
) -> None:
    message = await mona.say(group, "one")
    sent = message.payload["date"]
    second, third, fourth = (
        message.payload | {"text": text, "edit_date": sent + after}
        for text, after in (("two", 1), ("three", 2), ("four", 3))
    )
    for payload in (second, second, fourth, third, fourth):
        await sandbox.push({"edited_message": payload})
    await sandbox.redeliver(message)
    await until(lambda: not sandbox.pending_updates() and len(door.texts(group)) >= 3)
    assert door.texts(group) == ["one", "two", "four"]
    assert [fact.edited and fact.edited.revision for fact in door.created(group)] == [None, 1, 2]


async def test_an_album_out_of_order_is_one_album_with_each_part_and_its_file(
    door: Door, sandbox: TelegramSandbox, group: Chat, mona: Person, until: Until
) -> None:
    files = [File(f"{number}.png", PNG) for number in range(3)]
    album = await mona.send_album(group, files, caption="the three of us", order=[2, 0, 1])
    await until(lambda: not sandbox.pending_updates() and len(door.facts(group)) >= 6)
    parts = door.created(group)
    assert [part.message_id for part in parts] == [str(album[index].id) for index in (2, 0, 1)]
    assert {part.album for part in parts} == {album[0].payload["media_group_id"]}
    assert ["the three of us" in part.content for part in parts] == [False, True, False]
    kinds = [type(fact) for fact in door.facts(group)]
    assert kinds == [MessageCreated, Attachment] * 3


async def test_a_topic_is_a_thread_and_a_chain_of_replies_is_none(
    door: Door, sandbox: TelegramSandbox, group: Chat, mona: Person, until: Until
) -> None:
    forum = sandbox.forum("Plans", [mona])
    topic = await mona.create_topic(forum, "Films")
    first = await mona.say(forum, "in the topic", topic=topic)
    await mona.say(forum, "a reply in the topic", topic=topic, reply_to=first)
    await mona.say(forum, "in General")
    asked = await mona.say(group, "Thursday or Friday?")
    chained = {"message_thread_id": asked.id}
    await mona.say(group, "the latter", reply_to=asked, quote="Friday", extra=chained)
    await until(lambda: not sandbox.pending_updates() and len(door.texts(group)) == 2)
    spoken = door.created(forum)[-3:]
    told = [(fact.content, fact.thread_id, fact.quote and fact.quote.id) for fact in spoken]
    assert told == [
        ("in the topic", str(topic.id), None),
        ("a reply in the topic", str(topic.id), str(first.id)),
        ("in General", None, None),
    ]
    chain = door.created(group)[1]
    assert chain.quote is not None
    assert (chain.thread_id, chain.quote.id, chain.quote.content) == (None, str(asked.id), "Friday")


async def test_every_kind_comes_through_the_wire_with_something_to_read(
    door: Door, sandbox: TelegramSandbox, house: House, group: Chat, mona: Person, until: Until
) -> None:
    sayings: list[Saying] = [
        {"photo": File("a.png", PNG)},
        {"document": File("../../etc/notes.txt", b"text")},
        {"audio": File("a.mp3", b"audio", duration=3)},
        {"voice": File("a.ogg", b"voice", duration=3)},
        {"video": File("a.mp4", b"video", duration=3, width=4, height=3)},
        {"video_note": File("b.mp4", b"video", duration=3, width=4, height=4)},
        {"animation": File("c.mp4", b"video", duration=3, width=4, height=3)},
        {"sticker": File("a.webp", PNG, "image/webp"), "emoji": "\U0001f600"},
        {"location": (48.85, 2.35)},
        {"venue": Venue(48.85, 2.35, "Kino", "Road 1")},
        {"contact": Contact("+81", "Jiro")},
        {"dice": ("\U0001f3b2", 6)},
        {"poll": Poll("When?", ["Fri", "Sun"])},
        {"forward": await mona.say(mona.private_chat, "the plan")},
    ]
    for saying in sayings:
        await mona.say(group, **saying)
    await mona.rename(group, "Film circle")
    await until(lambda: not sandbox.pending_updates() and len(door.texts(group)) == len(sayings) + 1)
    assert all(plain_text(text).strip() for text in door.texts(group))
    assert [sources(fact.content) for fact in door.created(group) if sources(fact.content)] == [
        [item.url for item in fact.items] for fact in door.facts(group) if isinstance(fact, Attachment)
    ]
    assert sum(isinstance(fact, Attachment) for fact in door.facts(group)) == 8
    assert door.texts(group)[-1] == "Mona changed the chat's name to Film circle."
    assets = house.sessions.folder(session_of(group)) / "resources" / "assets"
    assert ["http" in sidecar.read_text() for sidecar in assets.glob("*.json")] == [False] * 8
    assert door.health.unread == {}


# --- who is let in ------------------------------------------------------------------------------------------------


async def test_nothing_of_a_chat_that_no_rule_lets_in_is_kept_but_what_is_known_can_be_edited(
    sandbox: TelegramSandbox, house: House, group: Chat, mona: Person, until: Until
) -> None:
    async with door_on(sandbox, house) as door:
        known = await mona.say(group, "known")
        await until(lambda: not sandbox.pending_updates() and door.texts(group))
    async with door_on(sandbox, house, allow=str(mona.id + 1)) as door:
        await mona.edit(known, "changed")
        await mona.edit(await mona.say(group, "unknown"), "unknown still")
        await mona.edit(await mona.say(mona.private_chat, "direct"), "direct still")
        await until(lambda: not sandbox.pending_updates())
        assert door.texts(group) == ["known", "changed"]
        assert not house.sessions.exists(session_of(mona.private_chat))
    async with door_on(sandbox, house, allow=f"!{group.id}") as door:
        await mona.edit(known, "excluded")
        await until(lambda: not sandbox.pending_updates())
        assert door.texts(group) == ["known", "changed"]


# --- business chats -----------------------------------------------------------------------------------------------


async def test_a_business_deletion_leaves_the_direct_chat_alone(
    door: Door, sandbox: TelegramSandbox, mona: Person, until: Until
) -> None:
    customer = sandbox.user("Cleo")
    chat = customer.business_chat(await mona.connect_business())
    await customer.say(customer.private_chat, "direct")
    message = await customer.say(chat, "business")
    await customer.delete(message)
    await until(lambda: len(door.facts(chat)) == 2)
    assert isinstance(door.facts(chat)[1], MessageDeleted)
    assert [type(fact) for fact in door.facts(customer.private_chat)] == [MessageCreated]


async def test_a_connection_is_asked_about_once_after_a_restart(
    sandbox: TelegramSandbox, house: House, mona: Person, until: Until
) -> None:
    customer = sandbox.user("Cleo")
    async with door_on(sandbox, house):
        chat = customer.business_chat(await mona.connect_business())
        await until(lambda: not sandbox.pending_updates())
    sandbox.fail("getBusinessConnection", 502)
    async with door_on(sandbox, house) as door:
        await customer.say(chat, "first")
        await customer.say(chat, "second")
        await until(lambda: len(door.texts(chat)) == 2)
        assert len(sandbox.calls("getBusinessConnection")) == 2


async def test_an_unknown_or_ended_connection_is_ignored_and_counted(
    door: Door, sandbox: TelegramSandbox, mona: Person, until: Until
) -> None:
    customer = sandbox.user("Cleo")
    connection = await mona.connect_business()
    chat = customer.business_chat(connection)
    message = await customer.say(chat, "heard")
    await until(lambda: door.texts(chat))
    stranger = dict(message.payload, business_connection_id="nobody")
    await sandbox.push({"business_message": stranger})
    await sandbox.push({"business_message": stranger})
    await mona.disconnect_business(connection)
    await sandbox.push({"business_message": dict(message.payload, message_id=99)})
    await until(lambda: not sandbox.pending_updates())
    assert door.texts(chat) == ["heard"]
    assert door.health.unread["business connection"] == 3
    assert len(sandbox.calls("getBusinessConnection")) == 1


# --- what cannot be read ------------------------------------------------------------------------------------------


async def test_a_bad_update_is_parked_without_secrets_and_holds_up_nothing(
    door: Door, sandbox: TelegramSandbox, house: House, group: Chat, mona: Person, until: Until
) -> None:
    bad = {
        "message_id": 5,
        "date": "never",
        "chat": group.payload(),
        "text": f"https://x.org/a?sig=s3cret {sandbox.token} 123456789:AAaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    }
    await mona.say(group, "before")
    await sandbox.push({"message": bad})
    await mona.say(group, "behind")
    await until(lambda: not sandbox.pending_updates())
    assert door.texts(group) == ["before", "behind"]
    ((platform, reason, raw),) = await house.store.parked()
    assert (platform, reason.partition(":")[0]) == ("telegram", "message")
    assert "https://x.org/a?*** *** ***" in raw
    assert door.health.unread["message"] == 1


async def test_what_cannot_be_read_of_a_chat_that_is_not_let_in_is_only_counted(
    sandbox: TelegramSandbox, house: House, group: Chat, until: Until
) -> None:
    async with door_on(sandbox, house, allow="dm") as door:
        await sandbox.push({"message": {"message_id": 5, "date": "never", "chat": group.payload()}})
        await sandbox.push({"message": {"chat": "nobody knows"}})
        await sandbox.push({"message": None, "channel_post": []})
        await sandbox.push({"hologram": {"chat": group.payload()}})
        await sandbox.push({})
        await until(lambda: not sandbox.pending_updates())
        assert await house.store.parked() == []
        assert door.health.unread == {"message": 3, "hologram": 1, "no update": 1}


async def test_even_what_is_no_update_at_all_is_taken(door: Door, group: Chat) -> None:
    await door.inbound.take([None, 7, "text", [], {}, {"update_id": "x"}, {"update_id": 1, "message": 5}])
    assert door.health.unread == {"no update": 6, "message": 1}


async def test_a_message_that_the_log_cannot_take_is_counted_and_takes_no_other_along(
    door: Door, group: Chat, mona: Person
) -> None:
    def update(number: int, **members: object) -> dict[str, object]:
        message = {"message_id": number, "date": 1793531041, "chat": group.payload(), "from": mona.user}
        return {"update_id": number, "message": message | members}

    unwritable = {"file_id": "\ud83d", "file_unique_id": "u"}
    await door.inbound.take([update(1, text="before"), update(2, document=unwritable), update(3, text="behind")])
    assert door.texts(group) == ["before", "behind"]
    assert door.health.unread == {"unwritable": 1}


# --- the disk -----------------------------------------------------------------------------------------------------


def full(_number: int, name: str) -> int | None:
    return errno.ENOSPC if name == "write_at" else None


def roomy(_number: int, _name: str) -> int | None:
    return None


async def test_what_the_disk_refuses_stays_unconfirmed_and_is_recorded_later(
    sandbox: TelegramSandbox, tmp_path: Path, group: Chat, mona: Person, until: Until
) -> None:
    disk = FailingDisk()
    house = House(tmp_path / "full", disk)
    await house.open()
    async with door_on(sandbox, house) as door:
        disk.fault = full
        await mona.say(group, "waits")
        await until(lambda: "log takes nothing" in (door.health.problem or ""))
        assert sandbox.pending_updates() == 1
        disk.fault = roomy
        await until(lambda: door.texts(group) and not sandbox.pending_updates())
        assert door.health.problem is None
        disk.fault = full
        message = await mona.say(group, "by webhook")
        with pytest.raises(LogUnavailable):
            await door.inbound.take([{"update_id": 1, "message": message.payload}])
        disk.fault = roomy
    await house.close()


async def test_a_stop_confirms_nothing(
    sandbox: TelegramSandbox, house: House, group: Chat, mona: Person, until: Until
) -> None:
    async with door_on(sandbox, house) as door:
        await door.inbound.stop()
        await until(door.task.done)
        asked = len(sandbox.calls("getUpdates"))
        await mona.say(group, "later")
    assert len(sandbox.calls("getUpdates")) == asked
    assert sandbox.pending_updates() == 1


# --- the connection -----------------------------------------------------------------------------------------------


async def test_a_refused_token_ends_it_with_the_cure(sandbox: TelegramSandbox, house: House) -> None:
    async with door_on(sandbox, house, token="123:AAwrong", ready=False) as door:
        with pytest.raises(TokenRefused, match="BotFather") as refused:
            await door.task
    assert "AAwrong" not in str(refused.value)


async def test_a_wrong_address_is_told_apart_from_a_wrong_token(
    sandbox: TelegramSandbox, house: House, until: Until
) -> None:
    runner = web.AppRunner(web.Application())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with door_on(sandbox, house, api_url=url, ready=False) as door:
        await until(lambda: "no Telegram Bot API" in (door.health.problem or ""))
        assert not door.task.done()
    await runner.cleanup()


async def test_a_second_poller_is_explained_and_outlasted(
    door: Door, sandbox: TelegramSandbox, group: Chat, mona: Person, until: Until
) -> None:
    sandbox.fail("getUpdates", 409, description="Conflict: terminated by other getUpdates request; make sure")
    await mona.say(group, "a")
    await until(lambda: "another program" in (door.health.problem or ""))
    await mona.say(group, "b")
    await until(lambda: len(door.texts(group)) == 2 and door.health.ready)


async def test_what_is_on_its_way_out_outlives_the_polling(
    door: Door, sandbox: TelegramSandbox, group: Chat, mona: Person, until: Until
) -> None:
    sandbox.fail("getUpdates", 409)
    await mona.say(group, "a")
    await until(lambda: door.health.problem)
    (part,) = door.chat(group).compose("still here", "raw")
    assert await door.chat(group).send(part, [], quote=None, thread=None, nonce="n")


async def test_a_webhook_that_is_set_is_explained(sandbox: TelegramSandbox, house: House, until: Until) -> None:
    text = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete it"
    sandbox.fail("getUpdates", 409, description=text)
    async with door_on(sandbox, house, ready=False) as door:
        await until(lambda: "webhook is set" in (door.health.problem or ""))
        await until(lambda: door.health.ready)


async def test_a_connection_that_dies_in_silence_is_made_anew(
    sandbox: TelegramSandbox, house: House, group: Chat, mona: Person, until: Until
) -> None:
    async with door_on(sandbox, house, poll_seconds=0, patience=0.3) as door:
        sandbox.stall_polling()
        await until(lambda: "did not answer in time" in (door.health.problem or ""))
        sandbox.resume_polling()
        await mona.say(group, "alive")
        await until(lambda: door.texts(group) == ["alive"] and door.health.ready)


async def test_a_lost_connection_a_failure_and_a_flood_are_told_and_outlasted(
    door: Door, sandbox: TelegramSandbox, group: Chat, mona: Person, until: Until
) -> None:
    sandbox.drop_connections()
    await until(lambda: "cannot be reached" in (door.health.problem or ""))
    await until(lambda: door.health.ready)
    sandbox.rate_limit("getUpdates", 1)
    await mona.say(group, "a")
    await until(lambda: "less often" in (door.health.problem or ""))
    await until(lambda: door.texts(group) == ["a"] and door.health.ready)


async def test_no_record_of_any_library_names_the_token(
    sandbox: TelegramSandbox, house: House, group: Chat, mona: Person, until: Until, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with door_on(sandbox, house) as door:
        sandbox.fail("getUpdates", 502)
        await mona.say(group, "a secret of mine")
        await until(lambda: not sandbox.pending_updates() and door.texts(group))
    secret = sandbox.token.partition(":")[2]
    assert [record.name for record in caplog.records if secret in record.getMessage()] == []
    assert "a secret of mine" not in caplog.text


async def test_cancelled_it_ends_at_once(sandbox: TelegramSandbox, house: House) -> None:
    async with door_on(sandbox, house) as door:
        door.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await door.task
