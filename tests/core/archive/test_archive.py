"""What was said can be found, as it stands now: through edits, retractions, kills, repairs and a lost database."""

import json
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from msgspec.structs import replace as changed

from core.archive.archive import Archive
from core.archive.forget import forget
from core.archive.rows import rows_of
from core.archive.schema import migrate
from core.archive.search import search
from core.archive.shelf import NAME, Piece, put
from core.codec import encode, raw_json
from core.entries import (
    AnyEntry,
    AssistantMessage,
    Edited,
    ToolMessage,
    TurnDone,
    TurnStart,
    UserMessage,
    custom_message,
    message_entry,
    turn_event,
)
from core.ids import SessionId, TurnId, new_session, new_turn_id, new_uuid
from core.log.file import FileLog
from core.log.journal import Journal
from core.sessions.facts import Written
from core.sessions.reading import Reading
from core.sessions.receipts import Receipt
from tests.builders import SESSION, a_message, retracted, said
from tests.conftest import House

NOW = 1_793_600_000_000
UNREADABLE = [
    {
        "type": "tool-result",
        "toolCallId": "c",
        "toolName": "send_message",
        "output": {"type": "json", "value": 7},
    }
]


async def archived(house: House) -> Archive:
    archive = Archive(house.store, house.sessions)
    archive.start()
    await archive.level()
    return archive


async def found(house: House, words: str, session: SessionId | None = None) -> list[str]:
    hits = await house.store.run(lambda database: search(database, words, session=session))
    return [hit.content for hit in hits]


async def rows(house: House, select: str) -> list[tuple[object, ...]]:
    return await house.store.run(lambda database: database.execute(select).fetchall())


def spoken(text: str, *, turn: TurnId, ok: bool = True) -> tuple[AnyEntry, AnyEntry]:
    call = {"type": "tool-call", "toolCallId": "c1", "toolName": "send_message", "input": {"messages": [text]}}
    outcome: dict[str, object] = {"ok": True, "ids": ["77"]} if ok else {"ok": False, "sent": [], "failedAt": 0}
    output = {"type": "json", "value": outcome}
    result = {"type": "tool-result", "toolCallId": "c1", "toolName": "send_message", "output": output}
    usage = {"inputTokens": 812, "inputTokenDetails": {"cacheReadTokens": 12}, "outputTokens": 20}
    ours = {"ishiki": {"model": "openai:gpt-5", "elapsedMs": 500}}
    assistant = AssistantMessage(
        id=new_uuid(), timestamp=NOW, content=raw_json([call]), usage=raw_json(usage), provider_options=raw_json(ours)
    )
    tool = ToolMessage(id=new_uuid(), timestamp=NOW, content=raw_json([result]))
    return message_entry(assistant, now=NOW, turn_id=turn), message_entry(tool, now=NOW, turn_id=turn)


async def test_what_was_said_is_found_newest_first_and_an_edit_replaces_it(house: House) -> None:
    archive = await archived(house)
    session = house.sessions.of(SESSION)
    await session.append([said(1, "明天的天气很好", at=NOW), said(2, "天气 report", at=NOW + 5)])
    await archive.level()
    assert await found(house, "天气") == ["天气 report", "明天的天气很好"]
    assert await found(house, "气") == ["天气 report", "明天的天气很好"]
    await session.append([said(1, "so much for that", edited_at=NOW + 9)])
    await archive.level()
    assert await found(house, "天气") == ["天气 report"]
    assert await found(house, "that") == ["so much for that"]
    await session.append([retracted(2)])
    await archive.level()
    assert await found(house, "天气") == []
    assert await rows(house, "SELECT count(*), sum(hidden) FROM messages") == [(3, 2)]
    await archive.stop()


async def test_one_session_is_searched_apart_from_the_others(house: House) -> None:
    archive = await archived(house)
    mine = new_session("cli")
    line = UserMessage(id=new_uuid(), timestamp=NOW, content=raw_json("the film"))
    await house.sessions.of(mine).append([Written((message_entry(line, now=NOW),))])
    await house.sessions.of(SESSION).append([said(1, "the film is on Friday")])
    await archive.level()
    assert await found(house, "film", mine) == ["the film"]
    assert len(await found(house, "film")) == 2
    await forget(house.store, mine)
    assert await found(house, "film") == ["the film is on Friday"]
    assert house.store.get(NAME, mine) is None
    await archive.stop()


