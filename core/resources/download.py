"""Getting bytes from a link: from its own hosts only, only so many, and not for ever (contract 9, "Fetching")."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import httpx

from core.addresses import is_loopback
from core.backoff import retry_after
from core.chat.port import Link
from core.errors import ResourceError
from core.resources.store import Incoming
from core.threads import finish_in_thread

SILENCE: Final = httpx.Timeout(30.0, connect=10.0)
"""Seconds without a byte after which the other side is given up."""
MOST_REDIRECTS: Final = 3
_DEAD: Final = frozenset({403, 404, 410})
# Bytes are counted as they come; a compressed answer would grow behind the counter.
_HEADERS: Final = {"Accept-Encoding": "identity"}


class DeadLink(ResourceError):
    """The link leads nowhere any more; a fresh one may."""

    def __init__(self, status: int) -> None:
        super().__init__("resource_unavailable", f"the file host answered {status}")


class TryLater(ResourceError):
    """The file host may answer another time. ``seconds`` is what it asked for."""

    def __init__(self, message: str, seconds: float | None = None) -> None:
        super().__init__("resource_unavailable", message)
        self.seconds = seconds


async def download(client: httpx.AsyncClient, link: Link, incoming: Incoming, *, most: int) -> None:
    """Write the bytes behind a link to ``incoming``.

    Raises `DeadLink`, `TryLater`, or `ResourceError` where it is no use to try again: a host that is not the
    platform's, a redirect away from it, more than ``most`` bytes.
    """
    try:
        async with _response(client, link) as response:
            declared = response.headers.get("Content-Length", "")
            if declared.isdecimal() and int(declared) > most:
                raise _too_large(most)
            async for chunk in response.aiter_raw(64 * 1024):
                if incoming.size + len(chunk) > most:
                    raise _too_large(most)
                await finish_in_thread(incoming.write, chunk)
    # The class says enough: the text of either may hold the link, which is signed or holds a token.
    except (httpx.InvalidURL, UnicodeError):
        raise ResourceError("resource_unavailable", "the link is no URL") from None
    except httpx.HTTPError as error:
        raise TryLater(f"the file host did not answer ({type(error).__name__})") from None


@asynccontextmanager
async def _response(client: httpx.AsyncClient, link: Link) -> AsyncGenerator[httpx.Response]:
    """The answer that holds the bytes, after at most three redirects between the listed hosts."""
    url = httpx.URL(link.url)
    for _ in range(MOST_REDIRECTS + 1):
        _check(url, link.hosts)
        request = client.build_request("GET", url, headers=_HEADERS, timeout=SILENCE)
        response = await client.send(request, stream=True)
        try:
            if response.has_redirect_location:
                url = url.join(response.headers["Location"])
                continue
            _check_status(response)
            yield response
            return
        finally:
            await response.aclose()
    raise ResourceError("resource_unavailable", "the file host redirects too often")


def _check(url: httpx.URL, hosts: frozenset[str]) -> None:
    host = url.host if url.port is None else f"{url.host}:{url.port}"
    if url.userinfo or host.lower() not in {listed.lower() for listed in hosts}:
        raise ResourceError("resource_unavailable", "the link leads to a host that is not on the list")
    if url.scheme != "https" and not (url.scheme == "http" and is_loopback(url.host)):
        raise ResourceError("resource_unavailable", "the link is not https")


def _check_status(response: httpx.Response) -> None:
    status = response.status_code
    if status in _DEAD:
        raise DeadLink(status)
    if status == 429 or status >= 500:
        raise TryLater(f"the file host answered {status}", retry_after(response.headers))
    if status != 200:
        raise ResourceError("resource_unavailable", f"the file host answered {status}")


def _too_large(most: int) -> ResourceError:
    return ResourceError("resource_too_large", f"the file is larger than {most} bytes")
