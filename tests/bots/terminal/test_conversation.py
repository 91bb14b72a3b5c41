"""A conversation from real logs: each message once, where it first stood, as it is now."""

from pathlib import Path

import pytest
from rich.cells import cell_len

from bots.terminal import log_reader
from bots.terminal.conversation import Conversation, Item
from bots.terminal.drawing import draw
from bots.terminal.log_reader import LogReader
from core.codec import raw_json
from core.confirmations.record import Person
from core.entries import AssistantMessage, message_entry
from core.ids import new_uuid
from core.sessions.facts import Fact, Said, Written, said_here
from tests.builders import SESSION, a_confirmation, a_message, a_picture, retracted, said
from tests.conftest import House

HOSTILE = "\x1b[31mred \u202eturned\u2066 [bold]no[/bold] \x9b1m\nsecond"


def texts(conversation: Conversation, reader: LogReader, width: int = 60) -> list[str]:
    return [line.plain for item in conversation.items for line in draw(item, width, reader.stored)]


async def log(house: House, *facts: Fact) -> None:
    for fact in facts:
        await house.sessions.of(SESSION).append([fact])


def read(house: House) -> tuple[Conversation, LogReader]:
    reader = LogReader(house.folder, SESSION)
    conversation = Conversation()
    conversation.prepend(reader.newest(), whole=reader.at_beginning)
    return conversation, reader


def read_back(conversation: Conversation, reader: LogReader) -> None:
    while not reader.at_beginning:
        conversation.prepend(reader.older(), whole=reader.at_beginning)


async def test_an_edit_stands_in_the_place_of_its_message_and_a_retraction_without_its_text(house: House):
    await log(house, said(1, "first"), said(2, "secret"), said(3, "last"))
    await log(house, said(1, "mended", edited_at=5), retracted(2))
    conversation, reader = read(house)
    with reader:
        one, two, three = texts(conversation, reader)
    assert one.endswith("Mona (edited): mended")
    assert "Mona took a message back at" in two
    assert three.endswith("Mona: last")


@pytest.mark.parametrize("page", [1, 2, 3, 200])
async def test_however_long_the_pages_are_the_conversation_is_the_same(
    house: House, page: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(log_reader, "PAGE", page)
    await log(house, said(1, "a"), Said(a_message(2, "b"), media=(a_picture(2),)), said(3, "c"), said(4, "d"))
    await log(house, said(1, "A", edited_at=5), retracted(3), said(1, "AA", edited_at=9))
    conversation, reader = read(house)
    with reader:
        read_back(conversation, reader)
        seen = texts(conversation, reader)
    assert [line[6:] for line in seen if "took" not in line] == [
        "Mona (edited): AA", "Mona: b", "🖼 cat.png · image/* · being fetched", "Mona: d",
    ]  # fmt: skip
    assert [item.key[3] for item in conversation.items if item.key] == ["1", "2", "3", "4"]


async def test_what_is_said_meanwhile_is_taken_up_once_also_what_the_journal_still_held(house: House):
    await log(house, said(1, "a"))
    conversation, reader = read(house)
    with reader:
        assert reader.new() == []
        await log(house, said(2, "b"), said(1, "A", edited_at=5))
        conversation.append(reader.new() or [])
        assert reader.new() == []
        assert [line[6:] for line in texts(conversation, reader)] == ["Mona (edited): A", "Mona: b"]


async def test_a_log_that_another_one_took_the_place_of_is_read_anew(house: House):
    await log(house, said(1, "a"), said(2, "b"))
    path = house.folder / "runtimes" / SESSION / "events.jsonl"
    _, reader = read(house)
    with reader:
        content = path.read_bytes()
        path.unlink()
        path.with_name("other").write_bytes(content)
        path.with_name("other").rename(path)
        assert reader.new() is None


async def test_a_line_that_cannot_be_read_is_told_and_the_others_shown(house: House):
    await log(house, said(1, "a"))
    with (house.folder / "runtimes" / SESSION / "events.jsonl").open("ab") as file:
        file.write(b"{broken\n")
    conversation, reader = read(house)
    with reader:
        seen = texts(conversation, reader)
    assert seen[0].endswith("Mona: a")
    assert "cannot be read; `ishiki log check`" in " ".join(seen)


async def test_what_was_asked_stands_among_what_was_said_and_changes_there(house: House):
    await log(house, said(1, "before", at=1000), said(2, "after", at=9000))
    conversation, reader = read(house)
    record = a_confirmation(at=5000)
    with reader:
        conversation.ask([record], whole=True)
        operator = Person(platform="cli", id="operator", name="operator")
        conversation.ask([record.with_(status="denied", choice="no", by=operator, decided_at=6000)], whole=True)
        seen = [line[6:] for line in texts(conversation, reader)]
    assert seen == ["Mona: before", "? May I use write_file?", "  → denied (No) by operator", "Mona: after"]


def test_what_was_asked_before_all_that_was_read_waits_for_its_page():
    conversation = Conversation()
    conversation.items.append(Item(9000))
    conversation.ask([a_confirmation(at=5000)], whole=False)
    assert len(conversation.items) == 1
    conversation.prepend([], whole=True)
    assert [item.at for item in conversation.items] == [5000, 9000]


@pytest.mark.parametrize("width", [16, 20, 54, 200])
async def test_hostile_text_moves_no_cursor_turns_no_direction_and_forges_no_line(house: House, width: int):
    await log(house, said(1, f"{HOSTILE} 你好👩‍👩‍👧 " * 30, user=a_message().user), said_here(HOSTILE))
    spoken = {"type": "tool-call", "toolCallId": "c", "toolName": "send_message", "input": {"messages": [HOSTILE]}}
    message = AssistantMessage(id=new_uuid(), timestamp=1, content=raw_json([spoken]))
    await log(house, Written((message_entry(message, now=1),)))
    conversation, reader = read(house)
    with reader:
        for item in conversation.items:
            first, *more = draw(item, width, reader.stored)
            assert all(line.plain.startswith(" " * 6) for line in more)
            for line in (first, *more):
                assert not set(line.plain) & set("\x1b\x9b\u202e\u2066\n")
                assert cell_len(line.plain) <= width
        assert "[bold]no[/bold]" in " ".join(texts(conversation, reader, 200))


async def test_a_long_log_is_opened_from_its_end(tmp_path: Path):
    folder = tmp_path / "runtimes" / SESSION
    folder.mkdir(parents=True)
    line = b'{"id":"x","type":"state","data":{"version":1},"timestamp":1}\n'
    (folder / "events.jsonl").write_bytes(line * 400_000)
    reads: list[int] = []

    class Counted(log_reader.View):
        def read_at(self, offset: int, count: int) -> bytes:
            reads.append(count)
            return super().read_at(offset, count)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_reader, "View", Counted)
        with LogReader(tmp_path, SESSION) as reader:
            assert len(reader.newest()) == len(reader.older()) == log_reader.PAGE
    assert sum(reads) <= 256 * 1024
