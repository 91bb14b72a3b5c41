"""Reading what was said in a session, and speaking in it (contract section 7)."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated, Final

from fastapi import APIRouter, Header, Query
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from bots.web.errors import OF_ANY_BODY, ApiError, refusals
from bots.web.once import Answer, Once
from bots.web.path import Known
from core.chat.speak import Speaker, Speech
from core.ids import EntryId, MessageId, SessionId, ThreadId, new_uuid, platform_of
from core.sessions.session import Session

NDJSON: Final = "application/x-ndjson"

_LINES: Final[dict[int | str, dict[str, object]]] = {
    200: {"content": {NDJSON: {"schema": {"type": "string"}}}, "description": "log lines as they stand on disk"},
    **refusals(404),
}


def _whole(text: str) -> str:
    """JSON may hold half of a character, ``"\\ud800"``, which no platform and no log line can."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("a surrogate stands alone; send whole Unicode characters")
    return text


Text = Annotated[str, AfterValidator(_whole)]
PlatformId = Annotated[str, Field(pattern=r"^-?[0-9]{1,20}$")]
IdempotencyKey = Annotated[str | None, Header(min_length=1, max_length=255)]


class Message(BaseModel):
    """What to say: ``content`` is element markup, ``text`` is Markdown; one of both."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    content: Text | None = None
    text: Text | None = None
    quote: PlatformId | None = Field(None, description="id of the message that this one answers")
    threadId: PlatformId | None = Field(None, description="Telegram forum topic")  # noqa: N815 - its name on the wire

    def speech(self) -> Speech:
        """Raises `ApiError` 400 unless there is exactly one text, and something in it."""
        said = self.content if self.text is None else self.text
        if said is None or (self.content is not None and self.text is not None):
            raise ApiError(400, "invalid_request", "give either content (element markup) or text (Markdown)")
        if not said.strip():
            raise ApiError(400, "invalid_request", "there is nothing to say: the text is blank")
        quote = MessageId(self.quote) if self.quote is not None else None
        thread = ThreadId(self.threadId) if self.threadId is not None else None
        return Speech((said,), "element" if self.text is None else "markdown", quote, thread)


class Said(BaseModel):
    """The platform's ids of the messages that the text became."""

    ok: bool
    ids: list[str]


class Failure(BaseModel):
    name: str
    message: str


class NotSaid(BaseModel):
    """``sent`` are the ids of what stands in the chat nevertheless, ``failedAt`` the number of the text, from 0."""

    ok: bool
    error: Failure
    sent: list[str]
    failedAt: int  # noqa: N815 - its name on the wire


_SAID: Final[dict[int | str, dict[str, object]]] = {
    **refusals(404, 409, *OF_ANY_BODY),
    502: {"model": NotSaid, "description": "the platform did not take it, or not all of it"},
}


def session_routes(speaker: Speaker, once: Once, known: Known) -> APIRouter:
    routes = APIRouter(prefix="/v1/session/{sid}", tags=["sessions"])

    @routes.get("/entries", response_class=StreamingResponse, responses=_LINES)
    async def entries(  # pyright: ignore[reportUnusedFunction] - the router keeps it
        sid: str, after: str | None = None, limit: Annotated[int, Query(ge=1, le=1000)] = 100
    ) -> StreamingResponse:
        """Log lines from the beginning, or after an entry; lines that are no entries are left out."""
        session = known(sid)
        start = await session.position_after(EntryId(after)) if after else 0
        return StreamingResponse(
            _lines(session, start, limit), media_type=NDJSON, headers={"Cache-Control": "no-store"}
        )

    @routes.post("/messages", response_model=Said, responses=_SAID)
    async def speak(sid: str, message: Message, idempotency_key: IdempotencyKey = None) -> JSONResponse:  # pyright: ignore[reportUnusedFunction] - as above
        """Say something in the chat that the session id names.

        The same ``Idempotency-Key`` and body again get the first answer again, also where sending failed; what was
        not answered at all (503, 500, no answer) may be asked again with the same key, and nothing is sent twice.
        """
        session, speech = known(sid).id, message.speech()
        if platform_of(session) is None:
            raise ApiError(409, "no_chat", "that session is no chat of a platform; this version speaks only in chats")
        key = idempotency_key or new_uuid()
        body = message.model_dump_json().encode()
        answer = await once.answer(session, key, "messages", body, lambda _: _say(speaker, session, speech, key))
        return JSONResponse(answer.body, answer.status)

    return routes


async def _say(speaker: Speaker, session: SessionId, speech: Speech, key: str) -> Answer:
    spoken = await speaker.say(session, speech, key=f"api:{session}:{key}")
    return Answer(200 if spoken.ok else 502, spoken.as_output())


async def _lines(session: Session, position: int, limit: int) -> AsyncGenerator[bytes]:
    """At most ``limit`` durable lines, a chunk of the file at a time."""
    end = session.size
    while limit and position < end:
        chunk, position = await asyncio.to_thread(session.read_chunk, position)
        chunk = chunk[:limit]
        limit -= len(chunk)
        if chunk:
            yield b"".join(recorded.raw + b"\n" for recorded in chunk)
