"""Reading a session's lines and speaking in it."""

import asyncio
import json
from typing import Any

import pytest

from core.chat.port import Part
from core.errors import ChatRefused
from core.ids import MessageId
from core.sessions.facts import Fact
from tests.bots.web.api import Api, fill, problem_of
from tests.builders import SESSION, said
from tests.conftest import House
from tests.fakes import FakeChat

ENTRIES = f"/v1/session/{SESSION}/entries"
MESSAGES = f"/v1/session/{SESSION}/messages"
UUID = "3b1b9d0e-5a8d-4a0f-9b0e-2a3c4d5e6f70"


# --- entries ----------------------------------------------------------------------------------------------------------


async def test_entries_are_the_bytes_of_the_file(house: House) -> None:
    await fill(house, 3)
    api = Api(house)
    answer = await api.get(ENTRIES)
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.content == api.log.read_bytes()


async def test_pages_follow_each_other_without_gap_or_repeat(house: House) -> None:
    facts: list[Fact] = [said(number, "x" * 4000) for number in range(1, 251)]
    await house.sessions.of(SESSION).append(facts)  # about a megabyte: several chunks of reading
    api = Api(house)
    assert len((await api.get(ENTRIES)).content.splitlines()) == 100
    pages, after = b"", ""
    while page := (await api.get(f"{ENTRIES}?limit=90{after}")).content:
        pages += page
        after = f"&after={json.loads(page.splitlines()[-1])['id']}"
    assert pages == api.log.read_bytes()
    assert (await api.get(f"{ENTRIES}?limit=1000")).content == pages


async def test_lines_that_are_no_entries_and_a_torn_end_are_left_out(house: House) -> None:
    await fill(house)
    api = Api(house)
    whole = api.log.read_bytes()
    foreign = b'{"id":"f1","timestamp":1,"type":"x.later", "data" : {"z": 1e2}}\n'
    api.log.write_bytes(whole + b"not json\n\n" + foreign + b'{"id":"torn')
    await house.reopen()
    assert (await Api(house).get(ENTRIES)).content == whole + foreign


async def test_an_unknown_entry_is_404(house: House) -> None:
    await fill(house)
    api = Api(house)
    for after in (UUID, "%22", "%00", "a" * 4000):
        assert problem_of(await api.get(f"{ENTRIES}?after={after}")) == (404, "unknown_entry")


async def test_an_empty_cursor_is_the_beginning(house: House) -> None:
    await fill(house)
    api = Api(house)
    assert (await api.get(f"{ENTRIES}?after=")).content == (await api.get(ENTRIES)).content


@pytest.mark.parametrize("limit", ["0", "1001", "-1", "many", ""])
async def test_a_limit_out_of_range_is_400(house: House, limit: str) -> None:
    await fill(house)
    assert problem_of(await Api(house).get(f"{ENTRIES}?limit={limit}")) == (400, "invalid_request")


@pytest.mark.parametrize(
    "sid",
    ["dc-77", f"temp-{UUID}", "dc-1%0a", "..", "%2e%2e", "tg-5~..", "dc-1%2F..%2Fdc-2", "DC-1", "dc-", "x" * 3000],
)
async def test_what_is_no_session_is_404_and_makes_no_folder(house: House, sid: str) -> None:
    await fill(house)
    api = Api(house)
    before = sorted((house.folder / "runtimes").iterdir())
    assert (await api.get(f"/v1/session/{sid}/entries")).status_code == 404
    assert (await api.post(f"/v1/session/{sid}/messages", {"text": "hi"})).status_code == 404
    assert (await api.get(f"/v1/session/{sid}/resources/assets/{UUID}")).status_code == 404
    assert (await api.post(f"/v1/session/{sid}/resources/artifacts/tool", {})).status_code == 404
    assert sorted((house.folder / "runtimes").iterdir()) == before


# --- messages ---------------------------------------------------------------------------------------------------------


async def test_speaking_sends_and_writes_it_down(house: House) -> None:
    await fill(house)
    api = Api(house)
    answer = await api.post(MESSAGES, {"text": "**hi**", "quote": "7", "threadId": "31"}, {"Idempotency-Key": "k"})
    assert (answer.status_code, answer.json()) == (200, {"ok": True, "ids": ["9001"]})
    assert api.chat is not None
    assert [(sent.text, sent.quote, sent.thread) for sent in api.chat.sent] == [("**hi**", "7", "31")]
    call = api.lines()[2]["data"]["content"][0]
    assert call["input"] == {"messages": ["**hi**"], "mode": "markdown", "quote": "7", "threadId": "31"}


