"""A session as it grows, over real sockets."""

import asyncio
import json
import random
import socket

import httpx
import pytest
from fastapi import FastAPI

from bots.web.confirmations import OPERATOR
from bots.web.events import COMMENT, Events, EventStream, event
from bots.web.guard import Access
from bots.web.path import known_in
from bots.web.server import WebServer
from bots.web.stream import stream_routes
from bots.web.watching import MOST_UNTOLD, Watch, Watching
from core.ids import TaskHash, new_uuid
from tests.bots.web.api import Api, fill, problem_of
from tests.bots.web.serving import Reader, served
from tests.builders import SESSION, a_confirmation, a_task, said
from tests.conftest import House, Until

STREAM = f"/v1/session/{SESSION}/stream"


async def say(house: House, first: int, last: int | None = None) -> None:
    numbers = range(first, (last or first) + 1)
    await house.sessions.of(SESSION).append([said(number, f"message {number}") for number in numbers])


def numbers(reader: Reader) -> list[int]:
    return [int(event.json["data"]["data"]["messageId"]) for event in reader.of("entry")]


async def test_what_is_written_from_now_on_comes_as_it_is_on_disk(house: House, until: Until) -> None:
    await fill(house)
    api = Api(house)
    async with served(api.app) as client:
        reader = Reader(client, STREAM)
        await reader.opened.wait()
        await say(house, 2, 3)
        await until(lambda: len(reader.events) == 2)
        await reader.hang_up()
    lines = api.log.read_bytes().splitlines()[1:]
    assert [event.data.encode() for event in reader.events] == lines
    assert [event.number for event in reader.events] == [json.loads(line)["id"] for line in lines]


async def test_an_empty_after_is_from_the_beginning_and_an_id_goes_on_behind_it(house: House, until: Until) -> None:
    await fill(house, 5)
    api = Api(house)
    third = api.lines()[2]["id"]
    async with served(api.app) as client:
        asked: dict[str, tuple[dict[str, str], list[int]]] = {
            f"{STREAM}?after=": ({}, [1, 2, 3, 4, 5]),
            f"{STREAM}?after={third}": ({}, [4, 5]),
            f"{STREAM}?after=nonsense": ({"Last-Event-ID": third}, [4, 5]),
        }
        for path, (headers, wanted) in asked.items():
            reader = Reader(client, path, headers)
            await until(lambda reader=reader, wanted=wanted: numbers(reader) == wanted)
            await reader.hang_up()


async def test_an_unknown_id_is_404_as_is_an_unknown_session(house: House) -> None:
    await fill(house)
    api = Api(house)
    assert problem_of(await api.get(STREAM, {"Last-Event-ID": new_uuid()})) == (404, "unknown_entry")
    assert problem_of(await api.get(f"{STREAM}?after={new_uuid()}")) == (404, "unknown_entry")
    assert problem_of(await api.get(STREAM.replace(SESSION, "dc-77"))) == (404, "unknown_session")


@pytest.mark.parametrize("seed", range(3))
async def test_a_reader_that_comes_again_and_again_sees_each_entry_once(house: House, seed: int) -> None:
    """Under load, with connections that break at any moment, and the server stopped and begun anew meanwhile."""
    await fill(house)
    chance, wanted, seen = random.Random(seed), 400, list[str]()

    async def load() -> None:
        for number in range(2, wanted + 1):
            await say(house, number)
            await asyncio.sleep(0.002)

    writing = asyncio.create_task(load())
    api = Api(house)
    last = api.lines()[0]["id"]
    async with asyncio.timeout(60):
        while len(seen) < wanted - 1:
            async with served(api.app) as client:
                for _ in range(3):
                    reader = Reader(client, STREAM, {"Last-Event-ID": last})
                    await asyncio.sleep(chance.uniform(0.0, 0.2))
                    await reader.hang_up()
                    seen += [event.number or "" for event in reader.events]
                    last = seen[-1] if seen else last
    await writing
    assert seen == [line["id"] for line in api.lines()[1:]]


async def test_a_hundred_readers_of_a_session_are_told_all_of_it_and_leave_nothing_behind(
    house: House, until: Until
) -> None:
    await fill(house)
    api = Api(house)
    before = len(asyncio.all_tasks())
    limits = httpx.Limits(max_connections=None)
    async with served(api.app) as client:
        async with httpx.AsyncClient(base_url=client.base_url, trust_env=False, limits=limits, timeout=20) as many:
            readers = [Reader(many, STREAM) for _ in range(100)]
            for reader in readers:
                await reader.opened.wait()
            for number in range(2, 52):
                await say(house, number)
            await until(lambda: all(numbers(reader) == list(range(2, 52)) for reader in readers))
            for reader in readers:
                await reader.hang_up()
        await until(lambda: len(asyncio.all_tasks()) <= before + 3)


