"""Whether the process is alive, and whether everything it needs is there. Both name no session."""

from collections.abc import Sequence

from fastapi import APIRouter, Response
from pydantic import BaseModel

from core.health import Health


class Alive(BaseModel):
    alive: bool = True


class Readiness(BaseModel):
    """``problems`` says of each part that is not ready what is wrong, with the cure."""

    ready: bool
    problems: dict[str, str]


def health_routes(health: Sequence[Health]) -> APIRouter:
    routes = APIRouter(tags=["health"])

    @routes.get("/healthz")
    async def alive() -> Alive:  # pyright: ignore[reportUnusedFunction] - the router keeps it
        return Alive()

    @routes.get("/readyz", responses={503: {"model": Readiness}})
    async def ready(response: Response) -> Readiness:  # pyright: ignore[reportUnusedFunction] - as above
        problems = {part.name: part.problem for part in health if part.problem is not None}
        if problems:
            response.status_code = 503
        return Readiness(ready=not problems, problems=problems)

    return routes
