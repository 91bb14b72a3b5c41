"""The files of a message: attachments and stickers, as elements, as facts, and as links."""

import mimetypes
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import discord

from core.content import Element
from core.entries import AttachmentItem
from core.ids import ChannelId, MessageId, asset_id, discord_session
from core.resources.names import safe_filename
from core.sessions.facts import Media
from core.sidecars import FileRef, SourceInfo

_TYPES: Final = mimetypes.MimeTypes()
"""The standard library's own table, which is the same on every machine."""
_MEDIA_TYPE: Final = re.compile(r"[\w.+-]{1,63}/[\w.+-]{1,63}(?:; ?[\w.+-]{1,63}=[\w.+\"-]{1,63}){0,3}", re.ASCII)
_GIF_HOST: Final = "media.discordapp.net"
"""Where GIF stickers are, which the CDN does not have (API reference, CDN Endpoints)."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A file as it stands in a message, and as it is recorded."""

    element: Element
    media: Media


def files_of(message: discord.Message) -> tuple[discord.Message | discord.MessageSnapshot, ...]:
    """What holds the files of a message: itself, and what it forwards."""
    return (message, *message.message_snapshots[:1])


def media_of(source: discord.Message | discord.MessageSnapshot, message: discord.Message) -> list[Shown]:
    """The files of a message, or of the snapshot that it forwards, in their order."""
    place = (ChannelId(str(message.channel.id)), MessageId(str(message.id)))
    attachments = [_attachment(attachment, *place) for attachment in source.attachments]
    return attachments + [_sticker(sticker, *place) for sticker in source.stickers]


def links_of(message: discord.Message, hosts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """File ids and where their bytes are now. ``hosts`` are the configured ones, the CDN first."""
    for source in files_of(message):
        for attachment in source.attachments:
            yield str(attachment.id), attachment.url
        for sticker in source.stickers:
            yield str(sticker.id), _sticker_link(sticker, hosts)


def _attachment(attachment: discord.Attachment, channel: ChannelId, message: MessageId) -> Shown:
    declared = attachment.content_type or _TYPES.guess_type(attachment.filename)[0] or ""
    media_type = declared if _MEDIA_TYPE.fullmatch(declared) else "application/octet-stream"
    name = safe_filename(attachment.filename)
    item = AttachmentItem(
        url="",
        media_type=media_type,
        filename=name,
        byte_length=_count(attachment.size),
        width=_count(attachment.width) or None,
        height=_count(attachment.height) or None,
    )
    key = (str(attachment.id), channel, message)
    shown = _shown(_tag_of(media_type), key, item, title=name, alt=attachment.description)
    if attachment.is_spoiler():
        return Shown(Element("spl", {}, (shown.element,)), shown.media)
    return shown


def _sticker(sticker: discord.StickerItem, channel: ChannelId, message: MessageId) -> Shown:
    """A sticker is a picture, but for Lottie, which is an animation in JSON."""
    lottie = sticker.format is discord.StickerFormatType.lottie
    name = safe_filename(f"{sticker.name}.{sticker.format.file_extension}")
    item = AttachmentItem(url="", media_type="application/json" if lottie else "image/*", filename=name)
    key = (str(sticker.id), channel, message)
    return _shown("file" if lottie else "img", key, item, title=sticker.name, alt="sticker")


def _shown(
    tag: Literal["img", "audio", "video", "file"],
    key: tuple[str, ChannelId, MessageId],
    item: AttachmentItem,
    *,
    title: str | None,
    alt: str | None,
) -> Shown:
    file, channel, message = key
    asset = asset_id(discord_session(channel), "discord", message, file)
    declared = SourceInfo(media_type=item.media_type, byte_length=item.byte_length, filename=item.filename)
    item = AttachmentItem(
        url=f"asset://{asset}",
        media_type="image/*" if tag == "img" else item.media_type,
        filename=item.filename,
        byte_length=item.byte_length,
        width=item.width,
        height=item.height,
    )
    told: dict[str, str | None] = {"src": item.url, "title": title, "alt": alt}
    if tag in {"img", "video"} and item.width and item.height:
        told |= {"width": str(item.width), "height": str(item.height)}
    ref = FileRef(platform="discord", channel_id=channel, message_id=message, attachment_id=file)
    element = Element(tag, {name: value for name, value in told.items() if value})
    return Shown(element, Media(asset=asset, item=item, ref=ref, declared=declared))


def _tag_of(media_type: str) -> Literal["img", "audio", "video", "file"]:
    match media_type.partition("/")[0]:
        case "image":
            return "img"
        case "audio":
            return "audio"
        case "video":
            return "video"
        case _:
            return "file"


def _count(declared: object) -> int | None:
    """A size as declared, where it is one."""
    return declared if isinstance(declared, int) and declared >= 0 else None


def _sticker_link(sticker: discord.StickerItem, hosts: Sequence[str]) -> str:
    extension = sticker.format.file_extension
    host = _GIF_HOST if extension == "gif" and _GIF_HOST in hosts else hosts[0]
    scheme = "http" if _is_loopback(host) else "https"
    return f"{scheme}://{host}/stickers/{sticker.id}.{extension}"


def _is_loopback(host: str) -> bool:
    """Whether ``host`` or ``host:port`` is this machine itself, where a stand-in listens without a certificate."""
    return re.fullmatch(r"(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?", host, re.ASCII) is not None
