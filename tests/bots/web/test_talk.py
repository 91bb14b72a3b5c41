"""Sessions without a platform: made, written to, and answered by the runtime."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec import Raw

from bots.web.guard import Access
from bots.web.server import WebServer
from core.archive.lineage import Lineage
from core.errors import RuntimeUnavailable
from core.ids import EntryId, SessionId, TaskHash, new_session, prefix_of, session_id
from core.runtime.port import Answer
from tests.bots.web.api import HOME, Api, fill, problem_of
from tests.bots.web.serving import Event, events_of, served
from tests.builders import SESSION
from tests.conftest import House, Until
from tests.fakes import FakeRuntime

UNKNOWN = "chat-3b1b9d0e-5a8d-4a0f-9b0e-2a3c4d5e6f70"


@pytest.fixture
async def api(house: House) -> AsyncIterator[Api]:
    """With a runtime that answers what a test puts into ``answers``."""
    await fill(house)
    api = Api(house, runtime=FakeRuntime())
    async with api.at_work():
        yield api


@pytest.fixture
async def deaf(house: House) -> Api:
    """Without a runtime."""
    await fill(house)
    return Api(house)


def runtime(api: Api) -> FakeRuntime:
    assert api.runtime is not None
    return api.runtime


def log(api: Api, session: str) -> list[dict[str, Any]]:
    path = api.house.folder / "runtimes" / session / "events.jsonl"
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def folders(api: Api) -> list[Path]:
    return sorted((api.house.folder / "runtimes").iterdir())


def a_call(*texts: str, **more: str) -> Raw:
    """An assistant entry that says something."""
    said = {"messages": list(texts), "mode": "markdown"} | more
    call = {"type": "tool-call", "toolCallId": "c", "toolName": "send_message", "input": said}
    other = {"type": "tool-call", "toolCallId": "d", "toolName": "look", "input": {"messages": ["unsaid"]}}
    content = [{"type": "text", "text": "thought"}, call, other]
    return Raw(json.dumps({"type": "message", "data": {"role": "assistant", "content": content}}).encode())


async def send(api: Api, content: str, **more: object) -> dict[str, Any]:
    answer = await api.post("/v1/send", {"content": content} | more)
    assert answer.status_code == 200
    assert set(answer.json()) == {"session_id", "text"}
    return answer.json()


# --- new sessions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [{}, {"prefix": "cli-"}])
async def test_a_new_session_is_a_terminals_and_can_be_asked_in_at_once(deaf: Api, body: object) -> None:
    answer = await deaf.post("/v1/session", body)
    session = session_id(answer.json()["session_id"])
    assert (answer.status_code, prefix_of(session)) == (200, "cli")
    assert deaf.house.sessions.folder(session).stat().st_mode & 0o777 == 0o700
    asked = await deaf.post(f"/v1/session/{session}/confirm", {"tool": "t"})
    assert asked.status_code == 202
    assert (await deaf.get(f"/v1/session/{session}/entries")).content == b""


@pytest.mark.parametrize("body", [{"prefix": "dc-"}, {"prefix": "temp-"}, {"prefix": "cli"}, {"name": "x"}, [], "cli-"])
async def test_no_other_kind_of_session_is_made_empty(deaf: Api, body: object) -> None:
    before = folders(deaf)
    assert problem_of(await deaf.post("/v1/session", body)) == (400, "invalid_request")
    assert folders(deaf) == before


async def test_sessions_outlive_a_restart(deaf: Api) -> None:
    session = (await deaf.post("/v1/session", {})).json()["session_id"]
    await deaf.house.reopen()
    assert (await Api(deaf.house).get(f"/v1/session/{session}/pending")).status_code == 200


# --- without a runtime ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("more", "prefix"), [({}, "temp"), ({"persist": True}, "chat"), ({"persist": False}, "temp")])
async def test_a_line_without_a_session_begins_one(deaf: Api, more: dict[str, object], prefix: str) -> None:
    answer = await send(deaf, "hi <b>& all", **more)
    assert (prefix_of(SessionId(answer["session_id"])), answer["text"]) == (prefix, "")
    [line] = log(deaf, answer["session_id"])
    assert (line["type"], line["data"]["role"], line["data"]["content"]) == ("message", "user", "hi <b>& all")
    assert line["id"] != line["data"]["id"]
    assert "turnId" not in line


async def test_a_line_goes_on_in_a_session_that_is_there(deaf: Api) -> None:
    first = await send(deaf, "one")
    assert await send(deaf, "two", session_id=first["session_id"]) == first
    assert [line["data"]["content"] for line in log(deaf, first["session_id"])] == ["one", "two"]


@pytest.mark.parametrize("session", [SESSION, "dc-77", "tg-5"])
async def test_a_chat_of_a_platform_is_not_written_to(deaf: Api, session: str) -> None:
    before = deaf.lines()
    assert problem_of(await deaf.post("/v1/send", {"content": "hi", "session_id": session})) == (409, "not_here")
    assert deaf.lines() == before


@pytest.mark.parametrize("session", [UNKNOWN, "chat-1", "", "..", "chat-\ud800"])
@pytest.mark.parametrize("member", ["session_id", "origin"])
async def test_an_unknown_session_or_origin_is_404_and_nothing_is_made(deaf: Api, session: str, member: str) -> None:
    before = folders(deaf)
    body = json.dumps({"content": "hi", member: session}).encode()
    async with deaf.client(**{"Content-Type": "application/json"}) as client:
        assert (await client.post("/v1/send", content=body)).status_code == 404
    assert folders(deaf) == before


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"content": ""},
        {"content": " \n"},
        {"content": ["hi"]},
        {"content": 5},
        {"content": "hi", "persist": "yes"},
        {"content": "hi", "session_id": 5},
        {"content": "hi", "stream": True},
        {"text": "hi"},
    ],
)
async def test_a_line_that_is_not_clear_is_400_and_nothing_is_made(deaf: Api, body: object) -> None:
    before = folders(deaf)
    assert problem_of(await deaf.post("/v1/send", body)) == (400, "invalid_request")
    assert folders(deaf) == before


async def test_half_a_character_is_400(deaf: Api) -> None:
    async with deaf.client(**{"Content-Type": "application/json"}) as client:
        assert problem_of(await client.post("/v1/send", content=b'{"content": "\\ud800"}'))[0] == 400


async def test_the_runtimes_token_may_talk_too(house: House) -> None:
    api = Api(house, Access(token="the-operator", runtime_token="the-runtime"))
    shown = {"Authorization": "Bearer the-runtime"}
    assert (await api.post("/v1/session", {}, shown)).status_code == 200
    assert (await api.post("/v1/send", {"content": "hi"}, shown)).status_code == 200
    assert (await api.post("/v1/send", {"content": "hi"})).status_code == 401


# --- where the work began ---------------------------------------------------------------------------------------------


async def test_what_a_helper_asks_is_shown_where_its_work_began_also_after_a_restart(deaf: Api) -> None:
    helper = (await send(deaf, "look it up", origin=SESSION))["session_id"]
    await deaf.house.reopen()
    later = Api(deaf.house)
    later.lineage = await Lineage.load(deaf.house.store)
    later.app = later.build()
    assert (await later.post(f"/v1/session/{helper}/confirm", {"tool": "t"})).status_code == 202
    [record] = (await later.get(f"/v1/session/{SESSION}/pending")).json()["pending"]
    assert (record["session_id"], record["origin"], record["deliver_to"]) == (helper, SESSION, SESSION)


async def test_a_helpers_helper_asks_there_too(deaf: Api) -> None:
    helper = (await send(deaf, "look it up", origin=SESSION))["session_id"]
    second = (await send(deaf, "you, look it up", origin=helper))["session_id"]
    await deaf.post(f"/v1/session/{second}/confirm", {"tool": "t"})
    [record] = (await deaf.get(f"/v1/session/{second}/pending")).json()["pending"]
    assert (record["origin"], record["deliver_to"]) == (SESSION, SESSION)
    assert await send(deaf, "and?", session_id=second, origin=helper)


async def test_only_a_new_session_is_given_an_origin(deaf: Api) -> None:
    helper = (await send(deaf, "look it up", origin=SESSION))["session_id"]
    assert (await send(deaf, "and?", session_id=helper, origin=SESSION))["session_id"] == helper
    other = (await send(deaf, "hi"))["session_id"]
    for session, origin in ((other, SESSION), (helper, other)):
        body = {"content": "hi", "session_id": session, "origin": origin}
        assert problem_of(await deaf.post("/v1/send", body)) == (409, "other_origin")
        assert deaf.lineage.origin(SessionId(other)) == other


# --- with a runtime ---------------------------------------------------------------------------------------------------


async def test_the_runtime_answers_what_was_said(api: Api) -> None:
    runtime(api).answers = [Answer(reply="**hello**"), Answer(reply="again")]
    first = await send(api, "hi")
    assert first["text"] == "**hello**"
    assert (await send(api, "hi", session_id=first["session_id"]))["text"] == "again"
    kinds = [line["data"].get("role") or line["data"]["type"] for line in log(api, first["session_id"])]
    assert kinds == ["user", "turn.start", "assistant", "tool", "turn.done"] * 2
    assert {session for session, _, _ in runtime(api).delivered} == {SESSION, first["session_id"]}


async def test_all_that_its_calls_said_is_the_text_and_nothing_else(api: Api) -> None:
    entries = (a_call("one", "two"), a_call("<b>three</b> &amp; four", mode="element"), a_call("x", messages="five"))
    runtime(api).answers = [Answer(reply="six", entries=entries)]
    assert (await send(api, "hi"))["text"] == "one\n\ntwo\n\nthree & four\n\nsix"


async def test_a_runtime_that_says_nothing_has_said_nothing(api: Api) -> None:
    assert (await send(api, "hi"))["text"] == ""


async def test_a_failed_turn_is_502_and_names_the_session(api: Api) -> None:
    runtime(api).answers = [RuntimeUnavailable("the runtime answered 500")]
    answer = await api.post("/v1/send", {"content": "hi", "persist": True})
    assert problem_of(answer, "session_id") == (502, "turn_failed")
    assert "the runtime answered 500" in answer.json()["error"]["message"]
    assert log(api, answer.json()["session_id"])[-1]["data"]["type"] == "turn.failed"


async def test_a_turn_that_was_stopped_has_said_nothing(api: Api, until: Until) -> None:
    runtime(api).holding = asyncio.Event()
    sending = asyncio.create_task(send(api, "hi"))
    await until(lambda: runtime(api).woken)
    assert api.turns is not None
    api.turns.stop(*runtime(api).woken[0][:2], TaskHash("00000000-0000-4000-8000-000000000001"))
    assert (await asyncio.wait_for(sending, 5))["text"] == ""


async def test_a_line_during_a_turn_belongs_to_it_and_is_answered_by_the_next(api: Api, until: Until) -> None:
    runtime(api).holding = holding = asyncio.Event()
    runtime(api).answers = [Answer(reply="to one"), Answer(reply="to two")]
    session = new_session("cli")
    await api.house.sessions.create(session)
    one = asyncio.create_task(send(api, "one", session_id=session))
    await until(lambda: runtime(api).woken)
    two = asyncio.create_task(send(api, "two", session_id=session))
    await until(lambda: len(log(api, session)) == 3)
    holding.set()
    assert [(await task)["text"] for task in (one, two)] == ["to one", "to two"]
    assert log(api, session)[2]["turnId"] == runtime(api).woken[0][1]


async def test_a_line_that_the_running_turn_has_seen_is_answered_by_it(api: Api, until: Until) -> None:
    runtime(api).holding = holding = asyncio.Event()
    session = new_session("chat")
    await api.house.sessions.create(session)
    one = asyncio.create_task(send(api, "one", session_id=session))
    await until(lambda: runtime(api).woken)
    two = asyncio.create_task(send(api, "two", session_id=session))
    await until(lambda: len(log(api, session)) == 3)
    runtime(api).answers = [Answer(reply="to both", seen=EntryId(log(api, session)[2]["id"]))]
    holding.set()
    assert [(await task)["text"] for task in (one, two)] == ["to both", "to both"]
    assert len(runtime(api).woken) == 1


async def test_two_sessions_are_answered_side_by_side(api: Api) -> None:
    runtime(api).answers = [Answer(reply=str(number)) for number in range(10)]
    answers = await asyncio.gather(*(send(api, "hi") for _ in range(10)))
    assert {answer["text"] for answer in answers} == {str(number) for number in range(10)}
    assert len({answer["session_id"] for answer in answers}) == 10


# --- an answer in events ----------------------------------------------------------------------------------------------


@asynccontextmanager
async def telling(api: Api, body: dict[str, object]) -> AsyncGenerator[tuple[str, AsyncIterator[Event]]]:
    """The session of an answer in events, and the events, over real sockets."""
    async with served(api.app) as client, client.stream("POST", "/v1/send", json={"sse": True, **body}) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield answer.headers["ishiki-session"], events_of(answer)


async def test_the_lines_of_an_answer_come_as_they_are_written_and_then_what_they_say(api: Api, until: Until) -> None:
    runtime(api).holding = holding = asyncio.Event()
    runtime(api).answers = [Answer(reply="two", entries=(a_call("one"),))]
    async with telling(api, {"content": "hi", "persist": True}) as (session, events):
        first = await anext(events)
        assert (first.kind, first.json["data"]["type"]) == ("entry", "turn.start")
        holding.set()
        rest = [event async for event in events]
    raw = (api.house.folder / "runtimes" / session / "events.jsonl").read_bytes().splitlines()[1:]
    assert [event.data.encode() for event in (first, *rest[:-1])] == raw
    assert [event.number for event in (first, *rest[:-1])] == [line["id"] for line in log(api, session)[1:]]
    assert (rest[-1].kind, rest[-1].number) == ("done", None)
    assert rest[-1].json == {"session_id": session, "text": "one\n\ntwo"}


async def test_without_a_runtime_there_is_only_done(deaf: Api) -> None:
    async with telling(deaf, {"content": "hi"}) as (session, events):
        [done] = [event async for event in events]
    assert (done.kind, done.json) == ("done", {"session_id": session, "text": ""})


async def test_a_failed_turn_ends_the_events_with_an_error(api: Api) -> None:
    runtime(api).answers = [RuntimeUnavailable("the runtime answered 500")]
    async with telling(api, {"content": "hi"}) as (session, events):
        told = [event async for event in events]
    assert [event.kind for event in told] == ["entry", "entry", "error"]
    assert told[-1].json["session_id"] == session
    assert told[-1].json["error"]["code"] == "turn_failed"


async def test_what_people_say_meanwhile_is_no_line_of_the_answer(api: Api, until: Until) -> None:
    runtime(api).holding = holding = asyncio.Event()
    runtime(api).answers = [Answer(reply="to one"), Answer(reply="to two")]
    async with telling(api, {"content": "one"}) as (session, events):
        await until(lambda: runtime(api).woken)
        two = asyncio.create_task(send(api, "two", session_id=session))
        await until(lambda: len(log(api, session)) == 3)
        holding.set()
        told = [event async for event in events]
    assert told[-1].json["text"] == "to one"
    assert all(event.json["data"].get("role") != "user" for event in told[:-1])
    assert (await two)["text"] == "to two"


async def test_who_hangs_up_while_being_told_ends_no_turn(api: Api, until: Until) -> None:
    runtime(api).holding = holding = asyncio.Event()
    runtime(api).answers = [Answer(reply="still")]
    async with telling(api, {"content": "hi"}) as (session, events):
        await anext(events)
    holding.set()
    await until(lambda: log(api, session)[-1]["data"].get("type") == "turn.done")
    assert not [task for task in asyncio.all_tasks() if task.get_name() in {"answer awaited", "events /v1/send"}]


async def test_a_stop_ends_the_events_with_an_error_that_says_so(api: Api) -> None:
    runtime(api).holding = asyncio.Event()
    server = WebServer(api.app, "127.0.0.1", 0)
    await server.start()
    async with (
        httpx.AsyncClient(base_url=server.address, trust_env=False) as client,
        client.stream("POST", "/v1/send", json={"content": "hi", "sse": True}) as answer,
    ):
        events = events_of(answer)
        await anext(events)
        stopping = asyncio.create_task(server.stop())
        told = [event async for event in events]
        await stopping
    assert told[-1].json["error"]["code"] == "stopping"


async def test_what_is_refused_is_no_event(deaf: Api) -> None:
    answer = await deaf.post("/v1/send", {"content": "hi", "sse": True, "session_id": UNKNOWN})
    assert problem_of(answer) == (404, "unknown_session")


# --- whoever hangs up -------------------------------------------------------------------------------------------------


async def test_nobody_waits_for_an_answer_when_the_caller_has_hung_up(api: Api, until: Until) -> None:
    runtime(api).holding = holding = asyncio.Event()
    body, gone = b'{"content": "hi"}', asyncio.Event()
    incoming = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        if incoming:
            return incoming.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def told(_message: object) -> None:
        pass

    headers = httpx.Headers({"Host": HOME.removeprefix("http://"), "Content-Type": "application/json"})
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/send",
        "query_string": b"",
        "headers": [(name.lower(), value) for name, value in headers.raw],
        "server": ("127.0.0.1", 17989),
    }
    call = asyncio.create_task(api.app(scope, receive, told))  # pyright: ignore[reportArgumentType] - an ASGI call by hand
    await until(lambda: runtime(api).woken)
    gone.set()
    await asyncio.wait_for(call, 5)
    holding.set()
    session = runtime(api).woken[0][0]
    await until(lambda: log(api, session)[-1]["data"].get("type") == "turn.done")


async def test_the_description_names_what_sending_answers(deaf: Api) -> None:
    paths = (await deaf.get("/openapi.json")).json()["paths"]
    assert {"200", "400", "404", "409", "502", "503"} <= set(paths["/v1/send"]["post"]["responses"])
    assert {"200", "400", "503"} <= set(paths["/v1/session"]["post"]["responses"])
