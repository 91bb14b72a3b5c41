"""Whether the process is alive, and whether everything it needs is there. Both name no session."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel
from starlette.responses import JSONResponse

from bots.web.errors import ErrorBody, Problem
from core.health import Health
from core.log.disk import trouble_with


class Alive(BaseModel):
    alive: bool = True


class Readiness(BaseModel):
    """``problems`` says of each part that is not ready what is wrong, with the cure."""

    ready: bool
    problems: dict[str, str]


class NotReady(Readiness, ErrorBody):
    """The same as an error: its message names every problem."""


async def alive() -> JSONResponse:
    return JSONResponse(Alive().model_dump())


async def readiness(health: Sequence[Health], data: Path) -> JSONResponse:
    """Whether each part is well, and the disk takes something now."""
    problems = {part.name: part.problem for part in health if part.problem is not None}
    if (trouble := await asyncio.to_thread(trouble_with, data)) is not None:
        problems.setdefault("disk", trouble)
    if not problems:
        return JSONResponse(Readiness(ready=True, problems={}).model_dump())
    told = "; ".join(f"{name}: {problem}" for name, problem in problems.items())
    error = Problem(code="not_ready", message=told)
    return JSONResponse(NotReady(ready=False, problems=problems, error=error).model_dump(), 503)
