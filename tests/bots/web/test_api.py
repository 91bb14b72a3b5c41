"""Health, the description, what every error looks like, and the real server."""

import asyncio
import signal
import socket

import httpx
import pytest

from bots.web.guard import Access
from bots.web.server import WebServer
from core.errors import AddressTaken
from core.health import Health
from tests.bots.web.api import Api, fill, problem_of
from tests.bots.web.test_sessions import SlowChat
from tests.builders import SESSION
from tests.conftest import House


async def test_ready_names_what_is_not_ready_and_no_session(house: House) -> None:
    discord, disk = Health("discord"), Health("disk", problem=None)
    api = Api(house, health=[discord, disk])
    answer = await api.get("/readyz")
    assert (answer.status_code, answer.json()) == (
        503,
        {
            "ready": False,
            "problems": {"discord": "not connected yet"},
            "error": {"code": "not_ready", "message": "discord: not connected yet"},
        },
    )
    discord.well()
    answer = await api.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"ready": True, "problems": {}})
    assert (await api.get("/healthz")).json() == {"alive": True}


async def test_the_description_names_every_route_and_there_are_no_pages(house: House) -> None:
    api = Api(house)
    described = (await api.get("/openapi.json")).json()
    session = "/v1/session/{sid}"
    assert set(described["paths"]) == {
        "/healthz",
        "/readyz",
        "/v1/sessions",
        session,
        f"{session}/entries",
        f"{session}/stream",
        f"{session}/messages",
        f"{session}/confirm",
        f"{session}/ask",
        f"{session}/pending",
        f"{session}/pending/{{task_hash}}",
        "/v1/session",
        "/v1/send",
        f"{session}/resources/assets/{{asset}}",
        f"{session}/resources/artifacts/{{namespace}}/{{name}}",
        f"{session}/resources/artifacts/{{namespace}}",
    }
    for responses in (call["responses"] for path in described["paths"].values() for call in path.values()):
        assert "422" not in responses
    for page in ("/docs", "/redoc"):
        assert problem_of(await api.get(page)) == (404, "not_found")


async def test_errors_have_one_shape(house: House) -> None:
    await fill(house)
    api = Api(house)
    assert problem_of(await api.get("/nowhere")) == (404, "not_found")
    assert problem_of(await api.get(f"/v1/session/{SESSION}/entries/")) == (404, "not_found")
    refused = await api.post("/healthz", {})
    assert problem_of(refused) == (405, "method_not_allowed")
    assert refused.headers["allow"] == "GET"


async def test_what_goes_wrong_here_is_500_and_says_nothing_about_it(house: House) -> None:
    await fill(house)
    api = Api(house)
    folder = house.folder / "runtimes" / SESSION / "resources"
    folder.write_text("a file where a folder belongs")
    answer = await api.post(f"/v1/session/{SESSION}/resources/artifacts/tool", {})
    assert problem_of(answer) == (500, "internal_error")
    assert str(folder) not in answer.text


# --- over real sockets ------------------------------------------------------------------------------------------------


async def test_the_server_serves_on_its_address_and_stops(house: House) -> None:
    await fill(house)
    api = Api(house)
    before = signal.getsignal(signal.SIGTERM)
    server = WebServer(api.app, "127.0.0.1", 0)
    await server.start()
    try:
        assert signal.getsignal(signal.SIGTERM) is before
        port = int(server.address.rpartition(":")[2])
        async with httpx.AsyncClient(trust_env=False) as client:
            for host in ("127.0.0.1", "localhost"):
                answer = await client.get(f"http://127.0.0.1:{port}/healthz", headers={"Host": f"{host}:{port}"})
                assert answer.status_code == 200
            answer = await client.get(f"{server.address}/v1/session/{SESSION}/entries")
            assert answer.content == api.log.read_bytes()
            for host in ("evil.example", f"evil.example:{port}", "127.0.0.1"):
                assert problem_of(await client.get(f"{server.address}/healthz", headers={"Host": host}))[0] == 403
            large = await client.post(
                f"{server.address}/v1/session/{SESSION}/resources/artifacts/tool", content=b"x" * 2_000_000
            )
            assert large.status_code == 201
            assert "server" not in large.headers
    finally:
        await server.stop()
    await server.stop()
    with pytest.raises(httpx.ConnectError):
        async with httpx.AsyncClient(trust_env=False) as client:
            await client.get(f"{server.address}/healthz")


