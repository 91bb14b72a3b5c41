"""Which sessions there are, and what they are called."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bots.web.guard import Access
from core.archive.profiles import Profiles
from core.ids import SessionId, discord_session, new_session
from tests.bots.web.api import Api, fill, problem_of
from tests.builders import SESSION, a_confirmation, a_task
from tests.conftest import House, Until
from tests.fakes import FakeRuntime

KEYS = Access(token="the-operator", runtime_token="the-runtime")
OPERATOR = {"Authorization": "Bearer the-operator"}
RUNTIME = {"Authorization": "Bearer the-runtime"}
HERE = f"/v1/session/{SESSION}"


@pytest.fixture
async def api(house: House) -> AsyncIterator[Api]:
    await fill(house)
    api = Api(house, KEYS, runtime=FakeRuntime())
    async with api.at_work():
        yield api


async def listed(api: Api, filter: str = "") -> list[dict[str, Any]]:  # noqa: A002 - as in the contract
    answer = await api.get(f"/v1/sessions{filter}", OPERATOR)
    assert answer.status_code == 200
    assert set(answer.json()) == {"sessions"}
    return answer.json()["sessions"]


async def patch(api: Api, body: object, session: str = SESSION, shown: dict[str, str] = OPERATOR) -> Any:
    async with api.client(**shown) as client:
        return await client.patch(f"/v1/session/{session}", json=body)


async def made(api: Api, **body: object) -> str:
    path = "/v1/send" if body else "/v1/session"
    return (await api.post(path, body, OPERATOR)).json()["session_id"]


# --- looking ----------------------------------------------------------------------------------------------------------


async def test_a_session_is_listed_with_what_is_known_of_it(api: Api) -> None:
    await Profiles(api.house.store).entitle(SESSION, "#general")
    await api.desk.open(a_confirmation(a_task(1)))
    [row] = await listed(api)
    at, created = row.pop("last_at"), row.pop("created_at")
    assert abs(at / 1000 - time.time()) < 60
    assert abs(created / 1000 - time.time()) < 60
    assert row == {
        "session_id": SESSION,
        "name": "#general",
        "self_id": "",
        "platform": "discord",
        "active": False,
        "turn_id": None,
        "open": 1,
    }


async def test_a_filter_names_those_that_stay_those_that_do_not_and_those_at_work(api: Api, until: Until) -> None:
    assert api.runtime is not None
    cli, chat = await made(api), await made(api, content="hi", persist=True)
    api.runtime.holding = holding = asyncio.Event()
    asked = asyncio.create_task(api.post("/v1/send", {"content": "hi"}, OPERATOR))
    await until(lambda: api.runtime and len(api.runtime.woken) == 2)
    temp, turn, _ = api.runtime.woken[1]
    names = {filter: {row["session_id"] for row in await listed(api, f"?filter={filter}")} for filter in FILTERS}  # noqa: A001 - as in the contract
    assert names == {
        "all": {SESSION, cli, chat, temp},
        "permanent": {SESSION, cli, chat},
        "temporary": {temp},
        "active": {temp},
    }
    [row] = await listed(api, "?filter=active")
    assert (row["active"], row["turn_id"], row["platform"], row["name"]) == (True, turn, None, temp)
    holding.set()
    await asked
    await until(lambda: api.turns and not api.turns.running())


FILTERS = ("all", "permanent", "temporary", "active")


async def test_the_newest_activity_comes_first(api: Api) -> None:
    await asyncio.sleep(0.02)
    chat = await made(api, content="hi", persist=True)
    assert [row["session_id"] for row in await listed(api)] == [chat, SESSION]


@pytest.mark.parametrize("query", ["?filter=some", "?filter=", "?fitler=all"])
async def test_another_filter_is_400(api: Api, query: str) -> None:
    assert problem_of(await api.get(f"/v1/sessions{query}", OPERATOR)) == (400, "invalid_request")


async def test_ten_thousand_sessions_are_listed_in_a_moment_that_holds_nobody_up(api: Api) -> None:
    for number in range(10_000):
        (api.house.folder / "runtimes" / f"dc-{number}").mkdir()
    started, busy = time.perf_counter(), time.thread_time()
    assert len(await listed(api)) == 10_001
    assert time.perf_counter() - started < 10
    assert time.thread_time() - busy < 0.5  # of the loop's own thread, with what this test does to read the answer


async def test_one_session_is_shown_with_how_it_is_set_up(api: Api) -> None:
    answer = await api.get(HERE, RUNTIME)
    assert answer.status_code == 200
    assert {name: answer.json()[name] for name in ("persona", "model", "reasoning", "successor", "origin")} == {
        "persona": "",
        "model": "auto",
        "reasoning": "medium",
        "successor": None,
        "origin": None,
    }
    helper = await made(api, content="look it up", origin=SESSION)
    assert (await api.get(f"/v1/session/{helper}", RUNTIME)).json()["origin"] == SESSION
    assert problem_of(await api.get("/v1/session/dc-77", OPERATOR)) == (404, "unknown_session")


# --- changing ---------------------------------------------------------------------------------------------------------


async def test_what_is_given_is_changed_and_stays_over_a_restart(api: Api) -> None:
    given = {"name": "Films", "self_id": "films", "persona": "You are\nbrief.", "model": "m", "reasoning": "high"}
    answer = await patch(api, given)
    assert answer.status_code == 200
    assert {name: answer.json()[name] for name in given} == given
    assert {name: (await api.get(HERE, OPERATOR)).json()[name] for name in given} == given
    select = "SELECT role, rule FROM session WHERE session_id = ?"
    row = await api.house.store.run(lambda database: database.execute(select, (SESSION,)).fetchone())
    assert row == ("You are\nbrief.", "You are\nbrief.")
    answer = await patch(api, {"name": "", "model": None})
    assert (answer.json()["name"], answer.json()["model"]) == (SESSION, "auto")
    assert answer.json()["self_id"] == "films"


async def test_nothing_given_changes_nothing(api: Api) -> None:
    assert (await patch(api, {})).json() == (await api.get(HERE, OPERATOR)).json()


async def test_an_alias_is_one_sessions_own(api: Api) -> None:
    chat = await made(api, content="hi", persist=True)
    assert (await patch(api, {"self_id": "films"})).status_code == 200
    assert problem_of(await patch(api, {"self_id": "films", "name": "x"}, chat)) == (409, "name_taken")
    assert (await api.get(f"/v1/session/{chat}", OPERATOR)).json()["name"] == chat
    assert (await patch(api, {"self_id": "films"})).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        {"self_id": "Films"},
        {"self_id": "a" * 33},
        {"self_id": "films\n"},
        {"name": "a\nb"},
        {"name": "\u202e"},
        {"name": "x" * 201},
        {"name": 5},
        {"colour": "red"},
        [],
    ],
)
async def test_what_cannot_be_a_name_is_400(api: Api, body: object) -> None:
    assert problem_of(await patch(api, body)) == (400, "invalid_request")


async def test_only_the_operator_changes_and_removes(api: Api) -> None:
    cli = await made(api)
    assert problem_of(await patch(api, {"name": "x"}, shown=RUNTIME)) == (403, "operator_only")
    async with api.client(**RUNTIME) as client:
        assert problem_of(await client.delete(f"/v1/session/{cli}")) == (403, "operator_only")
        assert problem_of(await client.delete("/v1/session/dc-77")) == (403, "operator_only")
    assert (await api.get(f"/v1/session/{cli}", OPERATOR)).status_code == 200


# --- removing ---------------------------------------------------------------------------------------------------------


async def test_a_session_without_a_chat_is_removed_and_gone(api: Api) -> None:
    sessions = [await made(api), await made(api, content="hi", persist=True), await made(api, content="hi")]
    async with api.client(**OPERATOR) as client:
        for session in sessions:
            answer = await client.delete(f"/v1/session/{session}")
            assert (answer.status_code, answer.content) == (204, b"")
            assert problem_of(await client.delete(f"/v1/session/{session}")) == (404, "unknown_session")
            for path in ("", "/entries", "/stream", "/pending"):
                assert problem_of(await client.get(f"/v1/session/{session}{path}")) == (404, "unknown_session")
    assert [row["session_id"] for row in await listed(api)] == [SESSION]


@pytest.mark.parametrize("session", [SESSION, "tg-5"])
async def test_the_session_of_a_chat_stays(api: Api, session: SessionId) -> None:
    await api.house.sessions.create(session)
    async with api.client(**OPERATOR) as client:
        assert problem_of(await client.delete(f"/v1/session/{session}")) == (403, "not_removable")
        assert problem_of(await client.delete(f"/v1/session/{discord_session(77)}")) == (403, "not_removable")
        assert problem_of(await client.delete("/v1/session/dc-x")) == (404, "unknown_session")
        assert problem_of(await client.delete(f"/v1/session/{new_session('cli')}")) == (404, "unknown_session")
    assert api.house.sessions.exists(session)
