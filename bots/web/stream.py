"""A session as it grows, as server-sent events (contract sections 7 and 9)."""

from typing import Annotated, Final

from fastapi import APIRouter, Header, Query, Request, Response
from starlette.types import Scope

from bots.web.errors import refusals
from bots.web.events import COMMENT, Events, EventStream, at_the_end, described, event
from bots.web.path import Known
from bots.web.watching import Watching
from core.confirmations.desk import Desk
from core.confirmations.record import Record
from core.ids import EntryId
from core.sessions.directory import Sessions
from core.sessions.session import Session

HEARTBEAT: Final = 15.0
"""Seconds of silence after which a comment is sent."""

_EVENTS: Final[dict[int | str, dict[str, object]]] = {
    200: {"description": "events as they come", "content": described("entry", "pending")},
    **refusals(404),
}

After = Annotated[str | None, Query(description="an entry id; empty: from the beginning; default: from now on")]
LastEventId = Annotated[str | None, Header(description="the entry id to go on from; it counts more than after")]


def stream_routes(
    sessions: Sessions, desk: Desk, watching: Watching, known: Known, *, heartbeat: float = HEARTBEAT
) -> APIRouter:
    routes = APIRouter(prefix="/v1/session/{sid}", tags=["sessions"])

    @routes.get("/stream", response_class=Response, responses=_EVENTS)
    async def stream(  # pyright: ignore[reportUnusedFunction] - the router keeps it
        sid: str, request: Request, after: After = None, last_event_id: LastEventId = None
    ) -> EventStream:
        """Entries as they become durable: ``event: entry``, with the entry id, and the log line as it is on disk.

        ``Last-Event-ID`` goes on from there without gap or repeat, over restarts too. ``event: pending`` has no id:
        the record of a confirmation when it is asked, answered, decided and closed, and those open at the beginning.
        """
        session = known(sid)
        start = await _start(session, after, last_event_id)
        events = _follow(session, start, sessions, desk, watching, request.scope, heartbeat)
        return EventStream(events)

    return routes


async def _start(session: Session, after: str | None, last: str | None) -> int:
    """The position to go on from. Raises `UnknownEntry`."""
    if last:
        return await session.position_after(EntryId(last.encode("latin-1").decode("utf-8", "replace")))
    if after:
        return await session.position_after(EntryId(after))
    return session.size if after is None else 0


async def _follow(
    session: Session,
    position: int,
    sessions: Sessions,
    desk: Desk,
    watching: Watching,
    scope: Scope,
    heartbeat: float,
) -> Events:
    """What the log holds from a position on, then what comes, until the server stops or the session is removed."""
    with watching.of(session.id) as watch:
        forget = at_the_end(scope, watch.end)
        try:
            for record in desk.records():
                if record.is_open and session.id in {record.session_id, record.deliver_to}:
                    yield _pending(record)
            while not watch.ended:
                for record in watch.taken():
                    yield _pending(record)
                if position < session.size:
                    chunk, position = await session.chunk_from(position)
                    if chunk:
                        yield b"".join(event("entry", line.raw, number=line.entry.id) for line in chunk)
                elif not await watch.news(heartbeat):
                    if not sessions.exists(session.id) or sessions.of(session.id) is not session:
                        return
                    yield COMMENT
        finally:
            forget()


def _pending(record: Record) -> bytes:
    return event("pending", record.model_dump_json(exclude_defaults=True).encode())
