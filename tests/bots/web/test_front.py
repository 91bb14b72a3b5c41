"""What is served before the API is built."""

import asyncio
import threading

import httpx
import pytest
from starlette.types import ASGIApp

from bots.web.front import Front
from bots.web.guard import Access
from core.health import Health
from tests.bots.web.api import HOME, Api, problem_of
from tests.conftest import House


async def test_health_is_told_before_the_api_is_built_and_whoever_asks_for_more_waits_for_it(house: House) -> None:
    api, health, may_end = Api(house), Health("discord"), threading.Event()
    built: list[ASGIApp] = []

    def build() -> ASGIApp:
        may_end.wait(10)
        built.append(api.app)
        return api.app

    front = Front(build, [health], house.folder, Access())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(front), base_url=HOME) as client:
        early = [asyncio.create_task(client.get("/openapi.json")) for _ in range(2)]
        assert (await client.get("/healthz")).json() == {"alive": True}
        assert problem_of(await client.get("/readyz"), "ready", "problems") == (503, "not_ready")
        health.well()
        assert (await client.get("/readyz")).json() == {"ready": True, "problems": {}}
        assert problem_of(await client.get("/readyz", headers={"Host": "evil.example"})) == (403, "foreign_host")
        assert not any(asked.done() for asked in early)
        may_end.set()
        assert [(await asked).status_code for asked in early] == [200, 200]
    assert len(built) == 1


async def test_a_caller_who_hangs_up_does_not_stop_the_building(house: House) -> None:
    api, may_end = Api(house), threading.Event()

    def build() -> ASGIApp:
        may_end.wait(10)
        return api.app

    front = Front(build, [], house.folder, Access())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(front), base_url=HOME) as client:
        impatient = asyncio.create_task(client.get("/openapi.json"))
        await asyncio.sleep(0.05)
        impatient.cancel()
        may_end.set()
        assert (await client.get("/openapi.json")).status_code == 200


async def test_who_prepares_the_api_ends_only_when_it_cannot_be_built(house: House) -> None:
    api = Api(house)

    def fail() -> ASGIApp:
        raise ImportError("no framework")

    with pytest.raises(ImportError):
        await Front(fail, [], house.folder, Access(), soon=0).prepare()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(Front(lambda: api.app, [], house.folder, Access(), soon=0).prepare(), 0.2)
