"""Fetching: a real file host on loopback that lies, redirects, dies and stalls; a fake chat that names the links."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from aiohttp import web

from core.chat.port import Chat, Link
from core.errors import ChatRefused, ChatUnavailable
from core.gateway import Gateway
from core.ids import asset_id, telegram_session
from core.resources.fetch import Fetch
from core.resources.store import Resources
from core.sessions.facts import Said
from core.sidecars import FileRef
from tests.builders import SESSION, a_picture, retracted, said
from tests.conftest import House, Until
from tests.fakes import FakeChat

PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000030000000208020000001d7b2d8d") + bytes(20)


@dataclass
class FileHost(FakeChat):
    """A file host, and the chat that names its links: ``paths`` for each file, the fresh one behind the first."""

    paths: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    host: str = ""
    fetched: list[str] = field(default_factory=list[str])
    held: asyncio.Event = field(default_factory=asyncio.Event)
    asks: int = 0

    async def link(self, ref: FileRef, *, fresh: bool) -> Link:
        self.asks += 1
        if self.refusals:
            raise self.refusals.pop(0)
        paths = self.paths[ref.attachment_id or ""]
        path = paths[1] if fresh else paths[0]
        return Link(path if "://" in path else f"http://{self.host}{path}", frozenset({self.host}))

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.fetched.append(request.path)
        match request.path:
            case "/cat":
                return web.Response(body=PNG)
            case "/dead":
                return web.Response(status=404)
            case "/away":
                return web.Response(status=302, headers={"Location": "http://127.0.0.1:1/cat"})
            case "/moved":
                return web.Response(status=302, headers={"Location": "/cat"})
            case "/round":
                return web.Response(status=302, headers={"Location": "/round"})
            case "/busy" if self.fetched.count("/busy") < 3:
                return web.Response(status=429, headers={"Retry-After": "0"})
            case "/busy":
                return web.Response(body=PNG)
            case "/broken":
                return web.Response(status=500, headers={"Retry-After": "0"})
            case "/endless" | "/held":
                response = web.StreamResponse()
                await response.prepare(request)
                while request.path == "/endless":
                    await response.write(bytes(10_000))
                await response.write(PNG[:10])
                await self.held.wait()
                return response
            case _:
                return web.Response(status=418)


@dataclass
class Fetching:
    house: House
    host: FileHost
    resources: Resources
    gateway: Gateway

    async def say(self, number: int = 1, file: str = "f1", path: str | None = None, size: int = 3) -> str:
        """A message with one file. Returns the asset's URL."""
        picture = a_picture(number, file)
        if path is not None:
            self.host.paths[file] = [path, path]
        fact = said(number, f'<img src="{picture.item.url}"/>')
        declared = type(picture.declared)(byte_length=size)
        media = type(picture)(picture.asset, picture.item, picture.ref, declared)
        await self.house.sessions.of(SESSION).append([Said(fact.message, (media,))])
        return picture.item.url

    def sidecar(self, url: str) -> dict[str, Any]:
        path = self.house.sessions.folder(SESSION) / "resources" / "assets" / f"{url.removeprefix('asset://')}.json"
        return json.loads(path.read_bytes())


@pytest.fixture
async def fetching(house: House) -> AsyncIterator[Fetching]:
    host = FileHost()
    app = web.Application()
    app.router.add_route("GET", "/{path:.*}", host.serve)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.2)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host.host = f"127.0.0.1:{runner.addresses[0][1]}"
    resources = Resources(house.folder / "runtimes")
    async with httpx.AsyncClient(trust_env=False) as client:
        fetch = Fetch(resources, client, lambda _: host, house.store, most=1000)
        house.sessions.listen(fetch.drop_retracted)
        gateway = Gateway(house.sessions, [fetch], house.store)
        await gateway.start()
        yield Fetching(house, host, resources, gateway)
        await gateway.stop()
    host.held.set()
    await runner.cleanup()


