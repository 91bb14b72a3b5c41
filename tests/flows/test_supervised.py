"""``ishiki run`` under a supervisor: systemd's protocol, over a real socket (sd_notify(3))."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bots.sandbox.discord import DiscordSandbox
from bots.sandbox.telegram import TelegramSandbox
from bots.supervisor import tell
from tests.flows.operators import Operator


@asynccontextmanager
async def a_supervisor(address: str) -> AsyncGenerator[list[str]]:
    """Listens there; gives what it was told."""
    told: list[str] = []
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(address.replace("@", "\0", 1) if address.startswith("@") else address)
        listening.setblocking(False)
        loop.add_reader(listening, lambda: told.append(listening.recv(4096).decode()))
        try:
            yield told
        finally:
            loop.remove_reader(listening)


async def test_a_supervisor_is_told_that_we_are_ready_alive_and_stopping(
    tmp_path: Path, discord: DiscordSandbox, telegram: TelegramSandbox
) -> None:
    operator = Operator(tmp_path, discord, telegram)
    address = str(tmp_path / "notify")
    async with a_supervisor(address) as told, operator.running(NOTIFY_SOCKET=address, WATCHDOG_USEC="1000000"):
        await asyncio.sleep(1.3)
    assert told.count("READY=1") == 1
    assert told[-1] == "STOPPING=1" or told[-2:] == ["STOPPING=1", "WATCHDOG=1"]
    assert told.count("WATCHDOG=1") >= 2


@pytest.mark.parametrize("address", ["@ishiki-test-supervisor", "", "elsewhere:1", "/no/where"])
async def test_a_supervisor_may_have_a_name_without_a_file_or_not_be_there(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    if address.startswith("@"):
        async with a_supervisor(address) as told:
            tell("READY=1")
            await asyncio.sleep(0.05)
        assert told == ["READY=1"]
    else:
        tell("READY=1")  # to nobody, and in peace