async def test_a_turn_leaves_what_was_sent_what_it_cost_and_what_its_tools_gave(house: House) -> None:
    archive = await archived(house)
    session = house.sessions.of(SESSION)
    turn = new_turn_id()
    await session.append([said(1, "is it on Friday?")])
    await session.append([Written((turn_event(TurnStart(turn_id=turn), now=NOW),))])
    await session.append([Written((*spoken("yes, at eight", turn=turn), *spoken("unsent", turn=turn, ok=False)))])
    await session.append([Written((turn_event(TurnDone(turn_id=turn), now=NOW + 7),))])
    await archive.level()
    assert await found(house, "at eight") == ["yes, at eight"]
    assert await found(house, "unsent") == []
    used = await rows(house, "SELECT send_at, model, input, output, hit, elapsed_ms FROM usage")
    assert used == [(NOW // 1000, "openai@gpt-5", 812, 20, 12, 500)] * 2
    ((task, end_at, objective, results),) = await rows(
        house, "SELECT task_hash, end_at, objective, tool_results FROM action_history"
    )
    assert (task, end_at, objective) == (turn, NOW + 7, "is it on Friday?")
    assert json.loads(str(results))[0]["tool"] == "send_message"
    await archive.stop()


async def test_without_its_database_everything_is_found_again(house: House) -> None:
    session = house.sessions.of(SESSION)
    await session.append([said(1, "old words"), said(2, "gone")])
    await session.append([retracted(2)])
    archive = await archived(house)
    await archive.stop()
    await house.close()
    for path in (house.folder / ".store").glob("history.db*"):
        path.unlink()
    await house.open()
    archive = await archived(house)
    assert await found(house, "old words") == ["old words"]
    assert await found(house, "gone") == []
    await archive.stop()


async def test_a_log_whose_lines_moved_is_read_anew_and_nothing_stands_twice(house: House) -> None:
    session = house.sessions.of(SESSION)
    await session.append([said(1, "one"), said(2, "two"), said(3, "three")])
    archive = await archived(house)
    await archive.stop()
    await house.close()
    path = house.sessions.folder(SESSION) / "events.jsonl"
    first, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(rest))
    await house.open()
    archive = await archived(house)
    assert await found(house, "one") == []
    assert [await found(house, word) for word in ("two", "three")] == [["two"], ["three"]]
    assert first
    await archive.stop()


async def test_lines_that_nobody_understands_stop_nothing(house: House) -> None:
    folder = house.sessions.folder(SESSION)
    folder.mkdir(parents=True)
    bad = encode(message_entry(ToolMessage(id="x", timestamp=1, content=raw_json(UNREADABLE)), now=1))
    usage = encode(
        message_entry(AssistantMessage(id="y", timestamp=-5, content=raw_json(7), usage=raw_json([1])), now=1)
    )
    good = encode(custom_message(a_message(1, 'a \\u0000 "word" \\ud800 here'), now=NOW))
    (folder / "events.jsonl").write_bytes(b"\n".join([b"{", bad, usage, b"[]", b"\xff", good, b'{"torn']))
    archive = await archived(house)
    assert len(await found(house, '"word"')) == 1
    await archive.stop()


Line = tuple[str, int, int]


def lines_of(script: Sequence[Line]) -> list[bytes]:
    """``said``, ``edited`` or ``gone``; message number; revision."""
    made: list[bytes] = []
    for kind, number, revision in script:
        if kind == "gone":
            made.append(encode(custom_message(retracted(number).message, now=NOW)))
        elif kind == "bad":
            made.append(b"{")
        else:
            message = a_message(number, f"text 天气 {number} {revision}")
            if kind == "edited":
                message = changed(message, edited=Edited(timestamp=NOW, revision=revision))
            made.append(encode(custom_message(message, now=NOW)))
    return made


SCRIPTS = st.lists(
    st.tuples(st.sampled_from(["said", "edited", "edited", "gone", "bad"]), st.integers(1, 4), st.integers(1, 3)),
    max_size=20,
)


def archive_in_pieces(database: sqlite3.Connection, reading: Reading, ends: Sequence[int]) -> None:
    """Each piece with its receipt; what a kill undoes is a piece that was never committed."""
    all_lines = list(reading.read())
    start = 0
    for end in [*ends, len(all_lines)]:
        piece = all_lines[start:end]
        if end <= start:
            continue
        receipt = Receipt(piece[-1].entry.id, piece[-1].end) if piece else None
        put(database, [Piece(rows_of(SESSION, piece, reading), receipt)])
        start = end


def view(database: sqlite3.Connection) -> tuple[list[tuple[object, ...]], list[str]]:
    kept = database.execute(
        "SELECT entry_id, message_id, revision, send_at, content, hidden FROM messages ORDER BY entry_id"
    ).fetchall()
    return kept, sorted(hit.content for hit in search(database, "天气", most=50))


@given(SCRIPTS, st.lists(st.integers(0, 20), max_size=6).map(sorted))
@settings(max_examples=30, deadline=None)
def test_archived_in_any_pieces_it_is_what_a_rebuild_gives(script: list[Line], ends: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        runtimes = Path(folder) / "runtimes"
        (runtimes / SESSION).mkdir(parents=True)
        (runtimes / SESSION / "events.jsonl").write_bytes(b"".join(line + b"\n" for line in lines_of(script)))
        reading = Reading(SESSION, FileLog(runtimes, SESSION, Journal(Path(folder))))
        views: list[tuple[list[tuple[object, ...]], list[str]]] = []
        for name, cuts in (("pieces", ends), ("whole", [])):
            path = Path(folder) / f"{name}.db"
            with closing(sqlite3.connect(path)) as database:
                migrate(database)
                archive_in_pieces(database, reading, cuts)
                views.append(view(database))
        assert views[0] == views[1]
        deleted = {number for kind, number, _ in script if kind == "gone"}
        standing = {number for kind, number, _ in script if kind in {"said", "edited"}} - deleted
        assert len(views[0][1]) == len(standing)


@pytest.mark.parametrize("cut", [0, 1])
async def test_killed_between_reading_and_writing_nothing_stands_twice(house: House, cut: int) -> None:
    session = house.sessions.of(SESSION)
    await session.append([said(1, "first")])
    archive = await archived(house)
    await archive.stop(within=0)
    await session.append([said(2 + cut, "second")])
    await house.reopen()
    archive = await archived(house)
    assert await found(house, "first") == ["first"]
    assert await found(house, "second") == ["second"]
    await archive.stop()