async def test_content_is_element_markup(house: House) -> None:
    await fill(house)
    api = Api(house)
    assert (await api.post(MESSAGES, {"content": "<b>hi</b>"})).status_code == 200
    assert api.lines()[2]["data"]["content"][0]["input"]["mode"] == "element"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"content": "a", "text": "b"},
        {"text": None},
        {"text": 5},
        {"text": " \n"},
        {"text": "hi", "quote": "x"},
        {"text": "hi", "threadId": 31},
        {"text": "hi", "quote": "7\n"},
        {"text": "hi", "thread": "31"},
        [],
        "hi",
    ],
)
async def test_what_says_nothing_clear_is_400(house: House, body: object) -> None:
    await fill(house)
    api = Api(house)
    assert problem_of(await api.post(MESSAGES, body)) == (400, "invalid_request")
    assert api.chat is not None
    assert not api.chat.sent


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b'{"text": "\\ud800"}', b"[" * 100_000])
async def test_what_does_not_parse_is_400(house: House, raw: bytes) -> None:
    await fill(house)
    async with Api(house).client(**{"Content-Type": "application/json"}) as client:
        assert problem_of(await client.post(MESSAGES, content=raw))[0] == 400


async def test_the_same_key_and_body_again_gets_the_first_answer_also_after_a_restart(house: House) -> None:
    await fill(house)
    api, key = Api(house), {"Idempotency-Key": "k"}
    first = await api.post(MESSAGES, {"text": "hi"}, key)
    assert (await api.post(MESSAGES, {"text": "hi", "quote": None}, key)).content == first.content
    await house.reopen()
    later = Api(house)
    assert (await later.post(MESSAGES, {"text": "hi"}, key)).content == first.content
    assert later.chat is not None
    assert not later.chat.sent
    assert problem_of(await later.post(MESSAGES, {"text": "other"}, key)) == (409, "key_reused")
    assert problem_of(await later.post(MESSAGES, {"content": "hi"}, key)) == (409, "key_reused")
    assert len(api.lines()) == 5


async def test_without_a_key_each_request_is_a_message_of_its_own(house: House) -> None:
    await fill(house)
    api = Api(house)
    assert [(await api.post(MESSAGES, {"text": "hi"})).json()["ids"] for _ in "ab"] == [["9001"], ["9002"]]
    assert problem_of(await api.post(MESSAGES, {"text": "hi"}, {"Idempotency-Key": "k" * 256}))[0] == 400


class SlowChat(FakeChat):
    """Takes a message only when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.go = asyncio.Event(), asyncio.Event()

    async def send(self, part: Part, uploads: Any, *, quote: Any, thread: Any, nonce: str) -> list[MessageId]:
        self.reached.set()
        await self.go.wait()
        return await super().send(part, uploads, quote=quote, thread=thread, nonce=nonce)


async def test_two_at_the_same_time_with_one_key_send_once(house: House) -> None:
    await fill(house)
    chat = SlowChat()
    api, key = Api(house, chat=chat), {"Idempotency-Key": "k"}
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(api.post(MESSAGES, {"text": text}, key)) for text in ("hi", "hi", "other")]
        await chat.reached.wait()
        chat.go.set()
    answers = [task.result() for task in asked]
    assert sorted(answer.status_code for answer in answers) == [200, 200, 409]
    assert len(chat.sent) == 1
    assert len(api.lines()) == 5


async def test_a_failed_send_is_502_with_what_came_through_and_stays_so(house: House) -> None:
    await fill(house)
    api = Api(house, chat=FakeChat(refusals=[ChatRefused("no right to write here", name="Forbidden")]))
    key = {"Idempotency-Key": "k"}
    answer = await api.post(MESSAGES, {"text": "hi"}, key)
    wanted: dict[str, object] = {
        "ok": False,
        "error": {"name": "Forbidden", "message": "no right to write here"},
        "sent": [],
        "failedAt": 0,
    }
    assert (answer.status_code, answer.json()) == (502, wanted)
    assert (await api.post(MESSAGES, {"text": "hi"}, key)).json() == wanted
    assert api.lines()[3]["data"]["content"][0]["output"]["value"] == wanted


async def test_a_platform_that_is_off_is_503_and_may_be_asked_again_with_the_same_key(house: House) -> None:
    await fill(house)
    key = {"Idempotency-Key": "k"}
    assert problem_of(await Api(house, chat=None).post(MESSAGES, {"text": "hi"}, key)) == (503, "platform_off")
    assert (await Api(house).post(MESSAGES, {"text": "hi"}, key)).status_code == 200


@pytest.mark.parametrize("prefix", ["cli", "chat", "temp"])
async def test_a_session_that_is_no_chat_cannot_be_spoken_in(house: House, prefix: str) -> None:
    (house.folder / "runtimes" / f"{prefix}-{UUID}").mkdir(parents=True)
    answer = await Api(house).post(f"/v1/session/{prefix}-{UUID}/messages", {"text": "hi"})
    assert problem_of(answer) == (409, "no_chat")
