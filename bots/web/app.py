"""Puts our HTTP API together."""

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from fastapi import APIRouter, FastAPI, Security
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer

from bots.web.confirmations import confirmation_routes
from bots.web.errors import ErrorBody
from bots.web.guard import Access, Guard
from bots.web.health import Alive, NotReady, Readiness, alive, readiness
from bots.web.once import Once
from bots.web.path import known_in
from bots.web.raised import install_error_bodies
from bots.web.resources import resource_routes
from bots.web.sessions import session_routes
from bots.web.talk import talk_routes
from core.archive.lineage import Lineage
from core.archive.store import Store
from core.chat.speak import Speaker
from core.confirmations.asking import Asking
from core.confirmations.desk import Desk
from core.health import Health
from core.resources.store import Resources
from core.runtime.turns import Turns
from core.sessions.directory import Sessions


def build_app(
    *,
    sessions: Sessions,
    resources: Resources,
    speaker: Speaker,
    store: Store,
    health: Sequence[Health],
    data: Path,
    desk: Desk,
    asking: Asking,
    lineage: Lineage,
    turns: Turns | None,
    access: Access,
) -> FastAPI:
    """The ASGI app, over the data folder ``data``. It belongs to the event loop of ``sessions`` and ``store``."""
    app = FastAPI(
        title="ishiki-bots",
        version=_version(),
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses={"default": {"model": ErrorBody, "description": "refused, or failed"}},
    )
    app.add_middleware(Guard, access=access)
    install_error_bodies(app)
    known, once = known_in(sessions), Once(store)
    app.include_router(_health_routes(health, data))
    for routes in (
        session_routes(speaker, once, known),
        confirmation_routes(desk, asking, once, known),
        talk_routes(sessions, lineage, turns, known),
        resource_routes(resources, known),
    ):
        app.include_router(routes, dependencies=[Security(HTTPBearer(auto_error=False))])
    return app


def _health_routes(health: Sequence[Health], data: Path) -> APIRouter:
    routes = APIRouter(tags=["health"])
    routes.add_api_route("/healthz", alive, response_model=Alive)

    @routes.get("/readyz", response_model=Readiness, responses={503: {"model": NotReady}})
    async def ready() -> JSONResponse:  # pyright: ignore[reportUnusedFunction] - the router keeps it
        return await readiness(health, data)

    return routes


def _version() -> str:
    try:
        return version("ishiki-bots")
    except PackageNotFoundError:
        return "0"
