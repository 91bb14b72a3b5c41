"""Who may ask: Host, Origin, bearer, content type and size."""

import httpx
import pytest

from bots.web.guard import MOST_JSON, MOST_UPLOADED, Access
from core.health import Health
from tests.bots.web.api import Api, fill, problem_of
from tests.builders import SESSION
from tests.conftest import House

ENTRIES = f"/v1/session/{SESSION}/entries"
MESSAGES = f"/v1/session/{SESSION}/messages"
KEYS = Access(token="the-operator", runtime_token="the-runtime")


@pytest.fixture
async def api(house: House) -> Api:
    await fill(house)
    return Api(house, health=[Health("discord", problem=None)])


@pytest.mark.parametrize("host", ["127.0.0.1:17989", "localhost:17989", "[::1]:17989", "LOCALHOST:17989"])
async def test_every_spelling_of_loopback_is_our_host(api: Api, host: str) -> None:
    assert (await api.get(ENTRIES, {"Host": host, "Origin": f"http://{host}".lower()})).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:17989", "127.0.0.1:80", "127.0.0.1", "localhost.evil.example:17989", ""]
)
@pytest.mark.parametrize("path", [ENTRIES, "/healthz", "/openapi.json", "/nowhere"])
async def test_a_foreign_host_is_refused_everywhere(api: Api, host: str, path: str) -> None:
    assert problem_of(await api.get(path, {"Host": host})) == (403, "foreign_host")


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:3000", "https://127.0.0.1:17989"])
async def test_a_foreign_origin_is_refused_and_says_nothing(api: Api, origin: str) -> None:
    answer = await api.post(MESSAGES, {"text": "hi"}, {"Origin": origin})
    assert problem_of(answer) == (403, "foreign_origin")
    assert api.chat is not None
    assert not api.chat.sent


@pytest.mark.parametrize("host", ["bots.example.org", "bots.example.org:443"])
async def test_a_proxy_named_in_the_origins_is_let_through(house: House, host: str) -> None:
    await fill(house)
    api = Api(house, Access(origins=("https://Bots.example.org/",)))
    assert (await api.get(ENTRIES, {"Host": host, "Origin": "https://bots.example.org"})).status_code == 200
    assert problem_of(await api.get(ENTRIES, {"Host": "bots.example.org:8080"})) == (403, "foreign_host")
    assert problem_of(await api.get(ENTRIES, {"Origin": "http://bots.example.org"})) == (403, "foreign_origin")


async def test_two_hosts_are_none(api: Api) -> None:
    async with api.client() as client:
        request = client.build_request("GET", "/healthz")
        request.headers = httpx.Headers([("Host", "127.0.0.1:17989"), ("Host", "127.0.0.1:17989")])
        assert problem_of(await client.send(request)) == (403, "foreign_host")


@pytest.mark.parametrize("key", ["the-operator", "the-runtime"])
async def test_either_token_reads_and_speaks(house: House, key: str) -> None:
    await fill(house)
    api = Api(house, KEYS)
    shown = {"Authorization": f"Bearer {key}"}
    assert (await api.get(ENTRIES, shown)).status_code == 200
    assert (await api.post(MESSAGES, {"text": "hi"}, shown)).status_code == 200


@pytest.mark.parametrize("shown", [None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic the-operator", "the-operator"])
@pytest.mark.parametrize("path", [ENTRIES, "/openapi.json", "/v1/nowhere"])
async def test_without_a_right_token_nothing_is_said_where_one_is_set(
    house: House, shown: str | None, path: str
) -> None:
    answer = await Api(house, KEYS).get(path, {} if shown is None else {"Authorization": shown})
    assert problem_of(answer) == (401, "unauthorized")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert "the-operator" not in answer.text
    assert "the-operator" not in repr(KEYS)


async def test_a_wrong_token_is_refused_also_where_none_is_needed(api: Api) -> None:
    assert problem_of(await api.get(ENTRIES, {"Authorization": "Bearer wrong"})) == (401, "unauthorized")
    assert problem_of(await api.get(ENTRIES, {"Authorization": "Bearer "})) == (401, "unauthorized")


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_health_needs_no_token(house: House, path: str) -> None:
    assert (await Api(house, KEYS).get(path)).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "application/jsonp"])
async def test_a_write_that_is_not_declared_as_json_is_refused(api: Api, kind: str) -> None:
    async with api.client() as client:
        answer = await client.post(MESSAGES, content=b'{"text": "hi"}', headers={"Content-Type": kind})
    assert problem_of(answer) == (415, "unsupported_media_type")


async def test_json_may_name_its_charset(api: Api) -> None:
    async with api.client() as client:
        kind = {"Content-Type": "Application/JSON; charset=utf-8"}
        assert (await client.post(MESSAGES, content=b'{"text": "hi"}', headers=kind)).status_code == 200


async def test_a_body_that_is_too_large_is_refused_declared_or_not(api: Api) -> None:
    async def endless():
        while True:
            yield b" " * 65536

    async with api.client(**{"Content-Type": "application/json"}) as client:
        assert problem_of(await client.post(MESSAGES, content=b" " * (MOST_JSON + 1))) == (413, "too_large")
        assert problem_of(await client.post(MESSAGES, content=endless())) == (413, "too_large")
        uploads = f"/v1/session/{SESSION}/resources/artifacts/tool"
        assert problem_of(await client.post(uploads, content=endless())) == (413, "too_large")
        declared = {"Content-Length": str(MOST_UPLOADED + 1)}
        assert problem_of(await client.post(uploads, content=b"", headers=declared)) == (413, "too_large")
