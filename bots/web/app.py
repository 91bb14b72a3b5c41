"""Puts our HTTP API together."""

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from fastapi import FastAPI, Security
from fastapi.security import HTTPBearer

from bots.web.errors import ErrorBody, install_error_bodies
from bots.web.guard import Access, Guard
from bots.web.health import health_routes
from bots.web.once import Once
from bots.web.path import known_in
from bots.web.resources import resource_routes
from bots.web.sessions import session_routes
from core.archive.store import Store
from core.chat.speak import Speaker
from core.health import Health
from core.resources.store import Resources
from core.sessions.directory import Sessions


def build_app(
    *,
    sessions: Sessions,
    resources: Resources,
    speaker: Speaker,
    store: Store,
    health: Sequence[Health],
    data: Path,
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
    known = known_in(sessions)
    app.include_router(health_routes(health, data))
    for routes in (session_routes(speaker, Once(store), known), resource_routes(resources, known)):
        app.include_router(routes, dependencies=[Security(HTTPBearer(auto_error=False))])
    return app


def _version() -> str:
    try:
        return version("ishiki-bots")
    except PackageNotFoundError:
        return "0"
