"""What the Bot API answers when it refuses, worded as api.telegram.org words it."""

from __future__ import annotations

from typing import Any

REASONS = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    409: "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
    413: "Request Entity Too Large",
    429: "Too Many Requests",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}


class ApiError(Exception):
    """One refusal: `error_code` (also the HTTP status), `description` and, where documented, `parameters`."""

    def __init__(self, error_code: int, description: str, parameters: dict[str, Any] | None = None) -> None:
        super().__init__(description)
        self.error_code = error_code
        self.description = description
        self.parameters = parameters

    def body(self) -> dict[str, Any]:
        """The JSON body of the answer."""
        body: dict[str, Any] = {"ok": False, "error_code": self.error_code, "description": self.description}
        return body | {"parameters": self.parameters} if self.parameters else body


def bad_request(detail: str) -> ApiError:
    """A 400 with the usual prefix."""
    return ApiError(400, f"Bad Request: {detail}")


def forbidden(detail: str) -> ApiError:
    """A 403 with the usual prefix."""
    return ApiError(403, f"Forbidden: {detail}")


def flood(retry_after: int) -> ApiError:
    """A 429; `retry_after` in whole seconds."""
    return ApiError(429, f"Too Many Requests: retry after {retry_after}", {"retry_after": retry_after})


def migrated(chat_id: int) -> ApiError:
    """The group has become the supergroup `chat_id`."""
    parameters = {"migrate_to_chat_id": chat_id}
    return ApiError(400, "Bad Request: group chat was upgraded to a supergroup chat", parameters)