async def test_a_caller_that_goes_on_sending_is_hung_up_on(house: House) -> None:
    await fill(house)
    server = WebServer(Api(house).app, "127.0.0.1", 0)
    await server.start()
    host = server.address.removeprefix("http://")
    _, writer = await asyncio.open_connection("127.0.0.1", int(host.rpartition(":")[2]))
    head = f"POST /v1/session/{SESSION}/messages HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
    async with asyncio.timeout(10):
        with pytest.raises(ConnectionError):
            while True:
                writer.write(b"10000\r\n" + b" " * 65536 + b"\r\n")
                await writer.drain()
    await server.stop()


async def test_a_caller_learns_why_its_large_body_was_refused(house: House) -> None:
    await fill(house)
    server = WebServer(Api(house).app, "127.0.0.1", 0)
    await server.start()
    async with httpx.AsyncClient(trust_env=False) as client:
        url = f"{server.address}/v1/session/{SESSION}/messages"
        declared = {"Content-Type": "application/json"}
        assert problem_of(await client.post(url, content=b" " * 9_000_000, headers=declared)) == (413, "too_large")
        assert problem_of(await client.post(url, content=b" " * 900_000)) == (415, "unsupported_media_type")
    await server.stop()


async def test_two_servers_cannot_have_one_address(house: House) -> None:
    first = WebServer(Api(house).app, "127.0.0.1", 0)
    await first.start()
    try:
        second = WebServer(Api(house).app, "127.0.0.1", int(first.address.rpartition(":")[2]))
        with pytest.raises(AddressTaken, match="ISHIKI_HTTP_PORT"):
            await second.start()
        await second.stop()
    finally:
        await first.stop()
    with pytest.raises(AddressTaken, match="ISHIKI_HTTP_HOST"):
        await WebServer(Api(house).app, "203.0.113.1", 0).start()


async def test_a_stop_lets_a_request_under_way_finish_and_waits_for_none_too_long(house: House) -> None:
    await fill(house)
    chat = SlowChat()
    server = WebServer(Api(house, chat=chat).app, "127.0.0.1", 0)
    await server.start()
    async with httpx.AsyncClient(trust_env=False) as client:
        url = f"{server.address}/v1/session/{SESSION}/messages"
        asked = asyncio.create_task(client.post(url, json={"text": "hi"}))
        await chat.reached.wait()
        stopping = asyncio.create_task(server.stop())
        chat.go.set()
        assert (await asked).status_code == 200
        await stopping

    stuck = SlowChat()
    server = WebServer(Api(house, chat=stuck).app, "127.0.0.1", 0)
    await server.start()
    _, writer = await asyncio.open_connection("127.0.0.1", int(server.address.rpartition(":")[2]))
    async with httpx.AsyncClient(trust_env=False) as client:
        asked = asyncio.create_task(client.post(f"{server.address}/v1/session/{SESSION}/messages", json={"text": "hi"}))
        await stuck.reached.wait()
        async with asyncio.timeout(3):
            await server.stop()
        assert problem_of(await asked) == (503, "stopping")
    writer.close()


async def test_a_server_on_ipv6_loopback_knows_itself(house: House) -> None:
    if not socket.has_ipv6:
        return
    server = WebServer(Api(house, Access(host="::1")).app, "::1", 0)
    try:
        await server.start()
    except AddressTaken:
        return  # this machine has no IPv6
    async with httpx.AsyncClient(trust_env=False) as client:
        assert server.address.startswith("http://[::1]:")
        assert (await client.get(f"{server.address}/healthz")).status_code == 200
    await server.stop()
