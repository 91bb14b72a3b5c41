"""The real app over a real house, and clients for it."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from bots.web.app import build_app
from bots.web.guard import Access
from core.archive.decisions import Decisions
from core.archive.forget import forget
from core.archive.lineage import Lineage
from core.chat.port import Chat
from core.chat.speak import Speaker
from core.confirmations.asking import Asking, NoCauses
from core.confirmations.desk import Desk
from core.confirmations.folder import Folder
from core.confirmations.leave import Leave
from core.gateway import Gateway
from core.health import Health
from core.ids import SessionId, platform_of
from core.resources.store import Resources
from core.runtime.deliver import Deliver
from core.runtime.turns import Turns
from core.sessions.removal import Removal
from core.wake import WakeRules
from tests.builders import ADMINS, SESSION, said
from tests.conftest import House
from tests.fakes import FakeChat, FakeRuntime

HOME = "http://127.0.0.1:17989"


@dataclass
class Api:
    """One app; `client` asks it as a program on this machine would. With a runtime, inside `at_work` only."""

    house: House
    access: Access = field(default_factory=Access)
    chat: FakeChat | None = field(default_factory=FakeChat)
    health: list[Health] = field(default_factory=list[Health])
    runtime: FakeRuntime | None = None

    def __post_init__(self) -> None:
        self.resources = Resources(self.house.folder / "runtimes")
        self.lineage = Lineage(self.house.store)
        decisions = Decisions(self.house.store)
        leave = Leave(decisions, admins=ADMINS, earlier=self.lineage.earlier)
        folder = Folder(self.house.sessions.folder)
        self.desk = Desk(folder, decisions, leave, admins=ADMINS, current=self.lineage.current)
        self.speaker = Speaker(self.house.sessions, self._chat, self.house.store, self.resources.upload)
        self.followers: list[Deliver | Turns] = []
        self.turns: Turns | None = None
        if self.runtime is not None:
            store = self.house.store
            deliver = Deliver(self.runtime, store, store, Health("runtime", problem=None))
            self.turns = Turns(self.runtime, deliver, self.speaker, store, WakeRules.parse("direct,mention"))
            self.desk.stop_turn = self.turns.stop
            self.followers = [deliver, self.turns]
        store, sessions = self.house.store, self.house.sessions
        self.gateway = Gateway(sessions, self.followers, store)
        leave = [self.desk.leave] if self.turns is None else [self.desk.leave, self.turns.leave]
        self.removal = Removal(self.house.folder, sessions, self.gateway, leave, partial(forget, store))
        self.app = self.build()

    def build(self) -> FastAPI:
        asking = Asking(
            self.desk,
            self.house.sessions,
            self.turns or NoCauses(),
            self._keep,
            timeout=300,
            origin=self.lineage.origin,
            current=self.lineage.current,
        )
        return build_app(
            sessions=self.house.sessions,
            resources=self.resources,
            speaker=self.speaker,
            store=self.house.store,
            data=self.house.folder,
            health=self.health,
            desk=self.desk,
            asking=asking,
            lineage=self.lineage,
            turns=self.turns,
            remove=self.removal.remove,
            access=self.access,
        )

    @asynccontextmanager
    async def at_work(self) -> AsyncGenerator[None]:
        """With the files of what is pending read, the clock watched, and the runtime woken."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.desk.at_work(list(self.house.sessions.ids())))
            stack.push_async_callback(self.gateway.stop)
            await self.gateway.start()
            yield

    def _chat(self, session: SessionId) -> Chat | None:
        return self.chat if platform_of(session) is not None else None

    async def _keep(self, session: SessionId, content: bytes) -> str:
        return self.resources.put_artifact(session, "confirmations", content, filename="request.json")

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
