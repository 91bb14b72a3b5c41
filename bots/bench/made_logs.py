"""Logs made for measuring: messages, files and turns as they stand in real ones, quickly, each with ids of its own."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Raw
from msgspec.structs import astuple, replace

from bots.bench.said import text_of
from core.codec import encode, raw_json
from core.entries import (
    AnyEntry,
    AssistantMessage,
    Attachment,
    AttachmentItem,
    Author,
    Edited,
    MessageCreated,
    MessageDeleted,
    ToolMessage,
    TurnDone,
    TurnStart,
    custom_message,
    message_entry,
    turn_event,
)
from core.ids import ChannelId, EntryId, MessageId, TurnId, UserId, new_uuid
from core.sessions.state import key_of

SESSION: Final = "dc-910000000000000000"
_NOW: Final = 1_793_531_049_900
_BLOCK_LINES: Final = 1_000
_USAGE: Final = raw_json({"inputTokens": 812, "inputTokenDetails": {}, "outputTokens": 64, "totalTokens": 876})
# What a block holds in the places of its own number: of ids and of message numbers.
_ID: Final = b"beefbeef"
_NUMBER: Final = b"99999999"


def write_log(path: Path, *, lines: int | None = None, size: int | None = None, first: int = 0) -> int:
    """Write a log of so many lines, or of at least so many bytes. Returns how many lines it has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with path.open("wb") as log:
        for block in _blocks(first):
            if lines is not None and written + len(block) >= lines:
                log.writelines(block[: lines - written])
                return lines
            log.writelines(block)
            written += len(block)
            if size is not None and log.tell() >= size:
                return written
    return written


def _blocks(first: int) -> Iterator[list[bytes]]:
    block = _block()
    number = first
    while True:
        text = block.replace(_ID, f"{number:08x}".encode()).replace(_NUMBER, f"{number:08d}".encode())
        yield text.splitlines(keepends=True)
        number += 1


@cache
def _block() -> bytes:
    return b"".join(encode(entry) + b"\n" for entry in _entries())


def _entries() -> Iterator[AnyEntry]:
    """A block: nine messages and one turn, again and again."""
    for number in range(_BLOCK_LINES // 15):
        for each in range(9):
            yield from _message(number * 9 + each)
        yield from _turn(number)


def _message(number: int) -> Iterator[AnyEntry]:
    created = MessageCreated(
        platform="discord",
        self_id=UserId("900000000000000009"),
        channel_id=ChannelId("910000000000000000"),
        message_id=MessageId(f"14{_NUMBER.decode()}{number:09d}"),
        timestamp=_NOW,
        content=text_of(number).replace("<", "&lt;").replace(">", "&gt;"),
        is_direct=False,
        user=Author(id=UserId(str(920_000_000_000_000_000 + number % 50)), name=f"阿岚 {number % 50}"),
        guild_id="900000000000000001",
        edited=Edited(timestamp=_NOW, revision=1) if number % 30 == 7 else None,
    )
    platform, self_id, channel_id, message_id = astuple(key_of(created))
    if number % 50 == 11:
        deleted = MessageDeleted(
            platform=platform, self_id=self_id, channel_id=channel_id, message_id=message_id, timestamp=_NOW
        )
        yield _own(custom_message(deleted, now=_NOW))
        return
    yield _own(custom_message(created, now=_NOW))
    if number % 9 == 4:
        item = AttachmentItem(url=f"asset://{_own_id()}", media_type="image/png", filename="still.png")
        attachment = Attachment(
            source="platform",
            platform=platform,
            self_id=self_id,
            channel_id=channel_id,
            message_id=message_id,
            items=[item],
        )
        yield _own(custom_message(attachment, now=_NOW))


def _turn(number: int) -> Iterator[AnyEntry]:
    turn = TurnId(_own_id())
    call = f"call-{number}"
    said = raw_json([
        {"type": "text", "text": "Let me see."},
        {"type": "tool-call", "toolCallId": call, "toolName": "send_message", "input": {"messages": ["On Friday."]}},
    ])  # fmt: skip
    came = raw_json([
        {"type": "tool-result", "toolCallId": call, "toolName": "send_message",
         "output": {"type": "json", "value": {"ok": True, "ids": ["1400000000000000001"]}}},
    ])  # fmt: skip
    yield _own(turn_event(TurnStart(turn_id=turn), now=_NOW))
    yield _own(message_entry(_assistant(said), now=_NOW, turn_id=turn))
    yield _own(message_entry(ToolMessage(id=_own_id(), timestamp=_NOW, content=came), now=_NOW, turn_id=turn))
    yield _own(message_entry(_assistant(raw_json("done")), now=_NOW, turn_id=turn))
    yield _own(turn_event(TurnDone(turn_id=turn, usage=_USAGE), now=_NOW))


def _assistant(content: Raw) -> AssistantMessage:
    return AssistantMessage(id=_own_id(), timestamp=_NOW, content=content, usage=_USAGE, finish_reason="tool-calls")


def _own(entry: AnyEntry) -> AnyEntry:
    """The same with ids that hold the place of the block's number."""
    data = replace(entry.data, id=_own_id()) if hasattr(entry.data, "id") else entry.data
    return replace(entry, id=EntryId(_own_id()), data=data)


def _own_id() -> str:
    return f"{_ID.decode()}{new_uuid()[8:]}"
