"""Puts our HTTP API together."""

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request, Security
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer

from bots.web.catalog import Catalog, Remove, catalog_routes
from bots.web.confirmations import confirmation_routes
from bots.web.errors import OF_ANY_CALL, ApiError, refusals
from bots.web.guard import Access, Guard, json_only
from bots.web.health import Alive, NotReady, Readiness, alive, readiness
from bots.web.once import Once
from bots.web.path import known_in
from bots.web.raised import install_error_bodies
from bots.web.resources import resource_routes
from bots.web.sessions import session_routes
from bots.web.stream import stream_routes
from bots.web.talk import talk_routes
from bots.web.watching import Watching
from core.archive.lineage import Lineage
from core.archive.profiles import Profiles
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
    remove: Remove,
    access: Access,
) -> FastAPI:
    """The ASGI app, over the data folder ``data``. It belongs to the event loop of ``sessions`` and ``store``."""
    app = _Api(title="ishiki-bots", version=_version(), docs_url=None, redoc_url=None, redirect_slashes=False)
    app.add_middleware(Guard, access=access)
    known, once, profiles, watching = known_in(sessions), Once(store), Profiles(store), Watching(sessions, desk)
    catalog = Catalog(sessions, profiles, desk, turns.running if turns is not None else dict)
    guarded = [
        catalog_routes(catalog, profiles, watching, remove, known),
        session_routes(speaker, once, known),
        stream_routes(sessions, desk, watching, known),
        confirmation_routes(desk, asking, once, known),
        talk_routes(sessions, lineage, turns, watching, profiles, known),
        resource_routes(resources, known),
    ]
    health_routes = _health_routes(health, data)
    install_error_bodies(app, [health_routes, *guarded])
    misspelt = Depends(_no_other_query)
    app.include_router(health_routes, dependencies=[misspelt], responses=refusals(400, 403, 429))
    checks = [Security(HTTPBearer(auto_error=False)), Depends(json_only), misspelt]
    for routes in guarded:
        app.include_router(routes, dependencies=checks, responses=refusals(*OF_ANY_CALL))
    return app


class _Api(FastAPI):
    def openapi(self) -> dict[str, Any]:
        """What FastAPI makes of the routes, without its own answer to what does not parse: ours is 400."""
        document = super().openapi()
        for path in document["paths"].values():
            for call in path.values():
                call["responses"].pop("422", None)
        for name in ("HTTPValidationError", "ValidationError"):
            document["components"]["schemas"].pop(name, None)
        return document


def _no_other_query(request: Request) -> None:
    """A parameter that is misspelt is told, rather than left out. Raises `ApiError` 400."""
    known = {str(parameter.alias) for parameter in request.scope["route"].dependant.query_params}
    for name in request.query_params:
        if name not in known:
            wanted = f"; it takes {', '.join(sorted(known))}" if known else ""
            raise ApiError(400, "invalid_request", f"there is no query parameter of that name here{wanted}")


def _health_routes(health: Sequence[Health], data: Path) -> APIRouter:
    routes = APIRouter(tags=["health"])
    routes.add_api_route("/healthz", alive, response_model=Alive)

    @routes.get("/readyz", response_model=Readiness, responses={503: {"model": NotReady, "description": "not ready"}})
    async def ready() -> JSONResponse:  # pyright: ignore[reportUnusedFunction] - the router keeps it
        return await readiness(health, data)

    return routes


def _version() -> str:
    try:
        return version("ishiki-bots")
    except PackageNotFoundError:
        return "0"
