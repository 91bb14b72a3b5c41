"""Bytes and sidecars of ``asset://`` and ``artifact://`` URLs, inside one session's folder (log-format section 9).

All of it blocks, but for `Resources.upload`. What a URL says is checked before a path is formed from it.
"""

import asyncio
import hashlib
import io
import os
import re
import struct
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote

import filetype
import imagesize
import msgspec
from msgspec.structs import replace

from core.chat.port import Upload
from core.clock import now_ms
from core.errors import ResourceError
from core.files import make_folder, open_beside, sync_folders, write_all, write_whole
from core.ids import AssetId, SessionId
from core.sidecars import FetchError, Sidecar, SourceInfo, read_sidecar, write_sidecar

MOST_UPLOADED: Final = 50 * 1024 * 1024
SNIFFED: Final = 8192
"""Bytes at the beginning of a file that tell what it is."""
MEASURED: Final = 1024 * 1024
"""Bytes at the beginning of a picture in which its pixels are looked for; a header made to be walked for ever ends."""
PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/tiff"})
"""Types whose pixels are looked up; each is told by its first bytes, so none of them is a document with scripts."""

_URL: Final = re.compile(r"(?P<scheme>asset|artifact)://(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?", re.IGNORECASE)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_NAMESPACE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Found(NamedTuple):
    """Bytes that are here, and what is known of them."""

    path: Path
    sidecar: Sidecar


class Incoming:
    """A file on its way in: written beside its place, and put there whole by `Resources.keep`."""

    def __init__(self, path: Path) -> None:
        self.size = 0
        self.head = b""
        self._digest = hashlib.sha256()
        self._file, self.path = open_beside(path)
        self._placed = False

    def write(self, chunk: bytes) -> None:
        write_all(self._file, chunk)
        self.size += len(chunk)
        self.head += chunk[: SNIFFED - len(self.head)]
        self._digest.update(chunk)

    @property
    def content_hash(self) -> str:
        """SHA-256 in hex."""
        return self._digest.hexdigest()

    def place(self, path: Path) -> None:
        """Put it there, durable once its folder is synced."""
        os.fsync(self._file)
        self.path.rename(path)
        self._placed = True

    def close(self) -> None:
        """Without `place` nothing of it stays."""
        if not self._placed:
            self.path.unlink(missing_ok=True)
        os.close(self._file)


