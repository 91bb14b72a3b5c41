"""The CDN: signed attachment links that die, stickers, and downloads that misbehave on demand.

(API reference, Signed Attachment CDN URLs.)
"""

import asyncio
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from aiohttp import ClientConnectionResetError, web

from bots.sandbox.discord.model import Attachment, Channel, File, Sticker

LINK_LIFETIME = 24 * 3600
CHUNK = 64 * 1024


class Links:
    """Signs and checks links. `host` is `host:port`, known once the server listens."""

    def __init__(self) -> None:
        self.host = ""
        self._key = secrets.token_bytes(32)

    def sign(self, channel: Channel, attachment: Attachment) -> str:
        """A fresh link that lives for a day, or until `expire`."""
        path = f"/attachments/{channel.id}/{attachment.id}/"
        issued = int(time.time())
        ex, issue = f"{issued + LINK_LIFETIME:x}", f"{issued:x}"
        name = quote(attachment.file.name, safe="")
        return f"http://{self.host}{path}{name}?ex={ex}&is={issue}&hm={self._signature(attachment.id, ex, issue)}&"

    def is_alive(self, attachment_id: str, query: Mapping[str, str]) -> bool:
        ex, issue, given = (query.get(name, "") for name in ("ex", "is", "hm"))
        genuine = hmac.compare_digest(self._signature(attachment_id, ex, issue), given)
        return genuine and int(ex, 16) > time.time()

    def expire(self) -> None:
        """Let every link signed so far die. Drawing the message again gives a living one."""
        self._key = secrets.token_bytes(32)

    def _signature(self, attachment_id: str, ex: str, issue: str) -> str:
        text = f"{attachment_id}|{ex}|{issue}".encode()
        return hmac.new(self._key, text, hashlib.sha256).hexdigest()


@dataclass(slots=True)
class CdnFault:
    """Something that happens to the next `times` downloads whose path contains `path`.

    `delay` seconds pass first; then `status`, or `redirect_to` (302), or the file: with another `content_type`, with
    `extra` bytes more than there should be, cut off in the middle (`cut`), or without an end (`endless`).
    """

    path: str = ""
    times: int = 1
    delay: float = 0.0
    status: int | None = None
    redirect_to: str | None = None
    content_type: str | None = None
    extra: int = 0
    cut: bool = False
    endless: bool = False


class Cdn:
    """Serves `/attachments` and `/stickers`. `dead_status` answers a link that is no longer good."""

    def __init__(
        self, links: Links, attachments: Mapping[str, Attachment], find_sticker: Callable[[str], Sticker | None]
    ) -> None:
        self.faults: list[CdnFault] = []
        self.downloads: list[str] = []
        self.dead_status = 404
        self._links = links
        self._attachments = attachments
        self._find_sticker = find_sticker

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get(r"/attachments/{channel:\d+}/{attachment:\d+}/{name:.*}", self.attachment),
            web.get(r"/stickers/{sticker:\d+}.{ext:png|gif|json}", self.sticker),
        ]

    async def attachment(self, request: web.Request) -> web.StreamResponse:
        self.downloads.append(request.path)
        item = self._attachments.get(request.match_info["attachment"])
        if item is None or not self._links.is_alive(item.id, request.query):
            return web.Response(status=self.dead_status, text="This content is no longer available.")
        return await self._send(request, item.file)

    async def sticker(self, request: web.Request) -> web.StreamResponse:
        self.downloads.append(request.path)
        item = self._find_sticker(request.match_info["sticker"])
        if item is None:
            return web.Response(status=404)
        return await self._send(request, File(f"{item.id}.png", item.data, "image/png"))

    def _fault(self, path: str) -> CdnFault:
        for fault in self.faults:
            if fault.path in path:
                fault.times -= 1
                if fault.times <= 0:
                    self.faults.remove(fault)
                return fault
        return CdnFault()

    async def _send(self, request: web.Request, file: File) -> web.StreamResponse:
        fault = self._fault(request.path)
        await asyncio.sleep(fault.delay)
        if fault.redirect_to is not None:
            return web.Response(status=302, headers={"Location": fault.redirect_to})
        if fault.status is not None:
            return web.Response(status=fault.status)
        kind = fault.content_type or file.content_type or "application/octet-stream"
        response = web.StreamResponse(headers={"Content-Type": kind, "Cache-Control": "public, max-age=31536000"})
        if not fault.endless and not fault.extra:
            response.content_length = len(file.data)
        try:
            await response.prepare(request)
            await self._stream(request, response, file.data, fault)
        except ClientConnectionResetError:
            pass  # the client has had enough, as it should of a download that is too long
        return response

    async def _stream(self, request: web.Request, response: web.StreamResponse, data: bytes, fault: CdnFault) -> None:
        if fault.cut:
            await response.write(data[: len(data) // 2])
            assert request.transport is not None
            request.transport.abort()
            return
        for start in range(0, len(data), CHUNK):
            await response.write(data[start : start + CHUNK])
        left = fault.extra
        while left > 0 or fault.endless:
            await response.write(bytes(CHUNK if fault.endless else min(left, CHUNK)))
            left -= CHUNK
        await response.write_eof()
