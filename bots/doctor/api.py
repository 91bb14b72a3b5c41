"""Our own HTTP API: whether it can listen, or listens already, and how it says that we are."""

import errno
import socket
from collections.abc import Mapping
from typing import Final

import httpx
from pydantic import TypeAdapter, ValidationError

from bots.doctor.calls import Once, Told
from bots.doctor.verdict import NotLookedAt, Verdict, fail, ok, warn
from core.trust import trusted

PATIENCE: Final = 5.0
_ANOTHER: Final = "stop what listens there, or set ISHIKI_HTTP_PORT to another port"
_EVERY_ADDRESS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - asked, not listened on


class Readiness(Told):
    """As `/readyz` gives it: what is wrong, by part."""

    ready: bool
    problems: Mapping[str, str]


class Api:
    """``held``: somebody holds the data folder, so `ishiki run` should be listening."""

    def __init__(self, host: str, port: int, *, held: bool) -> None:
        self._host = host.strip("[]")
        self._port = port
        self._held = held
        self._readiness = Once(self._ask)

    async def problem_of(self, part: str) -> str | None:
        """What `ishiki run` says of a part of it: one sentence, None where it is well. Raises `NotLookedAt`."""
        if (found := await self._readiness()) is None:
            raise NotLookedAt("api")
        return found.problems.get(part)

    async def look_at_address(self) -> Verdict:
        """Whether the port is free, or ours."""
        found = await self._readiness()
        place = f"{self._host}:{self._port}"
        if found is None:
            return self._of_silence(place)
        if not self._held:
            return fail(f"an `ishiki run` of another data folder listens on {place}", _ANOTHER)
        told = "; ".join(f"{part}: {problem}" for part, problem in found.problems.items())
        if told:
            return warn(f"`ishiki run` is not ready: {told}", "see the line of that part")
        return ok(f"`ishiki run` listens on {place} and is ready")

    def _of_silence(self, place: str) -> Verdict:
        """Nobody answers there as we do."""
        reason = self._why_not()
        if reason == errno.EADDRINUSE:
            return fail(f"another program listens on {place}", _ANOTHER)
        if reason == errno.EACCES:
            return fail(f"we may not listen on {place}", "set ISHIKI_HTTP_PORT to a port from 1024")
        if reason is not None:
            return fail(f"{self._host} is no address of this machine", "set ISHIKI_HTTP_HOST to one of its addresses")
        if self._held:
            cure = "start `ishiki run` again if it was started with another ISHIKI_HTTP_PORT"
            return warn(f"somebody holds the data folder, but nobody listens on {place}", cure)
        return ok(f"{place} is free for the HTTP API")

    def _why_not(self) -> int | None:
        """The error of binding there; None where that goes. Nothing is listened to."""
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(
                self._host, self._port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
        except OSError as error:
            return error.errno or errno.EADDRNOTAVAIL
        return None

    async def _ask(self) -> Readiness | None:
        """None where nobody answers as we do."""
        host = _EVERY_ADDRESS.get(self._host, self._host)
        base = f"http://[{host}]:{self._port}" if ":" in host else f"http://{host}:{self._port}"
        if not self._port:
            return None
        try:
            async with httpx.AsyncClient(trust_env=False, verify=trusted(), timeout=PATIENCE) as client:
                response = await client.get(f"{base}/readyz")
            return TypeAdapter(Readiness).validate_json(response.content)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValidationError):
            return None