async def test_confirmations_are_told_as_they_are_asked_decided_and_closed(house: House, until: Until) -> None:
    await fill(house)
    api = Api(house)
    async with api.at_work(), served(api.app) as client:
        before = await api.desk.open(a_confirmation(a_task(1)))
        reader = Reader(client, STREAM)
        await until(lambda: reader.of("pending"))
        await api.desk.open(a_confirmation(a_task(2)))
        await api.desk.choose(a_task(2), "yes", OPERATOR)
        await api.desk.change(a_task(2), lambda record: record.with_(closed_at=5))
        await until(lambda: len(reader.of("pending")) >= 2 and "closed_at" in reader.of("pending")[-1].json)
        await reader.hang_up()
    told = [(event.json["task_hash"], event.json["status"]) for event in reader.of("pending")]
    assert told[0] == (a_task(1), "open")
    assert told[-1] == (a_task(2), "approved")
    assert all(event.number is None for event in reader.events)
    assert reader.events[0].json == before.document()


async def test_a_reader_that_lags_behind_keeps_the_newest_of_each_and_not_without_end(house: House) -> None:
    watch, record = Watch(), a_confirmation(a_task(1))
    watch.tell(record)
    watch.tell(record.with_(status="approved"))
    assert [told.status for told in watch.taken()] == ["approved"]
    for _ in range(MOST_UNTOLD + 1):
        watch.tell(record.with_(task_hash=TaskHash(new_uuid())))
    assert watch.ended


async def test_streams_end_cleanly_and_at_once_when_the_server_stops(house: House) -> None:
    await fill(house)
    server = WebServer(Api(house).app, "127.0.0.1", 0)
    await server.start()
    async with httpx.AsyncClient(base_url=server.address, trust_env=False) as client:
        reader = Reader(client, STREAM)
        await reader.opened.wait()
        async with asyncio.timeout(1.5):
            await server.stop()
        await reader.task  # which raises where the answer was cut off


async def test_a_stream_ends_when_its_session_is_removed(house: House) -> None:
    api = Api(house)
    session = (await api.post("/v1/send", {"content": "hi"})).json()["session_id"]
    key = {"Authorization": "Bearer k"}
    api.access = Access(token="k")
    api.app = api.build()
    async with served(api.app) as client:
        reader = Reader(client, f"/v1/session/{session}/stream?after=", key)
        await reader.opened.wait()
        assert (await client.delete(f"/v1/session/{session}", headers=key)).status_code == 204
        async with asyncio.timeout(5):
            await reader.task


async def test_an_idle_stream_says_that_it_is_there(house: House) -> None:
    await fill(house)
    api, app = Api(house), FastAPI()
    known, watching = known_in(house.sessions), Watching(house.sessions, api.desk)
    app.include_router(stream_routes(house.sessions, api.desk, watching, known, heartbeat=0.05))
    async with served(app) as client, client.stream("GET", STREAM) as response:
        chunks = response.aiter_bytes()
        async with asyncio.timeout(5):
            assert [await anext(chunks) for _ in range(4)] == [COMMENT] * 4


async def test_a_reader_that_takes_nothing_holds_no_memory_and_is_given_up(until: Until) -> None:
    asked: list[int] = []

    async def endless() -> Events:
        while True:
            asked.append(len(asked))
            yield b"x" * 1_000_000

    async with served(EventStream(endless(), patience=0.5)) as client:
        host, port = client.base_url.host, client.base_url.port or 0
        with socket.socket() as caller:
            caller.connect((host, port))
            caller.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            await until(lambda: _sending() == 1)
            await until(lambda: _sending() == 0)
    assert len(asked) < 20


def test_json_stays_the_same_json_whatever_ends_its_lines() -> None:
    framed = event("entry", b'{"a":\r\n1,\r"b":2}', number="7")
    assert framed == b'event: entry\nid: 7\ndata: {"a":\ndata: 1,\ndata: "b":2}\n\n'
    assert b"id:" not in event("entry", b"{}", number="a\nb")


def _sending() -> int:
    return sum(task.get_name().startswith("events ") for task in asyncio.all_tasks())