@pytest.mark.parametrize("path", ["/cat", "/moved", "/busy"])
async def test_a_file_is_fetched_and_known_by_its_bytes(fetching: Fetching, until: Until, path: str) -> None:
    url = await fetching.say(path=path)
    await until(lambda: "fetchedAt" in fetching.sidecar(url))
    sidecar = fetching.sidecar(url)
    assert (sidecar["mediaType"], sidecar["width"], sidecar["height"]) == ("image/png", 3, 2)
    assert fetching.resources.open(SESSION, url).path.read_bytes() == PNG
    assert fetching.host.host not in json.dumps(sidecar)


async def test_a_dead_link_is_asked_for_again_once(fetching: Fetching, until: Until) -> None:
    fetching.host.paths["f1"] = ["/dead", "/cat"]
    url = await fetching.say()
    await until(lambda: "fetchedAt" in fetching.sidecar(url))
    fetching.host.paths["f2"] = ["/dead", "/dead"]
    url = await fetching.say(2, "f2")
    await until(lambda: "error" in fetching.sidecar(url))
    assert fetching.host.asks == 4


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/away", "resource_unavailable"),
        ("/round", "resource_unavailable"),
        ("/broken", "resource_unavailable"),
        ("/teapot", "resource_unavailable"),
        ("/endless", "resource_too_large"),
        ("http://127.0.0.1:1/cat", "resource_unavailable"),
        ("ftp://127.0.0.1/cat", "resource_unavailable"),
        ("http://user:pass@HOST/cat", "resource_unavailable"),
        ("http://[/cat", "resource_unavailable"),
        ("http://[::", "resource_unavailable"),
    ],
)
async def test_what_may_not_be_fetched_is_noted_for_good(
    fetching: Fetching, until: Until, path: str, code: str
) -> None:
    url = await fetching.say(path=path.replace("HOST", fetching.host.host))
    await until(lambda: "error" in fetching.sidecar(url))
    error = fetching.sidecar(url)["error"]
    assert error["code"] == code
    assert "127.0.0.1" not in error["message"]
    folder = fetching.house.sessions.folder(SESSION) / "resources" / "assets"
    assert len(list(folder.iterdir())) == 1


async def test_a_file_declared_too_large_is_listed_and_never_asked_for(fetching: Fetching, until: Until) -> None:
    url = await fetching.say(path="/cat", size=700 * 2**20)
    await until(lambda: "error" in fetching.sidecar(url))
    assert fetching.sidecar(url)["error"]["code"] == "resource_too_large"
    assert fetching.host.asks == 0


async def test_a_chat_that_is_away_is_asked_again_and_one_that_refuses_is_not(fetching: Fetching, until: Until) -> None:
    fetching.host.refusals = [ChatUnavailable("away", retry_after=0)]
    url = await fetching.say(path="/cat")
    await until(lambda: "fetchedAt" in fetching.sidecar(url))
    fetching.host.refusals = [ChatRefused("above 20 MB", name="FileTooLarge")]
    url = await fetching.say(2, "f2", path="/cat")
    await until(lambda: "error" in fetching.sidecar(url))
    assert fetching.sidecar(url)["error"]["code"] == "resource_too_large"


async def test_a_slow_file_holds_up_neither_later_files_nor_a_removal(fetching: Fetching, until: Until) -> None:
    stored = await fetching.say(1, "f1", path="/cat")
    await until(lambda: "fetchedAt" in fetching.sidecar(stored))
    slow = await fetching.say(2, "f2", path="/held")
    await until(lambda: "/held" in fetching.host.fetched)
    later = await fetching.say(3, "f3", path="/cat")
    await until(lambda: "fetchedAt" in fetching.sidecar(later))
    await fetching.house.sessions.of(SESSION).append([retracted(1)])
    await until(lambda: "removedAt" in fetching.sidecar(stored))
    assert "fetchedAt" not in fetching.sidecar(slow)


async def test_while_a_file_is_under_way_no_receipt_goes_past_it(fetching: Fetching, until: Until) -> None:
    await fetching.say(1, "f1", path="/held")
    later = await fetching.say(2, "f2", path="/cat")
    await until(lambda: "fetchedAt" in fetching.sidecar(later))
    assert fetching.house.store.get("fetch", SESSION) is None
    fetching.host.held.set()
    size = fetching.house.sessions.of(SESSION).size
    await until(lambda: (receipt := fetching.house.store.get("fetch", SESSION)) and receipt.position == size)


