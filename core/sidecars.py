"""What stands beside a stored file: its sidecar (log-format 9.2). No platform URL, ever: ``ref`` names the way back."""

from typing import Literal

import msgspec

from core.entries import Model
from core.ids import ChannelId, MessageId


class FileRef(Model, frozen=True, kw_only=True):
    """From where the bytes of an asset can be asked for again.

    Discord names the attachment (or sticker) of a message, Telegram the file.
    """

    platform: str
    channel_id: ChannelId
    message_id: MessageId
    attachment_id: str | None = None
    file_id: str | None = None


class SourceInfo(Model, frozen=True, kw_only=True):
    """What the platform declared about a file; it may be wrong."""

    media_type: str | None = None
    byte_length: int | None = None
    filename: str | None = None


class FetchError(Model, frozen=True, kw_only=True):
    """Why a file could not be fetched for good; ``at`` in Unix milliseconds."""

    code: str
    message: str
    at: int


class Sidecar(Model, frozen=True, kw_only=True):
    """Metadata of one asset or artifact. Times in Unix milliseconds, sizes in bytes and pixels."""

    id: str
    kind: Literal["asset", "artifact"]
    namespace: str = msgspec.field(default_factory=lambda: "")
    name: str
    created_at: int
    media_type: str | None = None
    byte_length: int | None = None
    content_hash: str | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    width: int | None = None
    height: int | None = None
    fetched_at: int | None = None
    filename: str | None = None
    source_info: SourceInfo | None = None
    ref: FileRef | None = None
    error: FetchError | None = None
    removed_at: int | None = None


_decoder = msgspec.json.Decoder(Sidecar)


def read_sidecar(content: bytes) -> Sidecar:
    """Raises `msgspec.DecodeError` where the bytes are no sidecar."""
    return _decoder.decode(content)


def write_sidecar(sidecar: Sidecar) -> bytes:
    return msgspec.json.encode(sidecar)
