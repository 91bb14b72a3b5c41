"""The real app over a real house, and clients for it."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from bots.web.app import build_app
from bots.web.guard import Access
from core.chat.port import Chat
from core.chat.speak import Speaker
from core.health import Health
from core.resources.store import Resources
from tests.builders import SESSION, said
from tests.conftest import House
from tests.fakes import FakeChat

HOME = "http://127.0.0.1:17989"


@dataclass
class Api:
    """One app; `client` asks it as a program on this machine would."""

    house: House
    access: Access = field(default_factory=Access)
    chat: FakeChat | None = field(default_factory=FakeChat)
    health: list[Health] = field(default_factory=list[Health])

    def __post_init__(self) -> None:
        self.resources = Resources(self.house.folder / "runtimes")
        self.app = self.build()

    def build(self) -> FastAPI:
        chat: Chat | None = self.chat
        return build_app(
            sessions=self.house.sessions,
            resources=self.resources,
            speaker=Speaker(self.house.sessions, lambda _: chat, self.house.store, self.resources.upload),
            store=self.house.store,
            data=self.house.folder,
            health=self.health,
            access=self.access,
        )

    @asynccontextmanager
    async def client(self, **headers: str) -> AsyncGenerator[httpx.AsyncClient]:
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=HOME, headers=headers) as client:
            yield client

    async def get(self, path: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        async with self.client() as client:
            return await client.get(path, headers=headers)

    async def post(self, path: str, body: object, headers: Mapping[str, str] | None = None) -> httpx.Response:
        async with self.client() as client:
            return await client.post(path, json=body, headers=headers)

    @property
    def log(self) -> Path:
        return self.house.folder / "runtimes" / SESSION / "events.jsonl"

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_bytes().splitlines()]


def problem_of(response: httpx.Response, *more: str) -> tuple[int, str]:
    """Status and code; and the shape is that of every error, with these members ``more``."""
    body = response.json()
    assert set(body) == {"error", *more}
    assert set(body["error"]) == {"code", "message"}
    return response.status_code, body["error"]["code"]


async def fill(house: House, count: int = 1) -> None:
    await house.sessions.of(SESSION).append([said(number, f"message {number}") for number in range(1, count + 1)])
