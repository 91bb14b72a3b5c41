"""Before any route: who is asking, from where, how much and how often (contract sections 7 and 9).

A page in a browser of this machine can reach loopback, and by DNS rebinding also under a name of its own; so Host
and Origin are checked even where no token is set.
"""

import asyncio
import hmac
import math
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bots.web import strict
from bots.web.errors import ApiError
from bots.web.rates import Rates, neighbourhood
from core.addresses import is_loopback

MOST_JSON: Final = 1024 * 1024
MOST_UPLOADED: Final = 25 * 1024 * 1024
MOST_DISCARDED: Final = 64 * 1024 * 1024
DISCARD_WITHIN: Final = 2.0
"""Bytes and seconds that a refused caller may go on sending."""
JSON_WITHIN: Final = 20.0
UPLOAD_WITHIN: Final = 300.0
"""Seconds until a body is here whole."""
SECONDS_IN_A_BURST: Final = 4
STRANGERS: Final = 10
"""Requests a second of an address whose bearer is none of ours, or that shows none where one is wanted."""
LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")

_OPERATOR: Final = "ishiki.operator"
"""In a request's scope: whether its bearer has the operator's right."""
_WITHOUT_TOKEN: Final = frozenset({"/healthz", "/readyz"})
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_WRITES: Final = frozenset({"POST", "PUT", "PATCH"})
_UPLOAD: Final = re.compile(r"/v1/session/[^/]+/resources/artifacts/[^/]+")
_FORMS: Final = frozenset({"multipart/form-data", "application/x-www-form-urlencoded"})
_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Access:
    """Who may call. ``host`` is where we listen as configured; ``origins`` are ISHIKI_HTTP_ORIGINS.

    Both tokens may read, speak, upload and ask people; what is the operator's alone, to answer for people, needs
    ``token``, and where there is none it is refused over HTTP. All else is open then to who can reach it; a host that
    is not loopback has a token, the settings see to that. ``rate`` is how many requests a second one caller may send.
    """

    host: str = "127.0.0.1"
    token: str | None = field(default=None, repr=False)
    runtime_token: str | None = field(default=None, repr=False)
    origins: tuple[str, ...] = ()
    rate: int = 300

    def knows(self, bearer: str) -> bool:
        """Whether a bearer is one of ours; takes the same time for each that is not."""
        given = bearer.encode()
        ours = [key.encode() for key in (self.token, self.runtime_token) if key]
        return any([hmac.compare_digest(given, key) for key in ours])  # noqa: C419 - a list: all of them are compared

    def is_operator(self, bearer: str) -> bool:
        """Whether a bearer has the operator's right."""
        return bool(self.token) and hmac.compare_digest(bearer.encode(), (self.token or "").encode())


def operator_only(request: Request) -> None:
    """The dependency of a route that only the operator may use. Raises `ApiError` 403."""
    if not request.scope.get(_OPERATOR, False):
        cure = "set ISHIKI_HTTP_TOKEN and send it as the bearer, or use `ishiki answer` in the terminal"
        raise ApiError(403, "operator_only", f"only the operator may do that: {cure}")


