"""All checks, side by side, told in their order."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Final

from bots.doctor.calls import Refused
from bots.doctor.threads import beside
from bots.doctor.verdict import Check, Finding, NotLookedAt, Unanswered, Verdict, fail, warn

LIMIT: Final = 10.0
"""Seconds for each check."""


async def examine(checks: Sequence[Check], limit: float = LIMIT) -> AsyncGenerator[Finding]:
    """What each check finds, in their order, each as soon as it and those before it are done."""
    looking = [asyncio.create_task(_find(check, limit), name=check.name) for check in checks]
    try:
        for task in looking:
            yield await task
    finally:
        for task in looking:
            task.cancel()
        await asyncio.gather(*looking, return_exceptions=True)


async def examined(checks: Sequence[Check], limit: float = LIMIT) -> list[Finding]:
    """All of it."""
    async with aclosing(examine(checks, limit)) as findings:
        return [finding async for finding in findings]


async def _find(check: Check, limit: float) -> Finding:
    try:
        async with asyncio.timeout(limit):
            verdict = await check.look()
    except TimeoutError:
        verdict = fail(f"no answer within {limit:g} s", "see what hangs: the disk, the network or a name server")
    except NotLookedAt as earlier:
        verdict = warn(f"not looked at, because of {earlier}", f"mend {earlier} first")
    except Unanswered as error:
        verdict = warn(str(error), error.cure)
    except Refused as refused:
        verdict = warn(f"this was refused ({refused.status})", "try again later; then check the API's address")
    except Exception as error:  # noqa: BLE001 - a check that trips must not hide what the others find
        verdict = warn(f"could not be checked ({type(error).__name__})", "please report this as an error of ours")
    return Finding(check.name, *verdict)


def blocking(name: str, look: Callable[[], Verdict]) -> Check:
    """A check that blocks."""
    return Check(name, lambda: beside(look))
