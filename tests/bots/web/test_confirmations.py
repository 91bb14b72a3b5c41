"""Asking people over HTTP, seeing what is open, and answering with the operator's right."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from bots.web.guard import Access
from core.ids import SessionId, new_session
from tests.bots.web.api import Api, fill, problem_of
from tests.builders import MONA, SESSION, a_confirmation, a_task, an_ask
from tests.conftest import House

HERE = f"/v1/session/{SESSION}"
TEMP = SessionId("temp-3b1b9d0e-5a8d-4a0f-9b0e-2a3c4d5e6f70")
UUID = "3b1b9d0e-5a8d-4a0f-9b0e-2a3c4d5e6f71"
KEYS = Access(token="the-operator", runtime_token="the-runtime")
OPERATOR = {"Authorization": "Bearer the-operator"}
RUNTIME = {"Authorization": "Bearer the-runtime"}
QUESTION = {"question": "Which one?", "options": ["red", "blue"]}


@pytest.fixture
async def api(house: House) -> Api:
    await fill(house)
    return Api(house, KEYS)


async def confirm(api: Api, body: dict[str, Any] | None = None, *, key: str | None = None) -> str:
    """Asks; gives the task hash."""
    headers = RUNTIME if key is None else RUNTIME | {"Idempotency-Key": key}
    answer = await api.post(f"{HERE}/confirm", {"tool": "write_file"} | (body or {}), headers)
    assert (answer.status_code, list(answer.json())) == (202, ["task_hash"])
    return answer.json()["task_hash"]


async def ask(api: Api, *questions: dict[str, Any]) -> str:
    answer = await api.post(f"{HERE}/ask", {"questions": questions or [QUESTION]}, RUNTIME)
    assert answer.status_code == 202
    return answer.json()["task_hash"]


async def answer(api: Api, task: str, body: object, headers: dict[str, str] = OPERATOR) -> httpx.Response:
    return await api.post(f"{HERE}/pending/{task}", body, headers)


def files(api: Api) -> list[Path]:
    return sorted((api.house.folder / "runtimes").glob("*/pending/*.json"))


def stored(api: Api) -> dict[str, Any]:
    [path] = files(api)
    return json.loads(path.read_bytes())


# --- asking -----------------------------------------------------------------------------------------------------------


async def test_a_confirmation_is_on_disk_when_it_is_accepted_and_shown_as_in_its_file(api: Api) -> None:
    body = {"args": {"path": "notes.md"}, "text": "May I?", "requester": "11", "timeout": 60, "threadId": "31"}
    task = await confirm(api, body)
    record = stored(api)
    assert (
        record
        | {
            "task_hash": task,
            "session_id": SESSION,
            "kind": "confirm",
            "status": "open",
            "origin": SESSION,
            "deliver_to": SESSION,
            "thread_id": "31",
            "tool": "write_file",
            "args": {"path": "notes.md"},
            "text": "May I?",
            "choices": ["yes", "no"],
            "approvers": "requester",
            "requester": {"platform": "discord", "id": "11"},
        }
        == record
    )
    assert record["expires_at"] - record["created_at"] == 60_000
    assert (await api.get(f"{HERE}/pending/{task}", RUNTIME)).json() == record
    assert (await api.get(f"{HERE}/pending", RUNTIME)).json() == {"pending": [record]}


async def test_choices_are_put_into_the_order_in_which_they_are_shown(api: Api) -> None:
    await confirm(api, {"choices": ["stop", "no", "turn", "always", "yes"]})
    assert stored(api)["choices"] == ["yes", "always", "turn", "no", "stop"]


async def test_questions_are_kept_as_they_were_asked(api: Api) -> None:
    several = {"question": "Which?", "detail": "Of these.", "options": ["a", "b"], "multi_select": True}
    await ask(api, several, {"question": "Why?", "options": [], "multi_select": False})
    assert stored(api)["questions"] == [several, {"question": "Why?"}]
    assert stored(api)["kind"] == "ask"
    assert "choices" not in stored(api)


async def test_a_turn_of_ones_own_can_be_named(api: Api) -> None:
    await confirm(api, {"turnId": UUID})
    assert stored(api)["turn_id"] == UUID


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"tool": None},
        {"tool": ""},
        {"tool": "x" * 201},
        {"tool": "two\nlines"},
        {"tool": "\u202eecho"},
        {"tool": 5},
        {"tool": "t", "choices": []},
        {"tool": "t", "choices": ["maybe"]},
        {"tool": "t", "choices": ["yes", "yes"]},
        {"tool": "t", "choices": "yes"},
        {"tool": "t", "approvers": "everybody"},
        {"tool": "t", "requester": "mona"},
        {"tool": "t", "requester": 11},
        {"tool": "t", "threadId": "general"},
        {"tool": "t", "timeout": 0},
        {"tool": "t", "timeout": -1},
        {"tool": "t", "timeout": True},
        {"tool": "t", "timeout": "60"},
        {"tool": "t", "timeout": 31_536_001},
        {"tool": "t", "turnId": "3b1b9d0e"},
        {"tool": "t", "questions": [QUESTION]},
        {"tool": "t", "later": 1},
    ],
)
async def test_a_confirmation_that_is_not_clear_is_400_and_nothing_is_opened(api: Api, body: object) -> None:
    assert problem_of(await api.post(f"{HERE}/confirm", body, RUNTIME)) == (400, "invalid_request")
    assert not files(api)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"questions": []},
        {"questions": [QUESTION] * 26},
        {"questions": ["Which one?"]},
        {"questions": [{"question": " "}]},
        {"questions": [{"options": ["a"]}]},
        {"questions": [QUESTION | {"secret": True}]},
        {"questions": [QUESTION | {"secret": False}]},
        {"questions": [{"question": "q", "options": ["a", "a"]}]},
        {"questions": [{"question": "q", "options": ["a", " "]}]},
        {"questions": [{"question": "q", "options": [1, 2]}]},
        {"questions": [{"question": "q", "options": [str(number) for number in range(26)]}]},
        {"questions": [{"question": "q", "multi_select": True}]},
        {"questions": [QUESTION | {"multi_select": "yes"}]},
        {"questions": [QUESTION], "tool": "t"},
        {"questions": [QUESTION], "args": {}},
        {"questions": [QUESTION], "choices": ["yes"]},
    ],
)
async def test_questions_that_are_not_clear_are_400_and_nothing_is_opened(api: Api, body: object) -> None:
    assert problem_of(await api.post(f"{HERE}/ask", body, RUNTIME)) == (400, "invalid_request")
    assert not files(api)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"tool": "t", "args": NaN}',
        b'{"tool": "t", "args": {"a": [-Infinity]}}',
        b'{"tool": "t", "args": 1e999}',
        b'{"tool": "t", "args": "\\ud800"}',
        b'{"tool": "t", "args": {"\\ud800": 1}}',
        b'{"tool": "t", "args": ' + b"[" * 200 + b"]" * 200 + b"}",
        b'{"tool": "t", "args": ' + b'{"a":' * 20_000 + b"1" + b"}" * 20_001,
        b'{"tool": "t", "args": ' + b"9" * 5000 + b"}",
        b'{"tool": "t\\ud800"}',
        b'{"tool": "t", "text": "\\udfff"}',
        b'{"tool": "t", "timeout": NaN}',
        b'{"tool": "t", "timeout": Infinity}',
        b'{"tool": "t", "\\ud800": 1}',
        b'{"tool": "t", "approvers": "\\ud800"}',
        b"",
        b"{",
    ],
)
async def test_what_is_no_whole_json_is_400(api: Api, raw: bytes) -> None:
    async with api.client(**{"Content-Type": "application/json"}, **RUNTIME) as client:
        assert problem_of(await client.post(f"{HERE}/confirm", content=raw))[0] == 400
    assert not files(api)


@pytest.mark.parametrize("args", [0, False, "", [], {}, [None], "a\x00b\u2028", {"a": {"b": [1.5, "é"]}}, 10**30])
async def test_args_are_any_json(api: Api, args: object) -> None:
    task = await confirm(api, {"args": args})
    assert (await api.get(f"{HERE}/pending/{task}", RUNTIME)).json()["args"] == args


async def test_a_timeout_may_be_a_fraction(api: Api) -> None:
    await confirm(api, {"timeout": 1.5})
    assert stored(api)["expires_at"] - stored(api)["created_at"] == 1500


async def test_a_requester_where_there_is_no_chat_is_400(api: Api) -> None:
    session = new_session("cli")
    await api.house.sessions.create(session)
    body = {"tool": "t", "requester": "11"}
    assert problem_of(await api.post(f"/v1/session/{session}/confirm", body, RUNTIME)) == (400, "invalid_request")


@pytest.mark.parametrize("sid", ["dc-77", TEMP, "dc-1%0a", "..", "%2e%2e", "tg-5~..", "DC-1"])
async def test_in_an_unknown_session_nothing_is_asked(api: Api, sid: str) -> None:
    for path in ("confirm", "ask"):
        body = {"tool": "t"} if path == "confirm" else {"questions": [QUESTION]}
        assert (await api.post(f"/v1/session/{sid}/{path}", body, OPERATOR)).status_code == 404
    assert (await api.get(f"/v1/session/{sid}/pending", OPERATOR)).status_code == 404
    assert (await api.get(f"/v1/session/{sid}/pending/{UUID}", OPERATOR)).status_code == 404
    assert (await api.post(f"/v1/session/{sid}/pending/{UUID}", {"choice": "no"}, OPERATOR)).status_code == 404
    assert [path.name for path in (api.house.folder / "runtimes").iterdir()] == [SESSION]


async def test_what_the_disk_does_not_take_is_503(api: Api) -> None:
    task = await confirm(api)
    pending = files(api)[0].parent
    moved = pending.rename(pending.with_name("elsewhere"))
    pending.write_bytes(b"in the way")
    assert problem_of(await api.post(f"{HERE}/confirm", {"tool": "t"}, RUNTIME)) == (503, "disk_unavailable")
    assert problem_of(await answer(api, task, {"choice": "yes"})) == (503, "disk_unavailable")
    pending.unlink()
    moved.rename(pending)
    assert (await answer(api, task, {"choice": "no"})).json()["status"] == "denied"


# --- once -------------------------------------------------------------------------------------------------------------


async def test_the_same_key_and_body_ask_once_also_after_a_restart(api: Api) -> None:
    task = await confirm(api, {"text": "hi", "timeout": 60}, key="k")
    again = {"timeout": 60.0, "text": "hi", "args": None}
    assert await confirm(api, again, key="k") == task
    await api.house.reopen()
    later = Api(api.house, KEYS)
    assert await confirm(later, again, key="k") == task
    assert len(files(api)) == 1


async def test_the_same_key_for_another_body_or_another_route_is_409(api: Api) -> None:
    key = RUNTIME | {"Idempotency-Key": "k"}
    await confirm(api, key="k")
    for path, body in (
        ("confirm", {"tool": "other"}),
        ("ask", {"questions": [QUESTION]}),
        ("messages", {"text": "hi"}),
    ):
        assert problem_of(await api.post(f"{HERE}/{path}", body, key)) == (409, "key_reused")
    assert len(files(api)) == 1


async def test_without_a_key_each_request_asks_anew(api: Api) -> None:
    assert await confirm(api) != await confirm(api)


async def test_two_at_the_same_time_with_one_key_ask_once(api: Api) -> None:
    assert len(set(await asyncio.gather(*(confirm(api, key="k") for _ in range(5))))) == 1
    assert len(files(api)) == 1


@pytest.mark.parametrize("decided", [False, True])
async def test_a_crash_between_opening_and_answering_does_not_ask_twice(
    api: Api, monkeypatch: pytest.MonkeyPatch, decided: bool
) -> None:
    key = RUNTIME | {"Idempotency-Key": "k"}
    put, states = api.house.store.put_outbox, list[str]()

    async def die(name: str, session: SessionId, state: str, record: str) -> None:
        states.append(state)
        if state == "done":
            raise RuntimeError("killed here")
        await put(name, session, state, record)

    with monkeypatch.context() as patch:
        patch.setattr(api.house.store, "put_outbox", die)
        assert (await api.post(f"{HERE}/confirm", {"tool": "t"}, key)).status_code == 500
    assert states == ["sending", "done"]
    [opened] = files(api)
    await api.house.reopen()
    later = Api(api.house, KEYS)
    async with later.at_work():
        if decided:
            await answer(later, opened.stem, {"choice": "no"})
            await later.desk.file(later.desk.records()[0].task_hash)
        again = await later.post(f"{HERE}/confirm", {"tool": "t"}, key)
        assert (again.status_code, again.json()) == (202, {"task_hash": opened.stem})
        assert files(later) == ([] if decided else [opened])


# --- looking ----------------------------------------------------------------------------------------------------------


async def test_the_list_has_what_is_open_in_the_order_in_which_it_was_asked(api: Api) -> None:
    for record in (
        a_confirmation(a_task(1), at=3),
        an_ask(task=a_task(2), at=2),
        a_confirmation(a_task(3), status="denied", decided_at=5),
    ):
        await api.desk.open(record)
    listed = (await api.get(f"{HERE}/pending", RUNTIME)).json()["pending"]
    assert [record["task_hash"] for record in listed] == [a_task(2), a_task(1)]


async def test_a_helpers_request_is_seen_from_its_session_and_from_where_it_is_shown(api: Api) -> None:
    await api.house.sessions.create(TEMP)
    other = new_session("cli")
    await api.house.sessions.create(other)
    await api.lineage.descend(TEMP, SESSION)
    body = {"tool": "t", "requester": "11"}
    task = (await api.post(f"/v1/session/{TEMP}/confirm", body, RUNTIME)).json()["task_hash"]
    for sid, seen in ((TEMP, True), (SESSION, True), (other, False)):
        listed = (await api.get(f"/v1/session/{sid}/pending", RUNTIME)).json()["pending"]
        assert [record["deliver_to"] for record in listed] == [SESSION] * seen
        one = await api.get(f"/v1/session/{sid}/pending/{task}", RUNTIME)
        assert one.status_code == (200 if seen else 404)
        decided = await api.post(f"/v1/session/{sid}/pending/{task}", {"choice": "maybe"}, OPERATOR)
        assert decided.status_code == 400
        if not seen:
            decided = await api.post(f"/v1/session/{sid}/pending/{task}", {"choice": "yes"}, OPERATOR)
            assert problem_of(decided) == (404, "unknown_task")


@pytest.mark.parametrize("task", [UUID, "nonsense", "%2e%2e", UUID.upper(), f"{UUID}%0a", "x" * 3000])
async def test_an_unknown_hash_is_404(api: Api, task: str) -> None:
    for answered in (await api.get(f"{HERE}/pending/{task}", RUNTIME), await answer(api, task, {"choice": "yes"})):
        assert answered.status_code == 404


@pytest.mark.parametrize("wait", ["-1", "60.1", "61", "nan", "inf", "long", ""])
async def test_a_wait_out_of_range_is_400(api: Api, wait: str) -> None:
    task = await confirm(api)
    assert problem_of(await api.get(f"{HERE}/pending/{task}?wait={wait}", RUNTIME)) == (400, "invalid_request")


async def test_waiting_ends_with_the_decision(api: Api) -> None:
    task = await confirm(api)
    waiting = asyncio.create_task(api.get(f"{HERE}/pending/{task}?wait=60", RUNTIME))
    await asyncio.sleep(0.05)
    await answer(api, task, {"choice": "yes"})
    assert (await asyncio.wait_for(waiting, 5)).json()["status"] == "approved"


async def test_waiting_ends_after_the_time_asked_for(api: Api) -> None:
    task = await confirm(api)
    waited = await asyncio.wait_for(api.get(f"{HERE}/pending/{task}?wait=0.05", RUNTIME), 5)
    assert waited.json()["status"] == "open"


async def test_what_nobody_answered_is_expired(api: Api) -> None:
    async with api.at_work():
        task = await confirm(api, {"timeout": 0.05})
        expired = await asyncio.wait_for(api.get(f"{HERE}/pending/{task}?wait=10", RUNTIME), 5)
        assert expired.json()["status"] == "expired"
        assert problem_of(await answer(api, task, {"choice": "yes"})) == (410, "decided")


async def test_what_is_decided_and_filed_stays_readable(api: Api) -> None:
    task = await confirm(api)
    decided = (await answer(api, task, {"choice": "yes"})).json()
    await api.desk.file(api.desk.records()[0].task_hash)
    assert not files(api)
    assert (await api.get(f"{HERE}/pending/{task}?wait=60", RUNTIME)).json() == decided
    assert (await api.get(f"{HERE}/pending", RUNTIME)).json() == {"pending": []}
    assert problem_of(await answer(api, task, {"choice": "no"})) == (410, "decided")


# --- answering --------------------------------------------------------------------------------------------------------


async def test_the_operator_decides_and_gets_the_record(api: Api) -> None:
    task = await confirm(api)
    decided = await answer(api, task, {"choice": "yes"})
    record = decided.json()
    assert (decided.status_code, record["status"], record["choice"]) == (200, "approved", "yes")
    assert record["by"] == {"platform": "http", "id": "operator", "name": "operator"}
    assert record == stored(api)


async def test_the_first_answer_counts_and_every_later_one_is_410(api: Api) -> None:
    task = await confirm(api)
    answers = await asyncio.gather(*(answer(api, task, {"choice": choice}) for choice in ("yes", "no") * 3))
    assert sorted(one.status_code for one in answers) == [200] + [410] * 5
    assert problem_of(await answer(api, task, {"choice": stored(api)["choice"]})) == (410, "decided")


async def test_questions_are_answered_all_at_once(api: Api) -> None:
    task = await ask(api, QUESTION, {"question": "Why?"}, {"question": "What?", "options": ["a"], "multi_select": True})
    answers = [
        {"question": "Which one?", "answer": "blue"},
        {"question": "Why?", "answer": "because"},
        {"question": "What?", "answer": ["a"]},
    ]
    assert problem_of(await answer(api, task, {"answers": answers[:2]})) == (400, "invalid_answer")
    record = (await answer(api, task, {"answers": answers})).json()
    assert (record["status"], record["answers"]) == ("answered", answers)


async def test_stop_ends_questions_too(api: Api) -> None:
    task = await ask(api)
    assert (await answer(api, task, {"choice": "stop"})).json()["status"] == "stopped"


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"choice": None},
        {"choice": "maybe"},
        {"choice": "yes", "answers": []},
        {"answers": [{"question": "q"}]},
        {"answers": [{"question": "q", "answer": 5}]},
        {"answers": [{"question": "q", "answer": "a", "more": 1}]},
        {"choice": "yes", "by": MONA.model_dump()},
    ],
)
async def test_what_is_neither_choice_nor_answers_is_400(api: Api, body: object) -> None:
    task = await confirm(api)
    assert problem_of(await answer(api, task, body)) == (400, "invalid_request")
    assert stored(api)["status"] == "open"


@pytest.mark.parametrize("body", [{"choice": "always"}, {"choice": "stop"}, {"answers": []}])
async def test_what_was_not_offered_is_400(api: Api, body: object) -> None:
    task = await confirm(api)
    assert problem_of(await answer(api, task, body)) == (400, "invalid_answer")
    assert stored(api)["status"] == "open"


# --- rights -----------------------------------------------------------------------------------------------------------


async def test_the_runtimes_token_may_ask_and_look_but_not_answer(api: Api) -> None:
    task = await confirm(api)
    assert (await api.get(f"{HERE}/pending/{task}", RUNTIME)).status_code == 200
    assert problem_of(await answer(api, task, {"choice": "yes"}, RUNTIME)) == (403, "operator_only")
    assert stored(api)["status"] == "open"


@pytest.mark.parametrize("access", [Access(), Access(runtime_token="the-runtime"), Access(token="")])
async def test_without_an_operators_token_nobody_answers_over_http(house: House, access: Access) -> None:
    await fill(house)
    api = Api(house, access)
    await api.desk.open(a_confirmation(a_task(1)))
    for shown in ({}, RUNTIME) if access.runtime_token else ({},):
        refused = await answer(api, a_task(1), {"choice": "yes"}, shown)
        assert problem_of(refused) == (403, "operator_only")
        assert "`ishiki answer`" in refused.json()["error"]["message"]
        assert "ISHIKI_HTTP_TOKEN" in refused.json()["error"]["message"]
    assert stored(api)["status"] == "open"


async def test_without_a_token_at_all_nothing_is_asked_where_one_is_set(api: Api) -> None:
    assert problem_of(await api.post(f"{HERE}/confirm", {"tool": "t"})) == (401, "unauthorized")


# --- the description --------------------------------------------------------------------------------------------------


async def test_the_description_names_what_each_route_answers(api: Api) -> None:
    described = (await api.get("/openapi.json", RUNTIME)).json()
    one = described["paths"]["/v1/session/{sid}/pending/{task_hash}"]
    assert {"200", "400", "401", "403", "404", "410", "413", "503"} <= set(one["post"]["responses"])
    assert {"200", "400", "404"} <= set(one["get"]["responses"])
    for path in ("confirm", "ask"):
        responses = described["paths"][f"/v1/session/{{sid}}/{path}"]["post"]["responses"]
        assert {"202", "400", "404", "409", "503"} <= set(responses)
    assert one["post"]["security"] == [{"HTTPBearer": []}]
