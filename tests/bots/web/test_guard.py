"""Who may ask: Host, Origin, bearer, content type, size, rate and time."""

import asyncio
import json

import httpx
import pytest

from bots.web import connection, guard
from bots.web.guard import MOST_JSON, MOST_UPLOADED, Access
from bots.web.rates import MOST_CALLERS, Rates, neighbourhood
from core.health import Health
from tests.bots.web.api import Api, fill, problem_of
from tests.bots.web.serving import served
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


# --- how often, how long, and as what ---------------------------------------------------------------------------------


async def test_who_asks_too_often_is_told_when_to_ask_again_and_nobody_else_is(house: House) -> None:
    await fill(house)
    api = Api(house, Access(token="the-operator", runtime_token="the-runtime", rate=1))
    shown, other = {"Authorization": "Bearer the-operator"}, {"Authorization": "Bearer the-runtime"}
    answers = [await api.get(ENTRIES, shown) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200] * 4 + [429]
    assert problem_of(answers[-1]) == (429, "too_many_requests")
    assert answers[-1].headers["retry-after"] == "1"
    assert (await api.get(ENTRIES, other)).status_code == 200
    assert problem_of(await api.get(ENTRIES, {"Authorization": "Bearer guess"})) == (401, "unauthorized")


async def test_guesses_at_the_token_are_slowed_down_and_do_not_lock_out_who_has_it(house: House) -> None:
    await fill(house)
    api = Api(house, KEYS)
    guesses = [(await api.get(ENTRIES, {"Authorization": f"Bearer {number}"})).status_code for number in range(60)]
    assert guesses[:40] == [401] * 40
    assert guesses[-1] == 429
    assert (await api.get(ENTRIES, {"Authorization": "Bearer the-operator"})).status_code == 200


async def test_without_a_limit_nobody_waits(house: House) -> None:
    await fill(house)
    api = Api(house, Access(rate=0))
    assert {(await api.get(ENTRIES)).status_code for _ in range(50)} == {200}


def test_a_bucket_fills_again_with_time_and_memory_is_bounded() -> None:
    now = 0.0
    rates = Rates(10, 20, clock=lambda: now)
    assert [rates.wait("a") for _ in range(20)] == [0.0] * 20
    assert rates.wait("a") == pytest.approx(0.1)
    assert rates.wait("b") == 0.0
    now = 1.0
    assert [rates.wait("a") for _ in range(11)][-2:] == [0.0, pytest.approx(0.1)]
    for number in range(2 * MOST_CALLERS):
        rates.wait(str(number))
    assert len(rates._full_at) == MOST_CALLERS  # pyright: ignore[reportPrivateUsage] - nothing else shows it


@pytest.mark.parametrize(
    ("address", "counts_as"),
    [("10.0.0.7", "10.0.0.7"), ("::ffff:10.0.0.7", "10.0.0.7"), ("2001:db8::1:2", "2001:db8::/64"), ("unix", "unix")],
)
def test_of_ipv6_the_network_counts(address: str, counts_as: str) -> None:
    assert neighbourhood(address) == counts_as


async def test_a_head_is_a_get_without_its_body(api: Api) -> None:
    async with served(api.app) as client:
        answer = await client.head(ENTRIES)
        assert (answer.status_code, answer.content) == (200, b"")
        assert (await client.head("/healthz")).status_code == 200
        answer = await client.head(f"/v1/session/{SESSION}/stream")
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET")


async def test_another_method_is_405_and_names_all_that_there_are(api: Api) -> None:
    async with api.client() as client:
        answer = await client.put(f"/v1/session/{SESSION}")
        assert problem_of(answer) == (405, "method_not_allowed")
        assert answer.headers["allow"] == "DELETE, GET, PATCH"
        answer = await client.request("TRACE", f"/v1/session/{SESSION}/pending/x")
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST")


@pytest.mark.parametrize("path", [f"{ENTRIES}?limt=5", "/v1/sessions?all", "/healthz?x=1", f"{ENTRIES}?after=&x"])
async def test_a_parameter_that_is_misspelt_is_told(api: Api, path: str) -> None:
    assert problem_of(await api.get(path)) == (400, "invalid_request")


@pytest.mark.parametrize(
    "raw",
    [
        b'{"text": "a", "text": "b"}',
        b'{"text": NaN}',
        b'{"text": -Infinity}',
        b'{"text": "\xff"}',
        b"\xff\xfe{\x00}\x00",
        b'{"text": ' + b"9" * 5000 + b"}",
        b'{"text": ' + b"[" * 100_000,
        b'{"text": "a"} {}',
    ],
)
async def test_what_is_no_json_is_400(api: Api, raw: bytes) -> None:
    async with api.client(**{"Content-Type": "application/json"}) as client:
        assert problem_of(await client.post(MESSAGES, content=raw)) == (400, "invalid_request")
    assert api.chat is not None
    assert not api.chat.sent


# --- over real sockets ------------------------------------------------------------------------------------------------


async def said_back(client: httpx.AsyncClient, *pieces: bytes, pause: float = 0.0) -> bytes:
    """What a server says to bytes on a connection of their own, until it hangs up."""
    reader, writer = await asyncio.open_connection(client.base_url.host, client.base_url.port)
    for piece in pieces:
        writer.write(piece)
        await asyncio.sleep(pause)
    async with asyncio.timeout(10):
        told = await reader.read()
    writer.close()
    return told


async def test_a_head_that_is_too_large_or_no_http_is_400_in_our_form(api: Api) -> None:
    async with served(api.app) as client:
        for head in (b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000, b"what is this\r\n\r\n"):
            told = await said_back(client, head)
            assert told.startswith(b"HTTP/1.1 400 ")
            assert json.loads(told.partition(b"\r\n\r\n")[2])["error"]["code"] == "bad_request"


async def test_who_says_nothing_or_says_it_too_slowly_is_hung_up_on(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_WITHIN", 0.3)
    async with served(api.app) as client:
        assert await said_back(client) == b""
        assert await said_back(client, b"GET / HT", b"TP/1", pause=0.1) == b""


async def test_a_body_that_takes_too_long_is_408(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "JSON_WITHIN", 0.3)
    monkeypatch.setattr(guard, "DISCARD_WITHIN", 0.1)
    async with served(api.app) as client:
        host = client.base_url.netloc.decode()
        head = (
            f"POST {MESSAGES} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n"
        )
        told = await said_back(client, head.encode(), b'{"te')
    assert told.startswith(b"HTTP/1.1 408 ")
    assert json.loads(told.partition(b"\r\n\r\n")[2])["error"]["code"] == "too_slow"
