"""Sessions without a platform: a person writes over HTTP, and the runtime answers (contract section 7)."""

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from fastapi import APIRouter, Body, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field, StrictBool
from starlette.types import Scope

from bots.web.bodies import NotBlank
from bots.web.errors import OF_ANY_BODY, ApiError, ErrorBody, Problem, needing_the_disk, refusals
from bots.web.events import COMMENT, Events, EventStream, at_the_end, described, event, hung_up
from bots.web.path import Known
from bots.web.stream import HEARTBEAT
from bots.web.watching import Watching
from core.archive.lineage import Lineage
from core.archive.profiles import Profiles
from core.codec import parts_of
from core.content import plain_text
from core.entries import (
    AssistantMessage,
    ToolCallPart,
    TurnAborted,
    TurnDone,
    TurnFailed,
    UserMessage,
)
from core.ids import SessionId, TurnId, new_session, platform_of, session_id
from core.runtime.turns import Turns
from core.sessions.directory import Sessions
from core.sessions.facts import said_here
from core.sessions.reading import Recorded
from core.sessions.session import Session

SESSION_HEADER: Final = "Ishiki-Session"
"""Names the session of an answer in events before it has come to its end."""

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
    sse: StrictBool = Field(False, description="answer with events: entry for each line as it is written, then done")


class Answered(Named):
    """``text`` is what the runtime said; empty where it said nothing, was stopped, or there is none."""

    text: str


class NotAnswered(Named, ErrorBody):
    """The line is in the log of that session nevertheless."""


_ANSWERS: Final[dict[int | str, dict[str, object]]] = {
    200: {
        "description": "what the runtime said; with sse the events entry, and then done or error",
        "content": described("entry", "done", "error"),
        "headers": {SESSION_HEADER: {"description": "with sse: the session", "schema": {"type": "string"}}},
    },
    **refusals(404, 409, *OF_ANY_BODY),
    502: {"model": NotAnswered, "description": "the runtime failed"},
}


def talk_routes(
    sessions: Sessions, lineage: Lineage, turns: Turns | None, watching: Watching, profiles: Profiles, known: Known
) -> APIRouter:
    routes = APIRouter(prefix="/v1", tags=["sessions"])

    @routes.post("/session", responses=refusals(*OF_ANY_BODY), openapi_extra={"requestBody": {"required": True}})
    async def new(wanted: Annotated[NewSession | None, Body()] = None) -> Named:  # pyright: ignore[reportUnusedFunction] - the router keeps it
        """A new session of a terminal."""
        session = new_session("cli")
        with needing_the_disk():
            await profiles.set(session)
            await sessions.create(session)
        return Named(session_id=session)

    @routes.post("/send", response_model=Answered, responses=_ANSWERS)
    async def send(line: Line, request: Request) -> Response:  # pyright: ignore[reportUnusedFunction] - as above
        """Write down what a person says, and wait for what the runtime says to it.

        With ``sse`` the lines of the answer are told as they are written, and the header ``Ishiki-Session`` names the
        session at once; in the end comes ``done``, or ``error`` where the turn failed. A caller who hangs up ends
        nothing: the answer will be in the log.
        """
        session = await _place(line, sessions, lineage, profiles, known)
        said = (await session.append([said_here(line.content)]))[0]
        if line.sse:
            answering = asyncio.create_task(_answer(session, said, turns), name="answer awaited")
            events = _told(session, said, answering, watching, request.scope)
            return EventStream(events, {SESSION_HEADER: session.id})
        answer = await _unless_gone(request, _answer(session, said, turns))
        return JSONResponse(answer.model_dump(), 200 if isinstance(answer, Answered) else 502)

    return routes


async def _answer(session: Session, said: Recorded, turns: Turns | None) -> Answered | NotAnswered:
    """What the runtime says to a line, once its turn has ended."""
    if turns is None:
        return Answered(session_id=session.id, text="")
    turn = await turns.until(session, said.end)
    text, failure = await asyncio.to_thread(_outcome, session, said, turn)
    if failure is None:
        return Answered(session_id=session.id, text=text)
    return NotAnswered(session_id=session.id, error=Problem(code="turn_failed", message=failure))


async def _told(
    session: Session,
    said: Recorded,
    answering: asyncio.Task[Answered | NotAnswered],
    watching: Watching,
    scope: Scope,
) -> Events:
    """The lines of turns since a line was said, as they are written; in the end what they came to.

    A turn that runs already may be the one that answers, so its lines are told too.
    """
    position = said.end
    with watching.of(session.id) as watch:
        answering.add_done_callback(lambda _: watch.wake())
        forget = at_the_end(scope, watch.end)
        try:
            while not watch.ended:
                answered = answering.done()  # before its lines are looked for: they are written first
                while position < session.size:
                    chunk, position = await session.chunk_from(position)
                    lines = [event("entry", line.raw, number=line.entry.id) for line in chunk if _is_of_a_turn(line)]
                    if lines:
                        yield b"".join(lines)
                if answered:
                    answer = answering.result()
                    yield event("done" if isinstance(answer, Answered) else "error", answer.model_dump_json().encode())
                    return
                if not await watch.news(HEARTBEAT):
                    yield COMMENT
            problem = Problem(code="stopping", message="the gateway is stopping; the answer will be in the log")
            yield event("error", NotAnswered(session_id=session.id, error=problem).model_dump_json().encode())
        finally:
            forget()
            answering.cancel()


def _is_of_a_turn(recorded: Recorded) -> bool:
    """Whether a line is the runtime's, and nothing that people said meanwhile."""
    return recorded.entry.turn_id is not None and not isinstance(recorded.entry.data, UserMessage)


async def _place(line: Line, sessions: Sessions, lineage: Lineage, profiles: Profiles, known: Known) -> Session:
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
        await profiles.set(fresh)
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
    gone = asyncio.create_task(hung_up(request.receive), name="caller watched")
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ApiError(503, "caller_gone", "the caller hung up; the answer will be in the log")
        return working.result()
    finally:
        working.cancel()
        gone.cancel()


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
