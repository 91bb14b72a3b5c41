"""The runtime over HTTP, against a runtime that listens on loopback."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from email.utils import formatdate
from typing import Any

import aiohttp
import pytest
from msgspec import Raw

from bots.sandbox.runtime import RuntimeSandbox, Turn
from core.backoff import retry_after
from core.chat.speak import Speaker
from core.errors import RuntimeCallError, RuntimeRefused, RuntimeUnavailable
from core.gateway import Gateway
from core.health import Health
from core.ids import EntryId, TurnId
from core.runtime.deliver import Deliver
from core.runtime.http import HttpRuntime, read_answer
from core.runtime.port import Cause
from core.runtime.turns import Turns
from core.wake import WakeRules
from tests.builders import SESSION, mention, said
from tests.conftest import House, Until
from tests.fakes import FakeChat

NOW = 10**15


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as client:
        yield client


async def test_a_message_goes_to_the_runtime_and_its_answer_to_the_chat(
    house: House, client: aiohttp.ClientSession, until: Until
) -> None:
    async def think(turn: Turn) -> dict[str, Any]:
        return {"reply": f"{turn.rule}: {turn.cause['data']['data']['content']}", "seen": turn.cause["id"]}

    chat, health = FakeChat(), Health("runtime")
    async with RuntimeSandbox(think) as server:
        server.fail("/deliver", 503, times=2, headers={"Retry-After": "0"})
        runtime = HttpRuntime(client, server.url + "/", server.token)
        deliver = Deliver(runtime, house.store, house.store, health)
        speaker = Speaker(house.sessions, lambda _: chat, house.store, _no_file)
        turns = Turns(runtime, deliver, speaker, house.store, WakeRules.parse("mention"))
        gateway = Gateway(house.sessions, [deliver, turns], house.store)
        await gateway.start()
        await house.sessions.of(SESSION).append([said(1, "tea?", at=NOW), said(2, mention("yes"), at=NOW)])
        await until(lambda: chat.sent)
        await gateway.stop()
        assert chat.sent[0].text.startswith("mention: ")
        refused, taken = server.calls[1], server.calls[2]
        assert (refused.status, taken.status) == (503, 204)
        assert (refused.body, refused.key) == (taken.body, taken.key)
        assert taken.key == taken.body["entries"][-1]["id"]
        assert taken.body["trigger"] is False
        assert taken.body["sessionId"] == SESSION
        assert health.ready


async def _no_file(_session: object, url: str) -> Any:
    raise AssertionError(url)


@pytest.mark.parametrize("status", [400, 409, 410, 413, 422])
async def test_these_answers_refuse_a_body_for_good(client: aiohttp.ClientSession, status: int) -> None:
    async with RuntimeSandbox() as server:
        server.fail("/deliver", status)
        with pytest.raises(RuntimeRefused) as refused:
            await HttpRuntime(client, server.url, server.token).deliver(SESSION, [b"{}"], key=EntryId("a"))
        assert refused.value.too_large == (status == 413)


@pytest.mark.parametrize("status", [301, 401, 403, 404, 408, 425, 429, 500, 503])
async def test_every_other_answer_may_change(client: aiohttp.ClientSession, status: int) -> None:
    async with RuntimeSandbox() as server:
        server.fail("/deliver", status, headers={"Retry-After": "7", "Location": "http://127.0.0.1:1/"})
        with pytest.raises(RuntimeUnavailable) as unavailable:
            await HttpRuntime(client, server.url, server.token).deliver(SESSION, [b"{}"], key=EntryId("a"))
        assert unavailable.value.retry_after == 7


async def test_a_runtime_that_is_not_there_is_named_without_its_address(client: aiohttp.ClientSession) -> None:
    with pytest.raises(RuntimeUnavailable) as unavailable:
        await HttpRuntime(client, "http://127.0.0.1:1", "t0ken").deliver(SESSION, [b"{}"], key=EntryId("a"))
    assert "127.0.0.1" not in str(unavailable.value)


async def test_an_answer_of_another_shape_is_a_failed_call(client: aiohttp.ClientSession) -> None:
    async def think(_turn: Turn) -> Any:
        return {"reply": 5}

    async with RuntimeSandbox(think) as server:
        runtime = HttpRuntime(client, server.url, server.token)
        await runtime.deliver(SESSION, [json.dumps({"id": "a"}).encode()], key=EntryId("a"))
        with pytest.raises(RuntimeCallError, match="cannot be read"):
            await runtime.wake(SESSION, TurnId("t"), Cause(EntryId("a"), "direct"))


def test_an_answer_is_read_as_generously_as_runtimes_write_it() -> None:
    assert read_answer(b"").reply is None
    assert read_answer(b'\xef\xbb\xbf{"reply":"hi"}').reply == "hi"
    assert read_answer(b'{"reply":"cut \\ud83d","entries":null}').reply == "cut ?"
    assert read_answer(b'{"reply":null,"entries":[{"a":"\\ud83d"}],"zzz":[]}').entries == (Raw(b'{"a":"\\ud83d"}'),)
    for nonsense in (
        b"[",
        b"[1]",
        b'{"reply":' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"entries":{}}',
        b'{"entries":[NaN]}',
        b"\xff",
    ):
        with pytest.raises(RuntimeCallError, match="cannot be read"):
            read_answer(nonsense)


async def test_a_wake_that_is_given_up_hangs_up(client: aiohttp.ClientSession, until: Until) -> None:
    ended = asyncio.Event()

    async def think(_turn: Turn) -> Any:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    async with RuntimeSandbox(think) as server:
        runtime = HttpRuntime(client, server.url, server.token)
        await runtime.deliver(SESSION, [json.dumps({"id": "a"}).encode()], key=EntryId("a"))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await runtime.wake(SESSION, TurnId("t"), Cause(EntryId("a"), "direct"))
        await until(ended.is_set)


def test_a_time_to_wait_is_read_as_seconds_or_as_a_date() -> None:
    assert retry_after({"Retry-After": "1.5"}) == 1.5
    assert retry_after({"Retry-After": "-3"}) == 0
    assert retry_after({"Retry-After": "999999"}) == 3600
    assert 8 < (retry_after({"Retry-After": formatdate(time.time() + 10, usegmt=True)}) or 0) <= 10
    for nonsense in ("", "soon", "nan", "inf"):
        assert retry_after({"Retry-After": nonsense}) is None
