"""The files of a message, as elements and as facts (Bot API, Message and the types of its media)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import telegram

from bots.telegram.veil import Veil
from core.ids import ChannelId, MessageId, SessionId, asset_id, telegram_session
from core.resources.shown import Shown, Told, show
from core.sidecars import FileRef

Source: TypeAlias = telegram.Message | telegram.ExternalReplyInfo | telegram.PollMedia
"""What holds files under the same names."""
_File: TypeAlias = (
    telegram.PhotoSize
    | telegram.LivePhoto
    | telegram.Animation
    | telegram.Video
    | telegram.VideoNote
    | telegram.Audio
    | telegram.Voice
    | telegram.Document
    | telegram.Sticker
)

_TYPES: Final[Mapping[type[_File], str]] = {
    telegram.PhotoSize: "image/*",
    telegram.LivePhoto: "video/*",
    telegram.Animation: "video/*",
    telegram.Video: "video/*",
    telegram.VideoNote: "video/*",
    telegram.Audio: "audio/*",
    telegram.Voice: "audio/*",
    telegram.Document: "application/octet-stream",
}
_ALT: Final[Mapping[type[_File], str]] = {
    telegram.LivePhoto: "live photo",
    telegram.Animation: "animation",
    telegram.VideoNote: "video message",
    telegram.Voice: "voice message",
    telegram.Sticker: "sticker",
}
"""What a file is, where its element alone does not say it."""


def session_of(message: telegram.Message) -> SessionId:
    """The session of a message: that of its chat, or of its business connection's chat."""
    return telegram_session(message.chat.id, message.business_connection_id)


def media_of(source: Source, message: telegram.Message, veil: Veil) -> list[Shown]:
    """The files that ``source`` holds, as files of ``message``, in their order; each file once."""
    files = {file.file_unique_id: file for file in _files(source)}
    hidden = bool(getattr(source, "has_media_spoiler", None))
    return [show(_told(file, message, veil, hidden=hidden)) for file in files.values()]


def _files(source: Source) -> Iterator[_File]:
    """An animation stands in ``document`` too, and a live photo in ``photo``."""
    live: telegram.LivePhoto | None = source.live_photo
    yield from _largest(source.photo or (live.photo if live is not None else ()))
    animation = source.animation
    document = source.document if animation is None else None
    singles = (live, animation, source.video, source.audio, document, source.sticker)
    yield from (file for file in singles if file is not None)
    if isinstance(source, telegram.PollMedia):
        return
    yield from (file for file in (source.video_note, source.voice) if file is not None)
    if source.paid_media is not None:
        for paid in source.paid_media.paid_media:
            yield from _paid(paid)
    if source.game is not None:
        yield from _largest(source.game.photo)
    if isinstance(source, telegram.Message):
        yield from _largest(source.new_chat_photo)
    if source.poll is not None:
        for part in (source.poll, *source.poll.options):
            if part.media is not None:
                yield from _files(part.media)


def _paid(paid: telegram.PaidMedia) -> Iterator[_File]:
    match paid:
        case telegram.PaidMediaPhoto():
            yield from _largest(paid.photo)
        case telegram.PaidMediaVideo():
            yield paid.video
        case telegram.PaidMediaLivePhoto():
            yield from _largest(paid.live_photo.photo)
            yield paid.live_photo
        case _:
            pass


def _largest(sizes: Sequence[telegram.PhotoSize] | None) -> Iterator[telegram.PhotoSize]:
    if sizes:
        yield max(sizes, key=lambda size: (size.width * size.height, size.file_size or 0))


def _told(file: _File, message: telegram.Message, veil: Veil, *, hidden: bool) -> Told:
    channel, number = ChannelId(str(message.chat.id)), MessageId(str(message.message_id))
    name: str | None = getattr(file, "file_name", None)
    side: int | None = getattr(file, "length", None)
    return Told(
        asset=asset_id(session_of(message), "telegram", number, file.file_unique_id),
        ref=FileRef(platform="telegram", channel_id=channel, message_id=number, file_id=file.file_id),
        usual_type=_usual(file),
        media_type=getattr(file, "mime_type", None),
        filename=veil.over(name) if name else None,
        byte_length=file.file_size,
        width=getattr(file, "width", side),
        height=getattr(file, "height", side),
        title=_title(file),
        alt=_ALT.get(type(file)),
        hidden=hidden,
    )


def _usual(file: _File) -> str:
    """The type of a file of its kind, where Telegram tells none."""
    if isinstance(file, telegram.Sticker):
        if file.is_animated:
            return "application/x-tgsticker"
        return "video/webm" if file.is_video else "image/*"
    return _TYPES[type(file)]


def _title(file: _File) -> str | None:
    if isinstance(file, telegram.Sticker):
        return file.emoji
    if isinstance(file, telegram.Audio):
        return " – ".join(part for part in (file.performer, file.title) if part)
    return None
