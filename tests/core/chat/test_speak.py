"""Speaking: parts, repeats, refusals, and what is written down about it."""

import asyncio
import json
from typing import Any

import pytest

from core.chat.port import Chat, Upload
from core.chat.speak import Speaker, Speech
from core.entries import TurnDone, TurnStart, turn_event
from core.errors import ChatMoved, ChatOff, ChatRefused, ChatUnavailable, ResourceError
from core.ids import MessageId, SessionId, ThreadId, TurnId
from core.sessions.facts import Written
from tests.builders import SESSION, said
from tests.conftest import House
from tests.fakes import FakeChat


async def _upload(_session: SessionId, url: str) -> Upload:
    if "gone" in url:
        raise ResourceError("resource_not_found", "there is no such file")
    return Upload("cat.png", b"png", "image/png")


def a_speaker(house: House, chat: Chat | None) -> Speaker:
    return Speaker(house.sessions, lambda _: chat, house.store, _upload)


def lines_of(house: House) -> list[dict[str, Any]]:
    path = house.folder / "runtimes" / SESSION / "events.jsonl"
    return [json.loads(line) for line in path.read_bytes().splitlines()]


async def test_speech_outside_a_turn_is_one_batch_of_four_lines(house: House) -> None:
    chat = FakeChat(limit=4)
    speech = Speech(("abcdef", "gh"), "markdown", quote=MessageId("7"), thread=ThreadId("31"))
    spoken = await a_speaker(house, chat).say(SESSION, speech, key="k")
    assert spoken.as_output() == {"ok": True, "ids": ["9001", "9002", "9003"]}
    assert [(sent.text, sent.quote, sent.thread) for sent in chat.sent] == [
        ("abcd", "7", "31"),
        ("ef", None, "31"),
        ("gh", None, "31"),
    ]
    lines = lines_of(house)
    assert [line["data"].get("type") or line["data"]["role"] for line in lines] == [
        "turn.start",
        "assistant",
        "tool",
        "turn.done",
    ]
    assert len({line["turnId"] for line in lines}) == 1
    call = lines[1]["data"]["content"][0]
    assert call["input"] == {"messages": ["abcdef", "gh"], "mode": "markdown", "quote": "7", "threadId": "31"}


async def test_speech_during_a_turn_belongs_to_that_turn(house: House) -> None:
    session = house.sessions.of(SESSION)
    turn = TurnId("3b1b9d0e-5a8d-4a0f-9b0e-2a3c4d5e6f70")
    await session.append([Written((turn_event(TurnStart(turn_id=turn), now=1),))])
    await a_speaker(house, FakeChat()).say(SESSION, Speech(("hi",), "raw"), key="k")
    await session.append([Written((turn_event(TurnDone(turn_id=turn), now=2),))])
    assert [line["turnId"] for line in lines_of(house)] == [turn] * 4


async def test_the_same_key_sends_only_the_parts_that_were_not_sent(house: House) -> None:
    chat = FakeChat(limit=2)
    speaker, speech = a_speaker(house, chat), Speech(("abcd", "ef"), "raw")
    chat.refusals = []
    first = FakeChat(limit=2, refusals=[])
    await a_speaker(house, first).send(SESSION, Speech(("abcd",), "raw"), key="k")
    spoken = await speaker.send(SESSION, speech, key="k")
    assert [sent.text for sent in chat.sent] == ["ef"]
    assert spoken.ids == ("9001", "9002", "9001")
    assert [sent.nonce for sent in [*first.sent, *chat.sent]] == ["k:1", "k:2", "k:3"]


async def test_a_platform_that_asks_to_wait_is_waited_for(house: House) -> None:
    chat = FakeChat(refusals=[ChatUnavailable("slow down", retry_after=0.01)] * 3)
    assert (await a_speaker(house, chat).send(SESSION, Speech(("hi",), "raw"), key="k")).ok
    assert len(chat.sent) == 1


async def test_a_refusal_says_what_was_sent_and_where_it_failed(house: House) -> None:
    chat = FakeChat()
    speaker = a_speaker(house, chat)
    chat.refusals = [ChatRefused("not here", name="Forbidden")]
    spoken = await speaker.send(SESSION, Speech(("  ", "b"), "raw"), key="k")
    assert spoken.as_output() == {
        "ok": False,
        "error": {"name": "Forbidden", "message": "not here"},
        "sent": [],
        "failedAt": 1,
    }


async def test_a_file_that_cannot_be_read_is_left_out_and_named(house: House) -> None:
    class Filing(FakeChat):
        def compose(self, text: str, mode: Any) -> list[Any]:
            return [
                type(part)(part.text, part.plain, ("asset://gone", "asset://cat"))
                for part in super().compose(text, mode)
            ]

    chat = Filing()
    spoken = await a_speaker(house, chat).send(SESSION, Speech(("look",), "element"), key="k")
    assert chat.sent[0].files == ("cat.png",)
    assert spoken.ids == ("9001",)
    assert spoken.error is not None
    assert "asset://gone" in spoken.error[1]


async def test_a_platform_that_is_off_is_said_so_and_nothing_is_written(house: House) -> None:
    await house.sessions.of(SESSION).append([said(1)])
    with pytest.raises(ChatOff):
        await a_speaker(house, None).say(SESSION, Speech(("hi",), "raw"), key="k")
    assert len(lines_of(house)) == 1


