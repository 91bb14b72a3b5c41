"""Short ways to make what tests talk about."""

from collections.abc import Iterable

from core.clock import now_ms
from core.confirmations.record import Person, Question, Record
from core.entries import AttachmentItem, Author, MessageCreated, MessageDeleted, Quote
from core.ids import ChannelId, MessageId, SessionId, TaskHash, UserId, asset_id, discord_session, new_task_hash
from core.log.lines import Block, Line
from core.sessions.facts import Media, Retracted, Said
from core.sidecars import FileRef, SourceInfo

CHANNEL = ChannelId("900000000000000002")
BOT = UserId("900000000000000009")
SESSION: SessionId = discord_session(CHANNEL)

MONA = Person(platform="discord", id="11", name="Mona")
PIET = Person(platform="discord", id="12", name="Piet")
ADMIN = Person(platform="discord", id="99", name="Ada")
OPERATOR = Person(platform="cli", id="operator", name="operator")
ADMINS = frozenset({ADMIN.key})


def lines_of(blocks: Iterable[Block]) -> list[Line]:
    """The lines of a log where they stand, as `Line` tells of them."""
    lines: list[Line] = []
    for block in blocks:
        start = block.start
        for raw in block.lines:
            end = min(start + len(raw) + 1, block.end)
            lines += [Line(start, end, raw)] if raw.strip() else []
            start = end
    return lines


def a_task(number: int) -> TaskHash:
    """A task hash that is told apart by eye."""
    return TaskHash(f"00000000-0000-4000-8000-{number:012d}")


def a_confirmation(task: TaskHash | None = None, *, at: int | None = None, **rest: object) -> Record:
    """Mona's turn asks in the channel of `SESSION` now whether it may write a file; never expires by itself. In ms."""
    members: dict[str, object] = {
        "task_hash": task or new_task_hash(),
        "session_id": SESSION,
        "kind": "confirm",
        "status": "open",
        "origin": rest.get("session_id", SESSION),
        "deliver_to": rest.get("session_id", SESSION),
        "tool": "write_file",
        "args": {"path": "notes.md"},
        "args_hash": "f" * 64,
        "choices": ("yes", "no"),
        "approvers": "requester",
        "requester": MONA,
        "created_at": now_ms() if at is None else at,
        "expires_at": 10**15,
    }
    return Record(**(members | rest))  # pyright: ignore[reportArgumentType] - a builder takes what it is given


def an_ask(*questions: Question, task: TaskHash | None = None, **rest: object) -> Record:
    """Mona's turn asks a question, of free text where none is given."""
    members: dict[str, object] = {
        "kind": "ask",
        "questions": questions or (Question(question="Which one?"),),
        "choices": (),
        "tool": None,
        "args": None,
        "args_hash": None,
    }
    return a_confirmation(task, **(members | rest))  # pyright: ignore[reportArgumentType] - as above


def a_message(
    number: int = 1, content: str = "hello", *, at: int = 1_793_600_000_000, **rest: object
) -> MessageCreated:
    """A message of Mona in the channel of `SESSION`; ``at`` in ms."""
    members: dict[str, object] = {
        "platform": "discord",
        "self_id": BOT,
        "channel_id": CHANNEL,
        "message_id": MessageId(str(number)),
        "timestamp": at,
        "content": content,
        "is_direct": False,
        "user": Author(id=UserId("11"), name="Mona"),
    }
    return MessageCreated(**(members | rest))  # pyright: ignore[reportArgumentType] - a builder takes what it is given


def said(number: int = 1, content: str = "hello", *, edited_at: int | None = None, **rest: object) -> Said:
    return Said(a_message(number, content, **rest), edited_at=edited_at)  # pyright: ignore[reportArgumentType] - as above


def retracted(number: int = 1, *, at: int = 1_793_600_001_000) -> Retracted:
    return Retracted(
        MessageDeleted(
            platform="discord", self_id=BOT, channel_id=CHANNEL, message_id=MessageId(str(number)), timestamp=at
        )
    )


def mention(text: str = "are you there?") -> str:
    return f'<at id="{BOT}"/> {text}'


def a_quote_of_the_bot() -> Quote:
    return Quote(id=MessageId("5"), content="earlier", user=Author(id=BOT))


def a_picture(number: int, file: str = "f1") -> Media:
    """A picture in message ``number``."""
    asset = asset_id(SESSION, "discord", str(number), file)
    return Media(
        asset=asset,
        item=AttachmentItem(url=f"asset://{asset}", media_type="image/*", filename="cat.png"),
        ref=FileRef(platform="discord", channel_id=CHANNEL, message_id=MessageId(str(number)), attachment_id=file),
        declared=SourceInfo(media_type="image/png", byte_length=3, filename="cat.png"),
    )
