"""Blocking work that may hang: in threads of its own, which keep neither a check nor the end of the program waiting."""

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


async def beside(work: Callable[[], T]) -> T:
    """What some work gives or raises. Who stops waiting leaves it to itself."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(end: Callable[[], None]) -> None:
        if not done.done():
            end()

    def run() -> None:
        try:
            end = partial(done.set_result, work())
        except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
            end = partial(done.set_exception, error)
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(tell, end)

    threading.Thread(target=run, daemon=True).start()
    return await done


class Loop(asyncio.SelectorEventLoop):
    """An event loop that a name server which does not answer cannot keep from ending.

    The usual one looks names up in threads that it waits for at its end, for as long as the resolver has patience.
    """

    async def getaddrinfo(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the standard library's own
        return await beside(partial(socket.getaddrinfo, *args, **kwargs))