@pytest.mark.parametrize("knows_nonces", [True, False])
async def test_a_part_of_unknown_outcome_is_repeated_only_where_the_platform_knows_nonces(
    house: House, *, knows_nonces: bool
) -> None:
    class Dying(FakeChat):
        async def send(self, *arguments: Any, **named: Any) -> Any:
            ids = await super().send(*arguments, **named)
            if len(self.sent) == 2:
                await asyncio.Event().wait()
            return ids

    dying, later = Dying(limit=2), FakeChat(limit=2, knows_nonces=knows_nonces)
    speech = Speech(("abcdef",), "raw")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await a_speaker(house, dying).send(SESSION, speech, key="k")
    spoken = await a_speaker(house, later).send(SESSION, speech, key="k")
    if knows_nonces:
        assert [(sent.text, sent.nonce) for sent in later.sent] == [("cd", "k:2"), ("ef", "k:3")]
        assert spoken.ok
    else:
        assert later.sent == []
        assert spoken.ids == ("9001",)
        assert spoken.error is not None
        assert spoken.error[0] == "UnknownOutcome"


OLD, NEW = SessionId("tg--5"), SessionId("tg--1005")


class Moving:
    """Chats of which one has become another."""

    def __init__(self, house: House, *, known: bool = False) -> None:
        self.old, self.new = FakeChat(limit=2), FakeChat(limit=2)
        self.successors: dict[SessionId, SessionId] = {OLD: NEW} if known else {}
        self.told: list[tuple[SessionId, SessionId]] = []
        self.speaker = Speaker(
            house.sessions,
            {OLD: self.old, NEW: self.new}.get,
            house.store,
            _upload,
            current=lambda session: self.successors.get(session, session),
            moved=self._moved,
        )

    async def _moved(self, old: SessionId, new: SessionId) -> None:
        self.told.append((old, new))
        self.successors[old] = new


def written(house: House, session: SessionId) -> list[str]:
    path = house.folder / "runtimes" / session / "events.jsonl"
    if not path.exists():
        return []
    lines: list[dict[str, Any]] = [json.loads(line) for line in path.read_bytes().splitlines()]
    return [line["data"].get("type") or line["data"]["role"] for line in lines]


async def test_speech_for_a_chat_that_has_moved_is_said_and_written_down_where_it_goes_on(house: House) -> None:
    chats = Moving(house, known=True)
    spoken = await chats.speaker.say(OLD, Speech(("hi",), "raw", quote=MessageId("7")), key="k")
    assert spoken.ok
    assert (chats.old.sent, [sent.text for sent in chats.new.sent]) == ([], ["hi"])
    assert chats.new.sent[0].quote is None, "messages have other numbers there"
    assert (written(house, OLD), written(house, NEW)) == ([], ["turn.start", "assistant", "tool", "turn.done"])


async def test_a_move_in_the_middle_of_a_speech_says_the_rest_in_the_new_chat(house: House) -> None:
    chats = Moving(house)
    chats.old.refusals = [ChatUnavailable("later", retry_after=0), ChatMoved("a supergroup now", successor=NEW)]
    spoken = await chats.speaker.say(OLD, Speech(("abcd", "ef"), "raw", quote=MessageId("7")), key="k")
    assert spoken.ok
    assert chats.told == [(OLD, NEW)]
    assert [sent.text for sent in chats.new.sent] == ["ab", "cd", "ef"]
    assert chats.new.sent[0].quote is None, "messages have other numbers there"
    assert (written(house, OLD), len(written(house, NEW))) == ([], 4)


async def test_parts_that_stand_in_the_old_chat_are_not_said_again(house: House) -> None:
    chats = Moving(house)
    whole = Speech(("abcd", "ef"), "raw")

    class MovesAfterOne(FakeChat):
        async def send(self, *what: Any, **how: Any) -> list[MessageId]:
            if self.sent:
                raise ChatMoved("a supergroup now", successor=NEW)
            return await super().send(*what, **how)

    first = MovesAfterOne(limit=2)
    speaker = Speaker(
        house.sessions,
        {OLD: first, NEW: chats.new}.get,
        house.store,
        _upload,
        current=lambda session: chats.successors.get(session, session),
        moved=chats._moved,  # pyright: ignore[reportPrivateUsage]
    )
    spoken = await speaker.say(OLD, whole, key="k")
    assert spoken.ok
    assert ([sent.text for sent in first.sent], [sent.text for sent in chats.new.sent]) == (["ab"], ["cd", "ef"])
    assert len(spoken.ids) == 3


async def test_a_move_that_nobody_takes_note_of_is_a_refusal_and_no_circle(house: House) -> None:
    chat = FakeChat(refusals=[ChatMoved("a supergroup now", successor=NEW)])
    speaker = Speaker(house.sessions, lambda _: chat, house.store, _upload)
    spoken = await speaker.send(OLD, Speech(("hi",), "raw"), key="k")
    assert not spoken.ok
    assert spoken.error is not None
    assert spoken.error[0] == "ChatMoved"
    assert chat.sent == []
