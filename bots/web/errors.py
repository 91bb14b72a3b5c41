"""How errors look to a caller of our API: ``{"error": {"code", "message"}}``, always."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from core.errors import (
    AlreadyDecided,
    ChatOff,
    InvalidAnswer,
    InvalidId,
    InvalidRequest,
    IshikiError,
    LogUnavailable,
    NotAllowed,
    ResourceError,
    StoreUnavailable,
    UnknownEntry,
    UnknownSession,
    UnknownTask,
)

logger = structlog.get_logger()


class Problem(BaseModel):
    """``code`` is for programs and stays; ``message`` is a sentence for people."""

    code: str
    message: str


class ErrorBody(BaseModel):
    """The body of every answer that is an error."""

    error: Problem


class ApiError(Exception):
    """A request that is refused."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = headers

    def response(self) -> JSONResponse:
        return error_response(self.status, self.code, str(self), self.headers)


def error_response(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    body = ErrorBody(error=Problem(code=code, message=message))
    return JSONResponse(body.model_dump(), status_code=status, headers=headers)


_CORE: Final[Mapping[type[IshikiError], tuple[int, str]]] = {
    InvalidId: (404, "unknown_session"),
    UnknownSession: (404, "unknown_session"),
    UnknownEntry: (404, "unknown_entry"),
    UnknownTask: (404, "unknown_task"),
    AlreadyDecided: (410, "decided"),
    NotAllowed: (403, "not_allowed"),
    InvalidAnswer: (400, "invalid_answer"),
    InvalidRequest: (400, "invalid_request"),
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


_MEANINGS: Final[Mapping[int, str]] = {
    400: "what was sent does not parse, or makes no sense here",
    403: "only the operator may do that",
    404: "there is no such session, or nothing of that name in it",
    409: "it does not fit what was done before, or this kind of session",
    410: "decided already, or expired",
    503: "the disk did not take it, and nothing was changed",
}


def refusals(*statuses: int) -> dict[int | str, dict[str, object]]:
    """What the API's description says of a route's refusals."""
    return {status: {"model": ErrorBody, "description": _MEANINGS[status]} for status in statuses}


_UNWRITTEN: Final = "the disk did not take it, so nothing was changed; free some space, then send it again"


@contextmanager
def needing_the_disk() -> Generator[None]:
    """What the disk does not take is a 503, and may be asked again."""
    try:
        yield
    except (OSError, StoreUnavailable) as error:
        logger.warning("request_not_written", error=type(error).__name__)
        raise ApiError(503, "disk_unavailable", _UNWRITTEN) from error


def install_error_bodies(app: FastAPI) -> None:
    """Have everything that a route raises answered in our form."""
    app.add_exception_handler(ApiError, _refused)
    app.add_exception_handler(IshikiError, _core)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
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


async def _http(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    phrase = HTTPStatus(error.status_code).phrase
    code = phrase.lower().replace(" ", "_").replace("-", "_")
    return error_response(error.status_code, code, str(error.detail) or phrase, error.headers)


async def _unforeseen(_request: Request, _error: Exception) -> JSONResponse:
    """The server writes the traceback to the diagnostics; the caller gets none of it."""
    return error_response(500, "internal_error", "something went wrong here; the gateway's own output says what")
