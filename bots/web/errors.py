"""How errors look to a caller of our API: ``{"error": {"code", "message"}}``, always."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Final

import structlog
from pydantic import BaseModel
from starlette.responses import JSONResponse

from core.errors import StoreUnavailable

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


_MEANINGS: Final[Mapping[int, str]] = {
    400: "what was sent does not parse, or makes no sense here",
    401: "the bearer is missing, or none of ours",
    403: "a foreign Host or Origin, or only the operator may do that",
    404: "there is no such session, or nothing of that name in it",
    408: "the body took too long to arrive",
    409: "it does not fit what was done before, or this kind of session",
    410: "decided already, expired, or removed",
    413: "the body is too large",
    415: "the body is not of the type that is wanted",
    425: "that file is not fetched yet; ask again later",
    429: "too many requests; ask again later",
    503: "the disk or the platform did not take it, or the gateway is stopping; ask again later",
}
_HEADERS: Final[Mapping[int, tuple[str, str]]] = {
    401: ("WWW-Authenticate", "how to show who asks"),
    425: ("Retry-After", "seconds"),
    429: ("Retry-After", "seconds"),
}
OF_ANY_BODY: Final = (408, 413, 415)
OF_ANY_CALL: Final = (400, 401, 403, 429, 503)


def refusals(*statuses: int) -> dict[int | str, dict[str, object]]:
    """What the API's description says of a route's refusals."""
    return {status: {"model": ErrorBody, "description": _MEANINGS[status]} | _headers(status) for status in statuses}


def _headers(status: int) -> dict[str, object]:
    if status not in _HEADERS:
        return {}
    name, meaning = _HEADERS[status]
    return {"headers": {name: {"description": meaning, "required": True, "schema": {"type": "string"}}}}


_UNWRITTEN: Final = "the disk did not take it, so nothing was changed; free some space, then send it again"


@contextmanager
def needing_the_disk() -> Generator[None]:
    """What the disk does not take is a 503, and may be asked again."""
    try:
        yield
    except (OSError, StoreUnavailable) as error:
        logger.warning("request_not_written", error=type(error).__name__)
        raise ApiError(503, "disk_unavailable", _UNWRITTEN) from error
