"""Files of the world: what people attach, what the bot uploads, and the shelf that `getFile` serves from."""

from __future__ import annotations

import base64
import hashlib
import io
import mimetypes
import struct
import zlib
from dataclasses import dataclass, field, replace
from typing import Any

import filetype
import imagesize

from bots.sandbox.telegram.errors import bad_request

DOWNLOAD_LIMIT = 20 * 2**20
_UNKNOWN = "application/octet-stream"
_FOLDERS = {
    "photo": ("photos", "AgACAgIAAxkBAAM"),
    "document": ("documents", "BQACAgIAAxkBAAN"),
    "audio": ("music", "CQACAgIAAxkBAAO"),
    "voice": ("voice", "AwACAgIAAxkBAAP"),
    "video": ("videos", "BAACAgIAAxkBAAQ"),
    "video_note": ("video_notes", "DQACAgIAAxkBAAR"),
    "animation": ("animations", "CgACAgIAAxkBAAS"),
    "sticker": ("stickers", "CAACAgIAAxkBAAT"),
    "thumbnail": ("thumbnails", "AAMCAgADGQEAAw"),
}


@dataclass(frozen=True)
class File:
    """Something to attach. Without `data` it is only declared: listed with its size, nothing to download.

    `size` is what the payload declares (bytes; default: the truth, so another value is a lie); `content_type` is
    guessed from the name, else from the bytes; `width` and `height` (pixels) are read from an image; `duration` is in
    seconds.
    """

    name: str
    data: bytes | None = None
    content_type: str = ""
    size: int | None = None
    width: int = 0
    height: int = 0
    duration: int = 0

    def completed(self) -> File:
        """The same with type, size and, for an image, measures filled in."""
        kind = self.content_type or mimetypes.guess_type(self.name)[0] or _UNKNOWN
        if kind == _UNKNOWN and self.data:
            found: str | None = filetype.guess_mime(self.data)  # pyright: ignore[reportUnknownMemberType] - no stubs
            kind = found or _UNKNOWN
        width, height = self.width, self.height
        if self.data is not None and not width and kind.startswith("image/"):
            measured = imagesize.get(io.BytesIO(self.data))  # pyright: ignore[reportUnknownMemberType] - no stubs
            width, height = (max(side, 0) for side in measured)
        size = self.size if self.size is not None else len(self.data or b"")
        return replace(self, content_type=kind, size=size, width=width, height=height)


@dataclass(frozen=True)
class StoredFile:
    """One file as the server knows it."""

    kind: str
    file: File
    file_id: str
    file_unique_id: str
    file_path: str

    def reference(self) -> dict[str, Any]:
        """The three fields that every file object has."""
        return {"file_id": self.file_id, "file_unique_id": self.file_unique_id, "file_size": self.file.size}


@dataclass
class FileShelf:
    """Every file of the world, by id and by path."""

    _by_id: dict[str, StoredFile] = field(default_factory=dict[str, StoredFile])
    _by_path: dict[str, StoredFile] = field(default_factory=dict[str, StoredFile])

    def put(self, kind: str, file: File) -> StoredFile:
        """Store `file` as a `kind` (`photo`, `document`, …)."""
        file = file.completed()
        folder, prefix = _FOLDERS[kind]
        number = len(self._by_id)
        tail = base64.urlsafe_b64encode(hashlib.sha256(f"{kind} {number}".encode()).digest())[:40].decode()
        same = hashlib.sha256(file.data if file.data is not None else f"{file.name} {file.size}".encode()).digest()
        unique_id = f"AQAD{base64.urlsafe_b64encode(same)[:11].decode()}"
        extension = mimetypes.guess_extension(file.content_type) or ""
        stored = StoredFile(kind, file, prefix + tail, unique_id, f"{folder}/file_{number}{extension}")
        self._by_id[stored.file_id] = self._by_path[stored.file_path] = stored
        return stored

    def by_id(self, file_id: str) -> StoredFile:
        """Raises `ApiError` 400 for an id that was never given out."""
        if (stored := self._by_id.get(file_id)) is None:
            raise bad_request("wrong file_id or the file is temporarily unavailable")
        return stored

    def by_path(self, path: str) -> StoredFile | None:
        """The file that `getFile` gave this `file_path` for."""
        return self._by_path.get(path)


def describe(shelf: FileShelf, stored: StoredFile) -> dict[str, Any]:
    """The fields of a message that show `stored`: a photo as its sizes, an animation as a document too."""
    file = stored.file
    reference = stored.reference()
    measures = {"width": file.width or 640, "height": file.height or 360}
    named = {"file_name": file.name, "mime_type": file.content_type}
    length = {"duration": file.duration}
    shown: dict[str, Any]
    match stored.kind:
        case "photo":
            return {"photo": _sizes(shelf, stored)}
        case "animation":
            return {"animation": reference | named | measures | length, "document": reference | named}
        case "audio":
            shown = reference | named | length
        case "voice":
            shown = reference | length | {"mime_type": file.content_type}
        case "video":
            shown = reference | named | measures | length
        case "video_note":
            shown = reference | length | {"length": file.width or 240}
        case "sticker":
            shown = reference | _sticker(file)
        case _:
            shown = reference | named
    return {stored.kind: shown}


def _sticker(file: File) -> dict[str, Any]:
    return {
        "type": "regular",
        "width": file.width or 512,
        "height": file.height or 512,
        "is_animated": file.name.endswith(".tgs"),
        "is_video": file.name.endswith(".webm"),
    }


def _sizes(shelf: FileShelf, stored: StoredFile) -> list[dict[str, Any]]:
    width, height = stored.file.width or 1280, stored.file.height or 720
    full = stored.reference() | {"width": width, "height": height}
    if max(width, height) <= 90:
        return [full]
    scale = 90 / max(width, height)
    small = (max(round(width * scale), 1), max(round(height * scale), 1))
    thumbnail = shelf.put("thumbnail", File("thumbnail.png", _grey(*small)))
    return [thumbnail.reference() | {"width": small[0], "height": small[1]}, full]


def _grey(width: int, height: int) -> bytes:
    """A flat PNG, for the smaller size that the server makes of each photo."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\x80" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