class Resources:
    """All resources below ``runtimes/``. Raises `ResourceError` with the format's own codes."""

    def __init__(self, runtimes: Path) -> None:
        self._runtimes = runtimes

    def sidecar(self, session: SessionId, url: str) -> Sidecar:
        """What is known of a resource, whether or not its bytes are here."""
        return self._read_sidecar(self._locate(session, url))

    def open(self, session: SessionId, url: str) -> Found:
        """Where the bytes are. ``resource_unavailable``: not fetched yet; ``resource_not_found``: none will come."""
        path = self._locate(session, url)
        sidecar = self._read_sidecar(path)
        if sidecar.removed_at is not None:
            raise ResourceError("resource_not_found", "the message of that file was retracted")
        if sidecar.error is not None:
            raise ResourceError("resource_not_found", f"that file could not be fetched: {sidecar.error.message}")
        if not path.is_file():
            raise ResourceError("resource_unavailable", "that file is not fetched yet; ask again in a moment")
        return Found(path, sidecar)

    async def upload(self, session: SessionId, url: str) -> Upload:
        """A resource as a file to send."""
        return await asyncio.to_thread(self._upload, session, url)

    @contextmanager
    def receive(self, session: SessionId, asset: AssetId) -> Generator[Incoming]:
        """Take the bytes of an asset in; without `keep` before the end nothing of it stays."""
        with self._receive(self._asset(session, asset)) as incoming:
            yield incoming

    def keep(self, session: SessionId, asset: AssetId, incoming: Incoming) -> Sidecar:
        """Put the bytes in their place, and what they really are into the sidecar."""
        return self._keep(self._asset(session, asset), incoming)

    def give_up(self, session: SessionId, asset: AssetId, code: str, message: str) -> None:
        """Note that the bytes cannot be had, for good."""
        path = self._asset(session, asset)
        error = FetchError(code=code, message=message, at=now_ms())
        self._write_sidecar(path, replace(self._read_sidecar(path), error=error))

    def remove(self, session: SessionId, asset: AssetId) -> None:
        """The message was retracted: the bytes go, the sidecar stays and says so. Again is no error."""
        try:
            path = self._asset(session, asset)
            sidecar = self._read_sidecar(path)
        except ResourceError:
            return  # a line of somebody else's log, of which nothing was ever stored
        path.unlink(missing_ok=True)
        if sidecar.removed_at is None:
            self._write_sidecar(path, replace(sidecar, removed_at=now_ms()))

    def put_artifact(self, session: SessionId, namespace: str, content: bytes, *, filename: str | None = None) -> str:
        """Keep bytes that a tool made, under the hash of them. Returns the URL."""
        if not _NAMESPACE.fullmatch(namespace):
            raise ResourceError("invalid_resource_uri", "a namespace is up to 64 letters, digits, _ and -")
        name = f"{hashlib.sha256(content).hexdigest()}.blob"
        path = self._runtimes / session / "resources" / "artifacts" / namespace / name
        url = f"artifact://{namespace}/{name}"
        if path.is_file() and _beside(path).is_file():
            sync_folders(path.parent, self._runtimes)
            return url
        made = Sidecar(
            id=name.removesuffix(".blob"),
            kind="artifact",
            namespace=namespace,
            name=name,
            created_at=now_ms(),
            filename=filename,
        )
        with self._receive(path) as incoming:
            incoming.write(content)
            self._keep(path, incoming, made)
        return url

    # --- paths ----------------------------------------------------------------------------------------------------

    def _locate(self, session: SessionId, url: str) -> Path:
        """The path of a URL, which cannot lead out of the session's folder."""
        match = _URL.fullmatch(url)
        if match is None:
            raise ResourceError("invalid_resource_uri", "that is no asset:// or artifact:// URL")
        if match["query"] not in {None, "", "view=meta"}:
            raise ResourceError("unsupported_view", "the only view is ?view=meta")
        segments = [unquote(segment) for segment in match["path"].split("/")]
        folder = self._runtimes / session / "resources"
        if match["scheme"].lower() == "asset":
            if len(segments) == 1 and _is_name(segments[0]):
                return folder / "assets" / segments[0]
        elif len(segments) == 2 and _NAMESPACE.fullmatch(segments[0]) and _is_name(segments[1]):
            return folder / "artifacts" / segments[0] / segments[1]
        raise ResourceError("invalid_resource_uri", "that URL names no resource")

    def _asset(self, session: SessionId, asset: AssetId) -> Path:
        return self._locate(session, f"asset://{asset}")

    def _read_sidecar(self, path: Path) -> Sidecar:
        try:
            return read_sidecar(_beside(path).read_bytes())
        except FileNotFoundError:
            raise ResourceError("resource_not_found", "there is no such resource in this session") from None
        except (OSError, msgspec.DecodeError) as error:
            raise ResourceError("resource_read_failed", "the metadata of that resource cannot be read") from error

    # --- bytes ----------------------------------------------------------------------------------------------------

    @contextmanager
    def _receive(self, path: Path) -> Generator[Incoming]:
        make_folder(path.parent)
        incoming = Incoming(path)
        try:
            yield incoming
        finally:
            incoming.close()

    def _keep(self, path: Path, incoming: Incoming, sidecar: Sidecar | None = None) -> Sidecar:
        sidecar = sidecar or self._read_sidecar(path)
        media_type = sniff(incoming.head, sidecar.source_info)
        width, height = _pixels(incoming.path) if media_type in PICTURES else (None, None)
        known = replace(
            sidecar,
            media_type=media_type,
            byte_length=incoming.size,
            content_hash=incoming.content_hash,
            width=width,
            height=height,
            fetched_at=now_ms(),
        )
        incoming.place(path)
        sync_folders(path.parent, self._runtimes)  # a sidecar never tells of bytes that are not there
        self._write_sidecar(path, known)
        return known

    def _write_sidecar(self, path: Path, sidecar: Sidecar) -> None:
        """It would survive a power cut when this returns."""
        write_whole(_beside(path), write_sidecar(sidecar))
        sync_folders(path.parent, self._runtimes)

    def _upload(self, session: SessionId, url: str) -> Upload:
        path, sidecar = self.open(session, url)
        try:
            if path.stat().st_size > MOST_UPLOADED:
                raise ResourceError("resource_too_large", "that file is larger than chats take")
            content = path.read_bytes()
        except OSError as error:
            raise ResourceError("resource_read_failed", "that file cannot be read") from error
        return Upload(sidecar.filename or path.name, content, sidecar.media_type or "application/octet-stream")


def sniff(head: bytes, declared: SourceInfo | None) -> str:
    """The real media type by the first bytes. What they do not tell is believed only where nobody would render it."""
    guessed: str | None = filetype.guess_mime(head)  # pyright: ignore[reportUnknownMemberType] - the library is not typed
    if guessed is not None:
        return guessed
    claimed = (declared.media_type if declared else None) or ""
    family = claimed.partition("/")[0]
    return claimed if family in {"application", "text"} else "application/octet-stream"


def _pixels(path: Path) -> tuple[int | None, int | None]:
    try:
        with path.open("rb") as file:
            head = io.BytesIO(file.read(MEASURED))
        width, height = imagesize.get(head)  # pyright: ignore[reportUnknownMemberType] - PathLike of what?
    except (ValueError, OSError, OverflowError, IndexError, TypeError, struct.error):
        return None, None
    return (width, height) if width > 0 and height > 0 else (None, None)


def _is_name(segment: str) -> bool:
    """Sidecars stand beside the bytes under the same name and ``.json``, so no resource ends so."""
    return _NAME.fullmatch(segment) is not None and not segment.endswith(".json")


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")
