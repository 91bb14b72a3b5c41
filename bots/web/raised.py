"""Whatever a route raises, as the answer that its caller gets."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final

import structlog
from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from bots.web.errors import ApiError, error_response
from core.errors import (
    AlreadyDecided,
    ChatOff,
    InvalidAnswer,
    InvalidId,
    InvalidRequest,
    IshikiError,
    LogUnavailable,
    NameTaken,
    NotAllowed,
    ResourceError,
    StoreUnavailable,
    UnknownEntry,
    UnknownSession,
    UnknownTask,
)

logger = structlog.get_logger()

_CORE: Final[Mapping[type[IshikiError], tuple[int, str]]] = {
    InvalidId: (404, "unknown_session"),
    UnknownSession: (404, "unknown_session"),
    UnknownEntry: (404, "unknown_entry"),
    UnknownTask: (404, "unknown_task"),
    AlreadyDecided: (410, "decided"),
    NotAllowed: (403, "not_allowed"),
    InvalidAnswer: (400, "invalid_answer"),
    InvalidRequest: (400, "invalid_request"),
    NameTaken: (409, "name_taken"),
    ChatOff: (503, "platform_off"),
    LogUnavailable: (503, "log_unavailable"),
    StoreUnavailable: (503, "disk_unavailable"),
}
_RESOURCES: Final[Mapping[str, int]] = {
    "invalid_resource_uri": 404,
    "resource_not_found": 404,
    "resource_unavailable": 425,
    "unsupported_view": 400,
    "resource_too_large": 413,
}


def install_error_bodies(app: FastAPI, routers: Sequence[APIRouter]) -> None:
    """Have everything that a route raises answered in our form."""

    async def http(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        if error.status_code == 405:  # the framework names the methods of one route of several at that path
            return _not_allowed(request, routers)
        phrase = HTTPStatus(error.status_code).phrase
        code = phrase.lower().replace(" ", "_").replace("-", "_")
        return error_response(error.status_code, code, str(error.detail) or phrase, error.headers)

    app.add_exception_handler(ApiError, _refused)
    app.add_exception_handler(IshikiError, _core)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(Exception, _unforeseen)


async def _refused(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ApiError)
    return error.response()


async def _core(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, ResourceError):
        status = _RESOURCES.get(error.code, 500)
        return error_response(status, error.code, str(error), {"Retry-After": "2"} if status == 425 else None)
    for kind, (status, code) in _CORE.items():
        if isinstance(error, kind):
            return error_response(status, code, str(error))
    logger.error("request_failed", path=request.url.path, exc_info=error)
    return await _unforeseen(request, error)


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    """What does not parse is 400. What was given is not repeated: it may be a secret."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(step) for step in first["loc"])[:200].encode("utf-8", "replace").decode()
    reason = str(first["msg"]).removeprefix("Value error, ")
    return error_response(400, "invalid_request", f"{place}: {reason}")


def _not_allowed(request: Request, routers: Sequence[APIRouter]) -> JSONResponse:
    routes = [route for router in routers for route in router.routes if isinstance(route, APIRoute)]
    here = [route for route in routes if route.path_regex.match(request.url.path)]
    allowed = ", ".join(sorted({method for route in here for method in route.methods or ()})) or "GET"
    return error_response(405, "method_not_allowed", f"that path takes {allowed}", {"Allow": allowed})


async def _unforeseen(_request: Request, _error: Exception) -> JSONResponse:
    """The server writes the traceback to the diagnostics; the caller gets none of it."""
    return error_response(500, "internal_error", "something went wrong here; the gateway's own output says what")
