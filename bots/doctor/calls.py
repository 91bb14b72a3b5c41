"""Asking over HTTP: what came back as a model of ours, or one sentence about why not."""

import asyncio
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Final, Generic, NamedTuple, TypeVar

import httpx
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from bots.doctor.verdict import Unanswered

PATIENCE: Final = 8.0
"""Seconds for one answer; below the limit of a check, so that the check can say who was silent."""
SHORT_WAIT: Final = 2.0
"""Seconds of a rate limit that are waited for."""

T = TypeVar("T")


class Told(BaseModel):
    """The root of what others tell us: what we do not ask about is left out."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class Refused(Exception):
    """An answer below 500 that is no success. ``code`` and ``reason`` are the API's own, where it gave any."""

    def __init__(self, status: int, code: int | None = None, reason: str = "") -> None:
        super().__init__(f"it was refused with {status}")
        self.status = status
        self.code = code
        self.reason = reason


class Skew(NamedTuple):
    """How far a server's clock is ahead of ours, and how far off that may be; in seconds."""

    ahead: float
    error: float


class _Refusal(Told):
    """Discord gives message and code, Telegram description and error_code."""

    message: str = ""
    code: int | None = None
    description: str = ""
    error_code: int | None = None
    retry_after: float | None = None
    parameters: Mapping[str, float | int] = {}


class Caller:
    """Asks one server. ``named`` is what it is called in a sentence, ``cure`` what to look at when it is silent."""

    def __init__(self, client: httpx.AsyncClient, base: str, *, named: str, cure: str) -> None:
        self._client = client
        self._base = base.rstrip("/")
        self._named = named
        self._cure = cure
        self.skew: Skew | None = None

    async def get(self, path: str, model: type[T], *, patience: float | None = None, **query: str | int) -> T:
        """The body of ``GET path``. Raises `Refused`, and `Unanswered` where asking again may help."""
        response = await self._ask(path, query, patience)
        if response.status_code == 429:
            wait = _refusal(response).retry_after or _seconds(response.headers.get("Retry-After"))
            if wait > SHORT_WAIT:
                raise Unanswered(f"{self._named} wants to be left alone for {wait:.0f} s (429)", "try again after that")
            await asyncio.sleep(wait)
            response = await self._ask(path, query, patience)
        if response.status_code >= 500 or response.status_code == 429:
            raise Unanswered(f"{self._named} answers with {response.status_code}", "try again later")
        if not response.is_success:
            told = _refusal(response)
            raise Refused(response.status_code, told.code or told.error_code, told.message or told.description)
        try:
            return TypeAdapter(model).validate_json(response.content)
        except ValidationError:
            raise Unanswered(f"what {self._named} answers cannot be read", self._cure) from None

    async def _ask(self, path: str, query: Mapping[str, str | int], patience: float | None) -> httpx.Response:
        began = time.time()
        timeout = self._client.timeout if patience is None else httpx.Timeout(patience)
        try:
            response = await self._client.get(f"{self._base}{path}", params=query or None, timeout=timeout)
        except httpx.TimeoutException:
            raise Unanswered(f"{self._named} does not answer", self._cure) from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise Unanswered(f"{self._named} cannot be reached ({reason_of(error)})", self._cure) from None
        self._note_clock(response, began, time.time())
        return response

    def _note_clock(self, response: httpx.Response, began: float, ended: float) -> None:
        """``Date`` is cut to the second, and was written somewhere between asking and answer."""
        try:
            there = parsedate_to_datetime(response.headers["Date"]).timestamp() + 0.5
        except (KeyError, ValueError):
            return
        found = Skew(there - (began + ended) / 2, 0.5 + (ended - began) / 2)
        if "Age" not in response.headers and (self.skew is None or found.error < self.skew.error):
            self.skew = found


def reason_of(error: BaseException) -> str:
    """Why there is no connection, in words of ours: what a client's errors say may hold the address."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, socket.gaierror):
            return "its name is not found"
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "its certificate is not trusted; see the clock, and SSL_CERT_FILE"
        if isinstance(cause, ConnectionRefusedError):
            return "nobody listens there"
        cause = cause.__cause__ or cause.__context__
    return type(error).__name__


class Once(Generic[T]):
    """Something that several checks go by: the first of them asks, the others wait for what it is told."""

    def __init__(self, ask: Callable[[], Awaitable[T]]) -> None:
        self._ask = ask
        self._turn = asyncio.Lock()
        self._answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    async def __call__(self) -> T:
        """Raises what asking raised. Where the first gives up waiting the next one asks again."""
        async with self._turn:
            if not self._answer.done():
                try:
                    self._answer.set_result(await self._ask())
                except (Refused, Unanswered) as error:
                    self._answer.set_exception(error)
        return self._answer.result()


def _refusal(response: httpx.Response) -> _Refusal:
    try:
        told = TypeAdapter(_Refusal).validate_json(response.content)
    except ValidationError:
        return _Refusal()
    wait = told.parameters.get("retry_after")
    return told if wait is None else told.model_copy(update={"retry_after": float(wait)})


def _seconds(header: str | None) -> float:
    try:
        return max(float(header or 1), 0)
    except ValueError:
        return 1.0
