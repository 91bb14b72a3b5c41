"""All checks, side by side, told in their order."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from typing import Final

from bots.doctor.calls import Refused
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
    """A check that blocks, in a thread of its own, which a disk that hangs keeps from ending but not us."""
    return Check(name, lambda: _beside(look))


async def _beside(work: Callable[[], Verdict]) -> Verdict:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Verdict] = loop.create_future()

    def tell(verdict: Verdict | Exception) -> None:
        if done.done():
            return
        if isinstance(verdict, Exception):
            done.set_exception(verdict)
        else:
            done.set_result(verdict)

    def run() -> None:
        verdict: Verdict | Exception
        try:
            verdict = work()
        except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
            verdict = error
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(tell, verdict)

    threading.Thread(target=run, daemon=True).start()
    return await done
