"""Blocking work beside the event loop."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def finish_in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run work in a thread. When cancelled, wait until it has ended, so that what it uses may be closed."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        raise
