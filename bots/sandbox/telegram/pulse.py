"""A way to wait for the state of the stand-in to become so, without polling it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Pulse:
    """Whoever changes the state beats; whoever waits looks again after each beat."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def beat(self) -> None:
        """Let every waiter look again."""
        self._next.set()
        self._next = asyncio.Event()

    async def until(self, look: Callable[[], T | None], within: float) -> T:
        """Return the first truthy value of `look`; raises `TimeoutError` after `within` seconds."""
        async with asyncio.timeout(within):
            while True:
                beat = self._next
                if found := look():
                    return found
                await beat.wait()