def json_only(request: Request) -> None:
    """The dependency of a route that takes JSON, which a page of another site cannot send. Raises `ApiError` 415."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.method in _WRITES and not _UPLOAD.fullmatch(request.url.path) and kind != "application/json":
        raise ApiError(415, "unsupported_media_type", "send JSON, with the header Content-Type: application/json")


class Guard:
    """ASGI middleware that lets a request through or answers it with the refusal."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access
        self._origins = {origin.lower().rstrip("/") for origin in access.origins}
        self._hosts = {host for origin in self._origins for host in _hosts_of(origin)}
        self._rates = Rates(access.rate, access.rate * SECONDS_IN_A_BURST)
        strangers = min(STRANGERS, access.rate)
        self._strangers = Rates(strangers, strangers * SECONDS_IN_A_BURST)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] == "HEAD" and not scope["path"].endswith("/stream"):
            scope = {**scope, "method": "GET"}  # the server leaves the body out
        headers = Headers(scope=scope)
        incoming = _Incoming(receive)
        try:
            self._check_place(scope, headers)
            scope[_OPERATOR] = self._is_operator(scope, headers)
            if scope["method"] in _WITH_BODY:
                receive = await _whole_body(scope, headers, incoming)
        except ApiError as refusal:
            response = refusal.response()
            if scope["method"] in _WITH_BODY:
                await _discard(incoming)
                response.headers["Connection"] = "close"
            await response(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _check_place(self, scope: Scope, headers: Headers) -> None:
        """Host and Origin name the address that the request came in by, or one of ISHIKI_HTTP_ORIGINS."""
        server: tuple[str, int | None] | None = scope.get("server")
        ours = _spellings(self._access.host, server) if server else set[str]()
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in ours | self._hosts:
            raise ApiError(
                403, "foreign_host", "this address is not ours; a proxy's own belongs into ISHIKI_HTTP_ORIGINS"
            )
        for origin in headers.getlist("origin"):
            if origin.lower() not in self._origins | {f"http://{host}" for host in ours}:
                raise ApiError(403, "foreign_origin", "pages of other sites may not call this API")

    def _is_operator(self, scope: Scope, headers: Headers) -> bool:
        """Whether it is the operator who asks. Raises where nobody asks who may, or who has asked too often."""
        client: tuple[str, int] | None = scope.get("client")
        place = neighbourhood(client[0]) if client else ""
        given = headers.get("authorization")
        if scope["path"] in _WITHOUT_TOKEN or (given is None and not self._access.token):
            _unhurried(self._rates.wait(place))
            return False
        scheme, _, bearer = (given or "").partition(" ")
        if scheme.lower() != "bearer" or not self._access.knows(bearer.strip()):
            _unhurried(self._strangers.wait(place))
            raise ApiError(
                401,
                "unauthorized",
                "send the header Authorization: Bearer with the value of ISHIKI_HTTP_TOKEN",
                {"WWW-Authenticate": 'Bearer realm="ishiki"'},
            )
        operator = self._access.is_operator(bearer.strip())
        _unhurried(self._rates.wait(f"{place} {'operator' if operator else 'runtime'}"))
        return operator


def _unhurried(wait: float) -> None:
    """Raises `ApiError` 429 where a caller has to wait."""
    if wait > 0:
        seconds = str(math.ceil(wait))
        cure = "ask less often; ISHIKI_HTTP_RATE says how often one caller may"
        raise ApiError(429, "too_many_requests", f"too many requests: {cure}", {"Retry-After": seconds})


class _Incoming:
    """The body on its way in; ``ended``: there is no more of it to come."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.ended = False

    async def next(self) -> Message:
        message = await self._receive()
        self.ended = not message.get("more_body", False)
        return message


async def _whole_body(scope: Scope, headers: Headers, incoming: _Incoming) -> Receive:
    """Take the body in, so that no route reads more than it may. What is said to be JSON has to be."""
    path: str = scope["path"]
    limit, within = MOST_JSON, JSON_WITHIN
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if _UPLOAD.fullmatch(path):
        limit, within = MOST_UPLOADED, UPLOAD_WITHIN
        if kind in _FORMS:
            raise ApiError(415, "unsupported_media_type", "send the bytes of the file themselves, not a form")
    too_large = ApiError(413, "too_large", f"a body here is at most {limit} bytes")
    declared = headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise too_large
    messages: list[Message] = []
    size = 0
    try:
        async with asyncio.timeout(within):
            while not incoming.ended:
                message = await incoming.next()
                messages.append(message)
                size += len(message.get("body", b""))
                if size > limit:
                    raise too_large
    except TimeoutError:
        raise ApiError(408, "too_slow", f"a body here comes within {within:.0f} s") from None
    if kind == "application/json" and not _UPLOAD.fullmatch(path):
        body = b"".join(message.get("body", b"") for message in messages)
        if body:
            strict.check(body)
    messages.reverse()

    async def replay() -> Message:
        return messages.pop() if messages else await incoming.next()

    return replay


async def _discard(incoming: _Incoming) -> None:
    """Let a caller finish sending, within bounds: hung up on earlier, it would never see why it was refused."""
    size = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_WITHIN):
            while size < MOST_DISCARDED and not incoming.ended:
                size += len((await incoming.next()).get("body", b""))


def _spellings(configured: str, server: tuple[str, int | None]) -> set[str]:
    """Every right ``Host`` of a request that came in by an address of ours."""
    arrived, port = server
    names = {_bracketed(configured), _bracketed(arrived)}
    if is_loopback(arrived):
        names.update(LOOPBACK)
    hosts = {f"{name}:{port}" for name in names}
    return hosts | names if port in {80, None} else hosts


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host.lower()


def _hosts_of(origin: str) -> set[str]:
    """``https://bots.example.org`` is called with or without ``:443``."""
    parts = urlsplit(origin)
    default = _PORTS.get(parts.scheme)
    if parts.netloc.endswith(f":{default}"):
        return {parts.netloc, parts.netloc.removesuffix(f":{default}")}
    return {parts.netloc, f"{parts.netloc}:{default}"} if parts.port is None else {parts.netloc}
