"""Sessions without a platform: a person writes over HTTP, and the runtime answers (contract section 7)."""

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from fastapi import APIRouter, Body, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from bots.web.bodies import NotBlank
from bots.web.errors import ApiError, ErrorBody, Problem, needing_the_disk, refusals
from bots.web.path import Known
from core.archive.lineage import Lineage
from core.codec import parts_of
from core.content import plain_text
from core.entries import (
    AssistantMessage,
    ToolCallPart,
    TurnAborted,
    TurnDone,
    TurnFailed,
)
from core.ids import SessionId, TurnId, new_session, platform_of, session_id
from core.runtime.turns import Turns
from core.sessions.directory import Sessions
from core.sessions.reading import Recorded
from core.sessions.session import Session
from core.sessions.talk import line_of

T = TypeVar("T")


class NewSession(BaseModel):
    """``prefix`` is that of a terminal session, the only kind that is made empty."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    prefix: Literal["cli-"] = "cli-"


class Named(BaseModel):
    session_id: str


class Line(BaseModel):
    """What a person says, and where: in a session that is there, or in a new one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    content: NotBlank = Field(description="plain text")
    session_id: str | None = Field(None, description="chat-, temp- or cli-; default: a new session")
    persist: StrictBool = Field(False, description="a new session is chat- and stays; else temp-")
    origin: str | None = Field(None, description="the session whose work started a new one; asks are shown there")
    sse: StrictBool = Field(False, description="not in this version")


class Answered(Named):
    """``text`` is what the runtime said; empty where it said nothing, was stopped, or there is none."""

    text: str


class NotAnswered(Named, ErrorBody):
    """The line is in the log of that session nevertheless."""


def talk_routes(sessions: Sessions, lineage: Lineage, turns: Turns | None, known: Known) -> APIRouter:
    routes = APIRouter(prefix="/v1", tags=["sessions"])

    @routes.post("/session", responses=refusals(400, 503))
    async def new(wanted: Annotated[NewSession | None, Body()] = None) -> Named:  # pyright: ignore[reportUnusedFunction] - the router keeps it
        """A new session of a terminal."""
        session = new_session("cli")
        with needing_the_disk():
            await sessions.create(session)
        return Named(session_id=session)

    @routes.post(
        "/send",
        response_model=Answered,
        responses={**refusals(400, 404, 409, 503), 502: {"model": NotAnswered, "description": "the runtime failed"}},
    )
    async def send(line: Line, request: Request) -> JSONResponse:  # pyright: ignore[reportUnusedFunction] - as above
        """Write down what a person says, and wait for what the runtime says to it."""
        if line.sse:
            raise ApiError(400, "unsupported", "sse is not in this version; leave it out and the answer comes whole")
        session = await _place(line, sessions, lineage, known)
        said = (await session.append([line_of(line.content)]))[0]
        if turns is None:
            return JSONResponse(Answered(session_id=session.id, text="").model_dump())
        turn = await _unless_gone(request, turns.until(session, said.end))
        text, failure = await asyncio.to_thread(_outcome, session, said, turn)
        if failure is not None:
            error = Problem(code="turn_failed", message=failure)
            return JSONResponse(NotAnswered(session_id=session.id, error=error).model_dump(), 502)
        return JSONResponse(Answered(session_id=session.id, text=text).model_dump())

    return routes


async def _place(line: Line, sessions: Sessions, lineage: Lineage, known: Known) -> Session:
    """The session that a line goes into, made where it is new. Raises `ApiError`, `InvalidId`, `UnknownSession`."""
    origin = None if line.origin is None else known(line.origin).id
    if line.session_id is not None:
        wanted = session_id(line.session_id)
        if platform_of(wanted) is not None:
            raise ApiError(409, "not_here", "that session is a chat of a platform; people write to it there")
        session = known(wanted)
        if origin is not None and _root(lineage, origin) != lineage.origin(session.id):
            raise ApiError(409, "other_origin", "only a new session is given an origin; leave session_id or origin out")
        return session
    fresh = new_session("chat" if line.persist else "temp")
    with needing_the_disk():
        if origin is not None:
            await lineage.descend(fresh, _root(lineage, origin))
        await sessions.create(fresh)
    return sessions.of(fresh)


def _root(lineage: Lineage, origin: SessionId) -> SessionId:
    """Where the work began: a helper's helper asks where the first of them was started."""
    return lineage.origin(origin)


async def _unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of some work; it is given up when the caller hangs up, as a turn may be long in coming."""
    working = asyncio.create_task(work, name="answer awaited")
    gone = asyncio.create_task(_gone(request), name="caller watched")
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ApiError(503, "caller_gone", "the caller hung up; the answer will be in the log")
        return working.result()
    finally:
        working.cancel()
        gone.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _outcome(session: Session, said: Recorded, turn: TurnId | None) -> tuple[str, str | None]:
    """What a turn said after that line, and why it failed if it did. Blocks."""
    texts: list[str] = []
    for recorded in session.read(said.end) if turn is not None else ():
        if recorded.entry.turn_id != turn:
            continue
        match recorded.entry.data:
            case AssistantMessage(content=content):
                calls = [part for part in parts_of(content) if isinstance(part, ToolCallPart)]
                texts += (text for call in calls if call.tool_name == "send_message" for text in _texts(call))
            case TurnFailed(error=error):
                return "", f"the runtime's turn failed: {error.message if error is not None else 'no reason is known'}"
            case TurnAborted():
                return "", None
            case TurnDone():
                break
            case _:
                pass
    return "\n\n".join(texts), None


class _Speech(msgspec.Struct):
    messages: list[str]
    mode: str = "markdown"


def _texts(call: ToolCallPart) -> Iterator[str]:
    """The texts of a ``send_message`` call, without markup; none where a runtime wrote something else there."""
    try:
        speech = msgspec.json.decode(call.input, type=_Speech)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return
    for text in speech.messages:
        yield plain_text(text) if speech.mode == "element" else text
