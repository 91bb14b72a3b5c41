"""Telling systemd how we are: the protocol of sd_notify(3). Without a supervisor that asks for it, nothing is told."""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final

LEAST_PAUSE: Final = 0.5
"""Seconds between two signs of life, however short the time is that the unit gives (``WatchdogSec=``)."""


def tell(state: str) -> None:
    """Say ``READY=1`` or ``STOPPING=1``. A supervisor that is not there, or does not listen, is no error."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address[:1] not in {"/", "@"}:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as supervisor:
        supervisor.setblocking(False)
        supervisor.sendto(state.encode(), address.replace("@", "\0", 1) if address[0] == "@" else address)


@asynccontextmanager
async def watched() -> AsyncGenerator[None]:
    """Give a sign of life twice in the time that the unit's watchdog allows: from the event loop, so that one that
    hangs is started anew."""
    pause = _watchdog_seconds() / 2
    beating = asyncio.create_task(_beat(max(pause, LEAST_PAUSE)), name="watchdog") if pause else None
    try:
        yield
    finally:
        if beating is not None:
            beating.cancel()


async def _beat(pause: float) -> None:
    while True:
        tell("WATCHDOG=1")
        await asyncio.sleep(pause)


def _watchdog_seconds() -> float:
    """What the unit allows; 0 where it has no watchdog, or one for another process."""
    if os.environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0
    given = os.environ.get("WATCHDOG_USEC", "")
    return int(given) / 1e6 if given.isdecimal() else 0.0
