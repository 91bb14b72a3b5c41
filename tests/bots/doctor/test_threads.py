"""What hangs for ever is left to itself."""

import asyncio
import socket
import time
from threading import Event

import httpx
import pytest

from bots.doctor.threads import Loop, beside


async def test_what_blocking_work_gives_or_raises_is_given_or_raised() -> None:
    assert await beside(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        await beside(lambda: 1 // 0)


def test_a_name_server_that_hangs_does_not_keep_the_program_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = Event()

    def hang(*_args: object, **_kwargs: object) -> None:
        answered.wait(60)

    monkeypatch.setattr(socket, "getaddrinfo", hang)

    async def ask() -> None:
        async with httpx.AsyncClient(trust_env=False, timeout=0.2) as client:
            await client.get("http://discord.invalid/")

    began = time.monotonic()
    with asyncio.Runner(loop_factory=Loop) as runner, pytest.raises(httpx.ConnectTimeout):
        runner.run(ask())
    assert time.monotonic() - began < 5
    answered.set()
