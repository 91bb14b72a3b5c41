"""Files of a session over HTTP (contract section 9): what people sent, and what tools made.

The bytes come from anybody, and a browser may show what it gets: so they are always a download, of the type that
their first bytes tell, and without any right of a page.
"""

import asyncio
import os
import re
from typing import Annotated, BinaryIO, Final
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel
from starlette.types import Receive, Scope, Send

from bots.web.errors import OF_ANY_BODY, ApiError, refusals
from bots.web.path import Known
from core.errors import ResourceError
from core.ids import SessionId
from core.resources.names import safe_filename
from core.resources.store import Resources
from core.sidecars import Sidecar, write_sidecar

CHUNK_BYTES: Final = 64 * 1024

_MEDIA_TYPE: Final = re.compile(r"[a-z0-9][a-z0-9.+-]*/[a-z0-9][a-z0-9.+_-]*", re.IGNORECASE)
_ANY_BYTES: Final[dict[int | str, dict[str, object]]] = {
    200: {
        "description": "the bytes, of the type that they are; with ?view=meta the sidecar, as JSON",
        "content": {"*/*": {"schema": {}}},
    },
    **refusals(404, 410, 425),
}
_RAW_BODY: Final[dict[str, object]] = {
    "requestBody": {
        "required": False,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}

Viewed = Annotated[str | None, Query(json_schema_extra={"enum": ["meta"]})]


class Stored(BaseModel):
    """Where an uploaded artifact is to be had, inside its session."""

    url: str


def resource_routes(resources: Resources, known: Known) -> APIRouter:
    routes = APIRouter(prefix="/v1/session/{sid}/resources", tags=["resources"])

    @routes.get("/assets/{asset}", response_class=Response, responses=_ANY_BYTES)
    async def asset(sid: str, asset: str, view: Viewed = None) -> Response:  # pyright: ignore[reportUnusedFunction] - the router keeps it
        """A file that somebody sent; ``?view=meta`` is its sidecar."""
        return await _give(resources, known(sid).id, f"asset://{quote(asset, safe='')}", view)

    @routes.get("/artifacts/{namespace}/{name}", response_class=Response, responses=_ANY_BYTES)
    async def artifact(sid: str, namespace: str, name: str, view: Viewed = None) -> Response:  # pyright: ignore[reportUnusedFunction] - as above
        """A file that a tool made; ``?view=meta`` is its sidecar."""
        url = f"artifact://{quote(namespace, safe='')}/{quote(name, safe='')}"
        return await _give(resources, known(sid).id, url, view)

    @routes.post(
        "/artifacts/{namespace}", status_code=201, openapi_extra=_RAW_BODY, responses=refusals(404, *OF_ANY_BODY)
    )
    async def upload(sid: str, namespace: str, request: Request) -> Stored:  # pyright: ignore[reportUnusedFunction] - as above
        """Keep bytes that a tool made; the same bytes again have the same URL."""
        session, content = known(sid).id, await request.body()
        try:
            url = await asyncio.to_thread(resources.put_artifact, session, namespace, content)
        except ResourceError as error:
            if error.code != "invalid_resource_uri":
                raise
            raise ApiError(400, error.code, str(error)) from error
        return Stored(url=url)

    return routes


async def _give(resources: Resources, session: SessionId, url: str, view: str | None) -> Response:
    if view is None:
        return await asyncio.to_thread(_download, resources, session, url)
    if view != "meta":
        raise ResourceError("unsupported_view", "the only view is ?view=meta")
    sidecar = await asyncio.to_thread(resources.sidecar, session, url)
    return Response(write_sidecar(sidecar), media_type="application/json", headers={"Cache-Control": "no-store"})


def _download(resources: Resources, session: SessionId, url: str) -> "Download":
    """Blocks. The file is open before the answer begins, so a retraction meanwhile cannot cut it off."""
    if resources.sidecar(session, url).removed_at is not None:
        raise ApiError(410, "resource_removed", "the message of that file was retracted, and its bytes are gone")
    found = resources.open(session, url)
    try:
        file = found.path.open("rb")
    except FileNotFoundError:
        raise ApiError(410, "resource_removed", "that file was removed just now") from None
    except OSError as error:
        raise ResourceError("resource_read_failed", "that file cannot be read") from error
    return Download(file, found.sidecar)


class Download(Response):
    """Streams an open file, and closes it whatever happens."""

    def __init__(self, file: BinaryIO, sidecar: Sidecar) -> None:
        self._file = file
        name = safe_filename(sidecar.filename or sidecar.name) or "file"
        declared = sidecar.media_type or ""
        super().__init__(
            headers={
                "Content-Type": declared if _MEDIA_TYPE.fullmatch(declared) else "application/octet-stream",
                "Content-Length": str(os.fstat(file.fileno()).st_size),
                "Content-Disposition": content_disposition(name),
                "X-Content-Type-Options": "nosniff",
                "Content-Security-Policy": "sandbox; default-src 'none'",
                "Cache-Control": "no-store",
            }
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            while chunk := await asyncio.to_thread(self._file.read, CHUNK_BYTES):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._file.close()


def content_disposition(name: str) -> str:
    """RFC 6266 section 4.3: a plain name for every client, and the real one, encoded, for those that read it."""
    plain = "".join(character if _is_plain(character) else "_" for character in name)
    shown = f'attachment; filename="{plain}"'
    return shown if plain == name else f"{shown}; filename*=UTF-8''{quote(name, safe='')}"


def _is_plain(character: str) -> bool:
    """What stands in a quoted string as itself, and is no escape to anybody: not ``"``, ``\\`` or ``%``."""
    return " " <= character <= "~" and character not in '"\\%'
