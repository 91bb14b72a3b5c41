"""``ishiki run`` as an operator starts it: a process of its own, against the loopback platforms."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from bots.sandbox.discord import DiscordSandbox
from bots.sandbox.telegram import TelegramSandbox
from core.ids import SessionId

ISHIKI = [sys.executable, "-c", "from bots.cli import main; main()"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Operator:
    """Somebody with a terminal in a folder of their own."""

    def __init__(self, folder: Path, discord: DiscordSandbox, telegram: TelegramSandbox) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.port = free_port()
        self._killed: set[int] = set()
        self.environment = {
            "PATH": os.environ["PATH"],
            "DISCORD_TOKEN": discord.token,
            "DISCORD_API_URL": discord.api_url,
            "DISCORD_GATEWAY_URL": discord.gateway_url,
            "DISCORD_CDN_HOSTS": discord.cdn_host,
            "DISCORD_ALLOW": "*",
            "TELEGRAM_TOKEN": telegram.token,
            "TELEGRAM_API_URL": telegram.api_url,
            "TELEGRAM_ALLOW": "*",
            "ISHIKI_HTTP_PORT": str(self.port),
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }

    async def ishiki(self, *arguments: str, **environment: str) -> tuple[int, str, str]:
        """Run a command to its end. Returns exit code, output and errors."""
        process = await self.start(*arguments, **environment)
        output, errors = await asyncio.wait_for(process.communicate(), 30)
        assert process.returncode is not None
        return process.returncode, output.decode(), errors.decode()

    async def start(self, *arguments: str, **environment: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *ISHIKI,
            *arguments,
            cwd=self.folder,
            env=self.environment | environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    @asynccontextmanager
    async def running(self, **environment: str) -> AsyncGenerator[asyncio.subprocess.Process]:
        """`ishiki run`, ready; stopped by SIGTERM at the end, which has to go well."""
        process = await self.start("run", **environment)
        errors = asyncio.create_task(_read(process))
        try:
            await self._until_ready(process, errors)
            yield process
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
            code = await asyncio.wait_for(process.wait(), 10)
            shown = await errors
        assert code == (-signal.SIGKILL if process.pid in self._killed else 0), shown
        assert "Traceback" not in shown

    async def kill(self, process: asyncio.subprocess.Process) -> None:
        """End it as a power cut would."""
        self._killed.add(process.pid)
        process.kill()
        await process.wait()

    @asynccontextmanager
    async def api(self, token: str) -> AsyncGenerator[httpx.AsyncClient]:
        """A program on this machine that calls the HTTP API."""
        headers = {"Authorization": f"Bearer {token}"}
        base = f"http://127.0.0.1:{self.port}"
        async with httpx.AsyncClient(trust_env=False, base_url=base, headers=headers, timeout=20) as client:
            yield client

    async def _until_ready(self, process: asyncio.subprocess.Process, errors: asyncio.Task[str]) -> None:
        async with asyncio.timeout(20), httpx.AsyncClient(trust_env=False) as client:
            while True:
                assert process.returncode is None, await errors
                try:
                    response = await client.get(f"http://127.0.0.1:{self.port}/readyz")
                except httpx.ConnectError:
                    await asyncio.sleep(0.05)
                    continue
                if response.status_code == 200:
                    return
                await asyncio.sleep(0.05)

    def lines(self, session: SessionId) -> list[dict[str, Any]]:
        path = self.data / "runtimes" / session / "events.jsonl"
        return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []

    def kinds(self, session: SessionId) -> list[str]:
        return [line["data"].get("type") or line["data"]["role"] for line in self.lines(session)]


async def _read(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    return (await process.stderr.read()).decode()