async def test_a_retraction_in_one_chat_leaves_the_same_number_in_another_alone(
    fetching: Fetching, until: Until
) -> None:
    url = await fetching.say(1, "f1", path="/held")
    await until(lambda: "/held" in fetching.host.fetched)
    other = fetching.house.sessions.of(telegram_session("5", "business"))
    await other.append([said(1), retracted(1)])
    fetching.host.held.set()
    await until(lambda: "fetchedAt" in fetching.sidecar(url))


async def test_a_retraction_drops_a_running_fetch_and_removes_what_is_stored(fetching: Fetching, until: Until) -> None:
    stored = await fetching.say(1, "f1", path="/cat")
    await until(lambda: "fetchedAt" in fetching.sidecar(stored))
    running = await fetching.say(2, "f2", path="/held")
    await until(lambda: "/held" in fetching.host.fetched)
    await fetching.house.sessions.of(SESSION).append([retracted(1), retracted(2)])
    for url in (stored, running):
        await until(lambda url=url: "removedAt" in fetching.sidecar(url))
        assert not fetching.sidecar(url).get("error")
    folder = fetching.house.sessions.folder(SESSION) / "resources" / "assets"
    assert {path.suffix for path in folder.iterdir()} == {".json"}


async def test_a_retraction_takes_the_files_of_every_revision(fetching: Fetching, until: Until) -> None:
    await fetching.say(1, "f1", path="/cat")
    other = a_picture(1, "f2")
    fetching.host.paths["f2"] = ["/cat", "/cat"]
    edit = said(1, "other", edited_at=1_793_600_000_500)
    await fetching.house.sessions.of(SESSION).append([Said(edit.message, (other,), edited_at=edit.edited_at)])
    await until(lambda: "fetchedAt" in fetching.sidecar(other.item.url))
    await fetching.house.sessions.of(SESSION).append([retracted(1)])
    for file in ("f1", "f2"):
        url = f"asset://{asset_id(SESSION, 'discord', '1', file)}"
        await until(lambda url=url: "removedAt" in fetching.sidecar(url))


@asynccontextmanager
async def started_again(fetching: Fetching, chat: Chat | None) -> AsyncGenerator[None]:
    """The same house after a restart."""
    await fetching.house.reopen()
    async with httpx.AsyncClient(trust_env=False) as client:
        fetch = Fetch(fetching.resources, client, lambda _: chat, fetching.house.store, most=1000)
        gateway = Gateway(fetching.house.sessions, [fetch], fetching.house.store)
        await gateway.start()
        yield
        await gateway.stop()


async def test_what_was_not_fetched_is_fetched_after_a_restart(fetching: Fetching, until: Until) -> None:
    await fetching.gateway.stop()
    url = await fetching.say(path="/cat")
    async with started_again(fetching, fetching.host):
        await until(lambda: "fetchedAt" in fetching.sidecar(url))


async def test_while_the_platform_is_off_files_wait_for_it(fetching: Fetching, until: Until) -> None:
    await fetching.gateway.stop()
    url = await fetching.say(path="/cat")
    async with started_again(fetching, None):
        await fetching.house.sessions.of(SESSION).append([said(2)])
    assert not {"fetchedAt", "error"} & fetching.sidecar(url).keys()
    async with started_again(fetching, fetching.host):
        await until(lambda: "fetchedAt" in fetching.sidecar(url))


async def test_what_was_retracted_far_up_in_the_log_is_not_fetched(fetching: Fetching, until: Until) -> None:
    await fetching.gateway.stop()
    url = await fetching.say(path="/cat")
    await fetching.house.sessions.of(SESSION).append([retracted(1)])
    talk = [said(number, "x" * 60_000) for number in range(2, 12)]
    await fetching.house.sessions.of(SESSION).append(talk)
    async with started_again(fetching, fetching.host):
        await until(lambda: "removedAt" in fetching.sidecar(url))
    assert fetching.host.fetched == []
