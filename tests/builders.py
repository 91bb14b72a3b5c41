"""Short ways to make what tests talk about."""

from core.entries import AttachmentItem, Author, MessageCreated, MessageDeleted, Quote
from core.ids import ChannelId, MessageId, SessionId, UserId, asset_id, discord_session
from core.sessions.facts import Media, Retracted, Said
from core.sidecars import FileRef, SourceInfo

CHANNEL = ChannelId("900000000000000002")
BOT = UserId("900000000000000009")
SESSION: SessionId = discord_session(CHANNEL)


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
