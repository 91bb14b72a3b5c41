"""The agent runtime: whether it answers, and knows the token. Nothing is delivered."""

from http import HTTPStatus
from typing import Final

import aiohttp

from bots.doctor.calls import reason_of
from bots.doctor.verdict import Verdict, fail, ok, warn
from core.runtime.http import client

PATIENCE: Final = aiohttp.ClientTimeout(total=8.0)
_REFUSALS: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


async def look_at_runtime(url: str | None, token: str | None) -> Verdict:
    """By ``GET /deliver``, which is no delivery: a runtime has no such route and says so, mostly with 405 or 404.

    One that looks at the bearer before it looks at the route refuses the same without one, which tells that it took
    ours. A delivery without entries would tell more, but is one.
    """
    if url is None:
        cure = "set ISHIKI_RUNTIME_URL to that of your agent"
        return warn("neither ISHIKI_RUNTIME_URL nor ISHIKI_MODEL is set: everything is recorded and nobody woken", cure)
    cure = "see that it runs, and that ISHIKI_RUNTIME_URL is its address"
    try:
        async with client() as asking:
            status = await _get(asking, url, token)
            refused_without = token is not None and status not in _REFUSALS and await _get(asking, url) in _REFUSALS
    except TimeoutError:
        return fail("the runtime does not answer", cure)
    except (aiohttp.ClientError, OSError) as error:
        return fail(f"the runtime cannot be reached ({reason_of(error)})", cure)
    return _of_answer(status, token, takes_it=refused_without)


def _of_answer(status: int, token: str | None, *, takes_it: bool) -> Verdict:
    """``takes_it``: without the token it was another answer, a refusal."""
    if status in _REFUSALS:
        what = "refuses ISHIKI_RUNTIME_TOKEN" if token else "wants a token"
        return fail(f"the runtime {what} ({status})", "set ISHIKI_RUNTIME_TOKEN to the one that it expects")
    if status >= 500:
        return warn(f"the runtime answers with {status}", "see what its own output says")
    if 300 <= status < 400:
        return fail(f"the runtime sends us elsewhere ({status})", "set ISHIKI_RUNTIME_URL to where it really is")
    if takes_it:
        return ok("the runtime answers, and takes the token")
    if token is None:
        return ok("the runtime answers, and asks for no token")
    return ok("the runtime answers; whether it takes the token shows with the first delivery")


async def _get(asking: aiohttp.ClientSession, url: str, token: str | None = None) -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    address = f"{url.rstrip('/')}/deliver"
    async with asking.get(address, headers=headers, timeout=PATIENCE, allow_redirects=False) as response:
        return response.status
