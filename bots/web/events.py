"""Server-sent events (WHATWG HTML, section 9.2): how they are framed, and an answer made of them that ends well."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Final

import structlog
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

ENDING: Final = "ishiki.ending"
"""In a request's scope: a future that is done when the server stops. What has no end of its own ends with it."""
STALLED_AFTER: Final = 60.0
"""Seconds that a reader may take nothing, before it counts as gone."""
COMMENT: Final = b":\n\n"
"""What no reader sees: it opens a stream, and shows both sides that the other is there."""

logger = structlog.get_logger()

Events = AsyncGenerator[bytes, None]


def event(name: str, data: bytes, *, number: str | None = None) -> bytes:
    """One event; ``number`` is its ``id:``, that a reader goes on from. JSON in ``data`` stays the same JSON."""
    told = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", b"\ndata: ")
    named = b"" if number is None or not number.isprintable() else b"id: %b\n" % number.encode("utf-8", "replace")
    return b"event: %b\n%bdata: %b\n\n" % (name.encode(), named, told)


def described(*names: str) -> dict[str, object]:
    """What the API's description says of a body of events: each is an object of its fields."""
    fields = {"event": {"enum": names}, "id": {"type": "string"}, "data": {"type": "string", "description": "JSON"}}
    return {EventStream.media_type: {"schema": {"type": "object", "properties": fields, "required": ["event", "data"]}}}


class EventStream(Response):
    """Sends events as they come, while somebody reads them; ``events`` is closed whatever happens.

    What is not read yet is not asked for: a slow reader costs what one of its events does.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        events: Events,
        headers: Mapping[str, str] | None = None,
        status_code: int = 200,
        *,
        patience: float = STALLED_AFTER,
    ) -> None:
        """``patience`` is how many seconds a reader may take nothing."""
        own = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(status_code=status_code, headers={**own, **(headers or {})})
        del self.headers["content-length"]
        self._events = events
        self._patience = patience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.create_task(self._send(send), name=f"events {scope['path']}")
        gone = asyncio.create_task(hung_up(receive), name="caller watched")
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            sending.cancel()
            gone.cancel()
            await asyncio.gather(sending, gone, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        async with aclosing(self._events):
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await send({"type": "http.response.body", "body": COMMENT, "more_body": True})
            async for chunk in self._events:
                try:
                    async with asyncio.timeout(self._patience):
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
                except TimeoutError:
                    logger.info("reader_stalled", seconds=self._patience)
                    return  # and the server hangs up, as the answer has no end
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def hung_up(receive: Receive) -> None:
    """Return when the caller has."""
    while (await receive())["type"] != "http.disconnect":
        pass


def at_the_end(scope: Scope, call: Callable[[], None]) -> Callable[[], None]:
    """Have a function called when the server stops; returns how to have it forgotten."""
    ending: asyncio.Future[None] | None = scope.get(ENDING)
    if ending is None:
        return lambda: None

    def ended(_ending: asyncio.Future[None]) -> None:
        call()

    def forget() -> None:
        ending.remove_done_callback(ended)

    ending.add_done_callback(ended)
    return forget
