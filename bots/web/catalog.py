"""Which sessions there are, what they are called, and how they are set up (contract sections 7 and 9)."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Depends, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from bots.web.bodies import Text
from bots.web.errors import OF_ANY_BODY, ApiError, needing_the_disk, refusals
from bots.web.guard import operator_only
from bots.web.path import Known
from bots.web.watching import Watching
from core.archive.profiles import Profile, Profiles
from core.confirmations.desk import Desk
from core.ids import Platform, SessionId, TurnId, platform_of, prefix_of, session_id
from core.sessions.directory import Sessions

MOST_PERSONA: Final = 65_536
DEFAULTS: Final = Profile(SessionId(""))

Filter = Literal["all", "active", "permanent", "temporary"]
Remove = Callable[[SessionId], Awaitable[None]]
"""Ends a session and removes all of it. Raises `OSError` and `StoreUnavailable`, and it may be asked for again."""
Running = Callable[[], Mapping[SessionId, TurnId]]
"""The turns that run now."""


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("it has no line breaks and nothing that cannot be seen")
    return text.strip()


OneLine = Annotated[Text, Field(max_length=200), AfterValidator(_one_line)]


class Listed(BaseModel):
    """Times are in Unix ms, null where nothing is known. ``name``: set by hand, else the platform's, else the id."""

    session_id: str
    name: str
    self_id: str = Field(description="alias; empty where none was chosen")
    platform: Platform | None
    created_at: int | None
    last_at: int | None = Field(description="when something was last recorded in it")
    active: bool = Field(description="a turn runs in it")
    turn_id: str | None = Field(description="the turn that runs in it")
    open: int = Field(description="confirmations that it asked for, or that are shown in it, and nobody answered yet")


class Listing(BaseModel):
    """Newest activity first."""

    sessions: list[Listed]


class Shown(Listed):
    """``successor``: the session that a migrated chat goes on in. ``origin``: the one whose work started this one."""

    title: str = Field(description="what the platform calls it; it comes from people")
    persona: str
    model: str
    reasoning: str
    successor: str | None
    origin: str | None


class Change(BaseModel):
    """What is given is changed; null, or an empty text, is the default again."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: OneLine | None = None
    self_id: Annotated[str, Field(pattern=r"^[a-z0-9_-]{0,32}$")] | None = None
    persona: Annotated[Text, Field(max_length=MOST_PERSONA)] | None = None
    model: OneLine | None = None
    reasoning: OneLine | None = None

    def values(self) -> dict[str, str]:
        """What was given, with the defaults for what was emptied."""
        return {name: getattr(self, name) or getattr(DEFAULTS, name) for name in self.model_fields_set}


class Catalog:
    """Answers from the folders, the database and what runs. Belongs to one event loop."""

    def __init__(self, sessions: Sessions, profiles: Profiles, desk: Desk, running: Running) -> None:
        self._sessions = sessions
        self._profiles = profiles
        self._desk = desk
        self._running = running

    async def listing(self, wanted: Filter) -> bytes:
        """The sessions of a filter, as JSON. Raises `StoreUnavailable`."""
        profiles, counts, running = await self._profiles.all(), self._open(), self._running()

        def rows() -> Iterator[Listed]:
            for session, touched in self._sessions.activity():
                if _is_wanted(session, wanted, running):
                    profile = profiles.get(session) or Profile(session)
                    yield _listed(profile, touched, running.get(session), counts[session])

        def build() -> bytes:
            newest_first = sorted(rows(), key=lambda row: row.last_at or 0, reverse=True)
            return Listing(sessions=newest_first).model_dump_json().encode()

        return await asyncio.to_thread(build)

    async def one(self, session: SessionId, profile: Profile | None = None) -> Shown:
        """Raises `StoreUnavailable`."""
        profile = profile or await self._profiles.get(session)
        touched = await asyncio.to_thread(self._sessions.touched_at, session)
        listed = _listed(profile, touched, self._running().get(session), self._open()[session])
        return Shown(
            **listed.model_dump(),
            title=profile.title,
            persona=profile.persona,
            model=profile.model,
            reasoning=profile.reasoning,
            successor=profile.successor or None,
            origin=profile.origin or None,
        )

    def _open(self) -> Counter[SessionId]:
        """Open confirmations by session: once for who asked, once for where it is shown, if that is another one."""
        counts: Counter[SessionId] = Counter()
        for record in self._desk.records():
            if record.is_open:
                counts.update({record.session_id, record.deliver_to})
        return counts


def catalog_routes(catalog: Catalog, profiles: Profiles, watching: Watching, remove: Remove, known: Known) -> APIRouter:
    routes = APIRouter(prefix="/v1", tags=["sessions"])
    operators = [Depends(operator_only)]

    @routes.get("/sessions", response_model=Listing)
    async def sessions(filter: Filter = "all") -> Response:  # noqa: A002 # pyright: ignore[reportUnusedFunction] - its name in the contract; the router keeps it
        """All sessions; ``active``: a turn runs in them, ``temporary``: those that are removed when they are idle."""
        listing = await catalog.listing(filter)
        return Response(listing, media_type="application/json", headers={"Cache-Control": "no-store"})

    @routes.get("/session/{sid}", responses=refusals(404))
    async def one(sid: str) -> Shown:  # pyright: ignore[reportUnusedFunction] - as above
        """One session."""
        return await catalog.one(known(sid).id)

    @routes.patch("/session/{sid}", dependencies=operators, responses=refusals(404, 409, *OF_ANY_BODY))
    async def change(sid: str, wanted: Change) -> Shown:  # pyright: ignore[reportUnusedFunction] - as above
        """Call it something else, or set it up differently. A ``self_id`` that another session has is 409."""
        session = known(sid).id
        with needing_the_disk():
            profile = await profiles.set(session, **wanted.values())
        return await catalog.one(session, profile)

    @routes.delete("/session/{sid}", dependencies=operators, status_code=204, responses=refusals(404, 408, 413))
    async def delete(sid: str) -> None:  # pyright: ignore[reportUnusedFunction] - as above
        """End a ``cli-``, ``chat-`` or ``temp-`` session and remove all of it; the chat of a platform is 403."""
        if platform_of(session := session_id(sid)) is not None:
            raise ApiError(403, "not_removable", "the session of a chat stays; `ishiki purge` removes what is in it")
        with needing_the_disk():
            await remove(known(session).id)
        watching.end(session)

    return routes


def _is_wanted(session: SessionId, wanted: Filter, running: Mapping[SessionId, TurnId]) -> bool:
    match wanted:
        case "all":
            return True
        case "active":
            return session in running
        case "temporary":
            return prefix_of(session) == "temp"
        case "permanent":
            return prefix_of(session) != "temp"


def _listed(profile: Profile, touched: float, turn: TurnId | None, waiting: int) -> Listed:
    return Listed(
        session_id=profile.session_id,
        name=profile.display,
        self_id=profile.self_id,
        platform=platform_of(profile.session_id),
        created_at=profile.created_at or None,
        last_at=max(profile.last_at, round(touched * 1000)) or None,
        active=turn is not None,
        turn_id=turn,
        open=waiting,
    )
