"""The files of a message: attachments and stickers, as elements, as facts, and as links."""

import mimetypes
import re
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import discord

from bots.discord.veil import Veil
from core.addresses import is_loopback
from core.ids import AssetId, ChannelId, MessageId, SessionId, asset_id, discord_session
from core.resources.shown import Shown, Told, show
from core.sidecars import FileRef

Source: TypeAlias = discord.Message | discord.MessageSnapshot
"""What holds files under the same names."""

_TYPES: Final = mimetypes.MimeTypes()
"""The standard library's own table, which is the same on every machine."""
_PORT: Final = re.compile(r":\d{1,5}\Z", re.ASCII)
_GIF_HOST: Final = "media.discordapp.net"
"""Where GIF stickers are, which the CDN does not have (API reference, CDN Endpoints)."""


def session_of(message: discord.Message) -> SessionId:
    """The session of a message: that of its channel, DM channel or thread."""
    return discord_session(message.channel.id)


def files_of(message: discord.Message) -> tuple[Source, ...]:
    """What holds the files of a message: itself, and what it forwards."""
    return (message, *message.message_snapshots[:1])


def media_of(source: Source, message: discord.Message, veil: Veil) -> list[Shown]:
    """The files of a message, or of the snapshot that it forwards, in their order."""
    shown = [show(_attachment(attachment, message, veil)) for attachment in source.attachments]
    shown += [show(_sticker(sticker, message, veil)) for sticker in source.stickers]
    return shown


def links_of(message: discord.Message, hosts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """File ids and where their bytes are now. ``hosts`` are the configured ones, the CDN first."""
    for source in files_of(message):
        for attachment in source.attachments:
            yield str(attachment.id), attachment.url
        for sticker in source.stickers:
            yield str(sticker.id), _sticker_link(sticker, hosts)


def _attachment(attachment: discord.Attachment, message: discord.Message, veil: Veil) -> Told:
    return Told(
        asset=_asset(message, attachment.id),
        ref=_ref(message, attachment.id),
        usual_type=_TYPES.guess_type(attachment.filename)[0] or "application/octet-stream",
        media_type=attachment.content_type,
        filename=veil.over(attachment.filename),
        byte_length=attachment.size,
        width=attachment.width,
        height=attachment.height,
        alt=attachment.description,
        hidden=attachment.is_spoiler(),
    )


def _sticker(sticker: discord.StickerItem, message: discord.Message, veil: Veil) -> Told:
    """A sticker is a picture, but for Lottie, which is an animation in JSON."""
    return Told(
        asset=_asset(message, sticker.id),
        ref=_ref(message, sticker.id),
        usual_type="application/json" if sticker.format is discord.StickerFormatType.lottie else "image/*",
        filename=veil.over(f"{sticker.name}.{sticker.format.file_extension}"),
        title=sticker.name,
        alt="sticker",
    )


def _asset(message: discord.Message, file: int) -> AssetId:
    return asset_id(session_of(message), "discord", MessageId(str(message.id)), str(file))


def _ref(message: discord.Message, file: int) -> FileRef:
    return FileRef(
        platform="discord",
        channel_id=ChannelId(str(message.channel.id)),
        message_id=MessageId(str(message.id)),
        attachment_id=str(file),
    )


def _sticker_link(sticker: discord.StickerItem, hosts: Sequence[str]) -> str:
    extension = sticker.format.file_extension
    host = _GIF_HOST if extension == "gif" and _GIF_HOST in hosts else hosts[0]
    scheme = "http" if is_loopback(_PORT.sub("", host)) else "https"  # there a stand-in listens, without a certificate
    return f"{scheme}://{host}/stickers/{sticker.id}.{extension}"
