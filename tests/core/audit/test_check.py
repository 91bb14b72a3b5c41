"""The check, rule by rule: a sound log with one thing broken has that one finding."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from core.audit import Finding, check
from core.audit.references import SECTIONS
from core.log.records import Record
from core.log.view import View
from core.sidecars import FileRef, Sidecar, write_sidecar

SAMPLES = Path(__file__).parents[2] / "samples"
TURN = "e061c676-0701-4e5c-b2c8-565cf9462c91"
OTHER = "aaaa1111-2222-4333-8444-555566667777"
ASSET = "0190f9f3-3ff8-7000-8000-000000000001"

Document = dict[str, Any]


def sample() -> list[Document]:
    return [json.loads(line) for line in (SAMPLES / "sample-session.jsonl").read_bytes().splitlines()]


def line_of(document: Document) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


@pytest.fixture
def examine(tmp_path: Path) -> Callable[..., list[Finding]]:
    def run(lines: Sequence[Document | bytes], assets: Path | None = None, *, end: bytes = b"\n") -> list[Finding]:
        path = tmp_path / "events.jsonl"
        path.write_bytes(b"\n".join(line if isinstance(line, bytes) else line_of(line) for line in lines) + end)
        with View(path) as log:
            return [*check(log, assets)]

    return run


Examine = Callable[..., list[Finding]]


def rules(findings: list[Finding]) -> list[tuple[int, str]]:
    return [(finding.line, finding.rule) for finding in findings]


def with_id(document: Document, number: int) -> Document:
    """A copy under fresh ids."""
    copy = json.loads(json.dumps(document))
    copy["id"] = f"new-{number}"
    if copy["type"] == "message":
        copy["data"]["id"] = f"new-message-{number}"
    return copy


def an_edit(number: int, revision: int, *, turn: str | None = None) -> Document:
    edit = with_id(sample()[0], number)
    edit["data"]["data"] |= {"content": f"edit {revision}", "edited": {"timestamp": 5, "revision": revision}}
    return edit | ({"turnId": turn} if turn else {})


def a_deletion(number: int, message: str = "m2") -> Document:
    key: Document = {"platform": "test", "selfId": "bot", "channelId": "channel", "messageId": message}
    key["timestamp"] = 1793531050200
    data = {"id": f"d-{number}", "timestamp": 1, "role": "custom", "type": "ishiki.message.deleted", "data": key}
    return {"id": f"deleted-{number}", "type": "message", "data": data, "timestamp": 1}


def an_event(kind: str, turn: str, number: int = 0) -> Document:
    return {
        "id": f"{kind}-{turn}-{number}",
        "type": "event",
        "data": {"type": kind, "turnId": turn},
        "timestamp": 1,
        "turnId": turn,
    }


def a_line(kind: str, data: Document, *, turn: str | None = None) -> Document:
    return {"id": f"a-{kind}", "type": kind, "data": data, "timestamp": 1} | ({"turnId": turn} if turn else {})


# --- sound --------------------------------------------------------------------------------------------------------


def test_the_sample_session_keeps_every_rule(examine: Examine):
    assert examine(sample()) == []


def test_an_empty_file_and_a_file_that_is_not_there_keep_every_rule(examine: Examine, tmp_path: Path):
    assert examine([], end=b"") == []
    with View(tmp_path / "missing") as log:
        assert [*check(log, None)] == []


def test_of_the_broken_sample_the_fifth_line_is_named_with_its_place_and_nothing_else(tmp_path: Path):
    with View(SAMPLES / "broken.jsonl") as log:
        (finding,) = check(log, None)
    assert (finding.line, finding.rule) == (5, "json")
    assert "byte 51" in finding.message
    assert "starts at byte 1798" in finding.message


def test_a_turn_that_is_open_at_the_end_of_a_live_file_is_no_finding(examine: Examine):
    assert examine(sample()[:4]) == []
    assert examine(sample()[:7]) == []


def test_an_edit_during_the_turn_and_a_deletion_after_it_keep_the_rules(examine: Examine):
    lines = sample()
    assert examine([*lines[:5], an_edit(1, 1, turn=TURN), *lines[5:], an_edit(2, 2), a_deletion(1)]) == []


def test_what_the_format_does_not_know_is_kept_and_is_no_finding(examine: Examine):
    strange: Document = {"role": "custom", "type": "onebot.guild.member-added", "data": {}, "id": "s", "timestamp": 1}
    assert examine([
        *sample(),
        a_line("ishiki.checkpoint", {"any": [1]}),
        a_line("message", strange),
        sample()[0] | {"id": "p", "parentId": "x", "data": {"id": "q", "timestamp": 1, "role": "narrator"}},
    ]) == []  # fmt: skip


# --- framing ------------------------------------------------------------------------------------------------------


def test_a_torn_tail_is_called_a_torn_tail(examine: Examine):
    (finding,) = examine([*sample(), b'{"id":"cut'], end=b"")
    assert (finding.line, finding.rule) == (10, "torn-tail")
    assert "torn tail" in finding.message


def test_a_missing_line_feed_at_the_end_is_found(examine: Examine):
    assert rules(examine(sample(), end=b"")) == [(9, "line-end")]


def test_a_line_of_blanks_is_found_and_an_empty_one_is_not(examine: Examine):
    assert rules(examine([*sample()[:2], b"", b" \t", *sample()[2:]])) == [(4, "blank")]


@pytest.mark.parametrize("bad", [b"no", b'{"a":NaN}', b"\xff\xfe", b"{" * 5000, b"\x00" * 20, b'{"id":"1"'])
def test_a_line_that_is_no_json_is_found_where_it_stands_and_the_rest_is_still_checked(examine: Examine, bad: bytes):
    assert rules(examine([sample()[0], bad, *sample()[1:], a_deletion(1), a_deletion(2)])) == [
        (2, "json"), (12, "deleted-twice"),
    ]  # fmt: skip


def test_a_byte_order_mark_is_found(examine: Examine):
    assert rules(examine([b"\xef\xbb\xbf" + line_of(sample()[0]), *sample()[1:]])) == [(1, "bom")]


# --- shape --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "member"),
    [
        (b"[]", "object"),
        ({"id": 5}, "$.id"),
        ({"timestamp": "now"}, "$.timestamp"),
        ({"data": []}, "object"),
        ({"data": {"id": "x", "timestamp": 1, "role": "assistant", "content": 5}}, "$.data.content"),
        ({"data": {"id": "x", "timestamp": 1, "content": 5}}, "role"),
        ({"data": {"id": "x", "timestamp": 1, "role": "tool"}}, "content"),
        ({"data": {"id": "x", "timestamp": 1, "role": "tool", "content": [{"type": "tool-result"}]}}, "toolCallId"),
        ({"data": {"id": "x", "timestamp": 1, "role": "user", "content": [5]}}, "$.data.content[0]"),
    ],
)  # fmt: skip
def test_a_wrong_shape_names_the_line_and_the_member(examine: Examine, line: Document | bytes, member: str):
    broken: Document | bytes = line if isinstance(line, bytes) else {**sample()[8], **line}
    findings = examine([*sample()[:3], broken, *sample()[3:8]])
    assert (4, "shape") in rules(findings)
    assert any(member in finding.message for finding in findings)


def test_an_output_of_an_unknown_kind_is_found_with_its_place(examine: Examine):
    lines = sample()
    lines[4]["data"]["content"][0]["output"]["type"] = "image"
    (finding,) = examine(lines)
    assert (finding.line, finding.rule) == (5, "shape")
    assert "$.data.content[0].output.type" in finding.message


def test_a_byte_that_is_no_text_is_found_also_where_nobody_here_reads(examine: Examine):
    lines = [*map(line_of, sample())]
    lines[3] = lines[3].replace(b"view=meta", b"view=\xffmet")
    assert (4, "json") in rules(examine(lines))


def test_a_null_member_is_found_but_not_in_what_is_a_tools_own_affair(examine: Examine):
    lines = sample()
    lines[0]["data"]["data"]["quote"] = {"id": "1", "user": None}
    lines[3]["data"]["content"][0]["input"] = {"url": None}
    (finding,) = examine(lines)
    assert (finding.line, finding.rule) == (1, "null")
    assert "$.data.data.quote.user" in finding.message


def test_an_event_that_is_never_stored_is_found(examine: Examine):
    event = an_event("tool.start", TURN)
    assert rules(examine([*sample()[:4], event, *sample()[4:]])) == [(5, "event")]


# --- ids ----------------------------------------------------------------------------------------------------------


def test_an_entry_id_that_stands_twice_is_found(examine: Examine):
    lines = sample()
    lines[8]["id"] = lines[2]["id"]
    assert rules(examine(lines)) == [(9, "duplicate-id")]


def test_a_message_id_that_stands_twice_is_found(examine: Examine):
    lines = sample()
    lines[8]["data"]["id"] = lines[0]["data"]["id"]
    assert rules(examine(lines)) == [(9, "duplicate-id")]


def test_a_value_that_is_both_an_entry_and_a_message_id_is_found(examine: Examine):
    lines = sample()
    lines[8]["data"]["id"] = lines[2]["id"]
    assert rules(examine(lines)) == [(9, "crossed-id")]
    lines = sample()
    lines[8]["id"] = lines[0]["data"]["id"]
    assert rules(examine(lines)) == [(9, "crossed-id")]
    lines = sample()
    lines[8]["id"] = lines[8]["data"]["id"]
    assert rules(examine(lines)) == [(9, "crossed-id")]


# --- messages -----------------------------------------------------------------------------------------------------


def test_a_message_created_twice_is_found(examine: Examine):
    assert rules(examine([*sample(), with_id(sample()[0], 1)])) == [(10, "created-twice")]


@pytest.mark.parametrize(
    ("revisions", "found"), [([1, 2, 3], []), ([2], [10]), ([1, 1], [11]), ([1, 3], [11]), ([0], [10])]
)
def test_revisions_count_from_one_without_gap_or_repeat(examine: Examine, revisions: list[int], found: list[int]):
    edits = [an_edit(index, revision) for index, revision in enumerate(revisions)]
    assert rules(examine([*sample(), *edits])) == [(line, "revision") for line in found]


def test_a_message_deleted_twice_is_found(examine: Examine):
    assert rules(examine([*sample(), a_deletion(1), a_deletion(2), a_deletion(3, "m1")])) == [(11, "deleted-twice")]


def test_an_attachment_without_its_message_is_found(examine: Examine):
    lines = sample()
    lines[1]["data"]["data"]["messageId"] = "m7"
    assert rules(examine(lines)) == [(2, "attachment")]
    del lines[1]["data"]["data"]["selfId"]
    assert rules(examine(lines)) == [(2, "attachment")]


def test_a_message_that_is_written_again_after_its_deletion_is_found(examine: Examine):
    assert rules(examine([*sample(), a_deletion(1, "m1"), an_edit(1, 1)])) == [(11, "deleted")]


def test_a_deletion_says_nothing_again_of_what_was_taken_back_and_is_not_earlier(examine: Examine):
    early = a_deletion(1)
    early["data"]["data"]["timestamp"] = 5
    assert rules(examine([*sample(), early])) == [(10, "deleted")]
    for member in ("content", "user", "isDirect", "guildId", "quote"):
        loud = a_deletion(1)
        loud["data"]["data"][member] = {"id": "1"}
        (finding,) = examine([*sample(), loud])
        assert (finding.line, finding.rule) == (10, "deleted")
        assert finding.message.endswith(f"no member {member}; this one does")


def test_an_edit_keeps_the_time_of_its_message_and_is_not_older_than_the_one_above(examine: Examine):
    moved = an_edit(1, 1)
    moved["data"]["data"]["timestamp"] += 1
    assert rules(examine([*sample(), moved])) == [(10, "revision")]
    older = an_edit(2, 2)
    older["data"]["data"]["edited"]["timestamp"] = 4
    assert rules(examine([*sample(), an_edit(1, 1), older])) == [(11, "revision")]


def test_an_edit_may_come_before_its_message(examine: Examine):
    edit, original = an_edit(1, 1), sample()[8]
    edit["data"]["data"] |= {name: original["data"]["data"][name] for name in ("messageId", "timestamp")}
    assert examine([*sample()[:8], edit, original, a_deletion(1)]) == []


@pytest.mark.parametrize(
    ("members", "rule"),
    [
        ({"content": ""}, "content"),
        ({"user": {"id": "bot"}}, "self"),
        ({"forward": {"user": {"id": "1"}, "channel": {"id": "2"}}}, "shape"),
    ],
)
def test_what_a_message_may_not_say_of_itself_is_found(examine: Examine, members: Document, rule: str):
    lines = sample()
    lines[8]["data"]["data"] |= members
    assert rules(examine(lines)) == [(9, rule)]


def test_a_tools_attachment_names_its_call(examine: Examine):
    lines = sample()
    named: Document = {"source": "tool", "toolName": "read", "toolCallId": "call-1", "items": []}
    data: Document = {"id": "t", "timestamp": 1, "role": "custom", "type": "ishiki.attachment", "data": named}
    line: Document = {"id": "tool", "type": "message", "data": data, "timestamp": 1, "turnId": TURN}
    assert examine([*lines[:6], line, *lines[6:]]) == []
    for member in ("toolName", "toolCallId"):
        data["data"] = {name: value for name, value in named.items() if name != member}
        assert rules(examine([*lines[:6], line, *lines[6:]])) == [(7, "attachment")]


# --- turns --------------------------------------------------------------------------------------------------------


def test_an_event_whose_two_turn_ids_differ_is_found(examine: Examine):
    lines = sample()
    lines[7]["turnId"] = OTHER
    assert rules(examine(lines)) == [(8, "turn-id")]
    del lines[7]["turnId"]
    assert rules(examine(lines)) == [(8, "turn-id")]


@pytest.mark.parametrize("index", [3, 4, 5])
def test_a_line_that_always_bears_a_turn_is_found_without_one(examine: Examine, index: int):
    lines = sample()
    del lines[index]["turnId"]
    assert (index + 1, "turn-id") in rules(examine(lines))


@pytest.mark.parametrize("kind", ["state", "ishiki.compact"])
def test_a_line_that_never_bears_a_turn_is_found_with_one(examine: Examine, kind: str):
    data = {"version": 1, "summary": "", "lastEntryId": sample()[0]["id"]}
    assert examine([*sample(), a_line(kind, data)]) == []
    assert rules(examine([*sample(), a_line(kind, data, turn=TURN)])) == [(10, "turn-id")]


def test_a_message_that_came_during_a_turn_is_found_without_its_id(examine: Examine):
    lines = sample()
    assert rules(examine([*lines[:4], lines[8], *lines[4:8]])) == [(5, "turn-id")]
    assert examine([*lines[:4], lines[8] | {"turnId": TURN}, *lines[4:8]]) == []


def test_a_message_that_bears_a_turn_which_is_over_or_never_began_is_found(examine: Examine):
    lines = sample()
    assert rules(examine([*lines[:8], lines[8] | {"turnId": TURN}])) == [(9, "turn")]
    assert rules(examine([*lines[:8], lines[8] | {"turnId": OTHER}])) == [(9, "turn")]


def test_only_a_narrative_may_follow_the_end_of_its_turn(examine: Examine):
    narrative = a_line("ishiki.narrative", {"kind": "thought"}, turn=TURN)
    store = a_line("ishiki.codemode.store", {"set": {}, "delete": []}, turn=TURN)
    assert rules(examine([*sample(), narrative, store])) == [(11, "turn")]


def test_a_turn_starts_once_and_ends_once(examine: Examine):
    lines = sample()
    assert rules(examine([*lines[:3], an_event("turn.start", TURN), *lines[3:]])) == [(4, "turn")]
    assert rules(examine([*lines, an_event("turn.failed", TURN)])) == [(10, "turn")]
    assert rules(examine([*lines, an_event("turn.aborted", OTHER)])) == [(10, "turn")]
    assert rules(examine([*lines, an_event("turn.start", TURN, 1)])) == [(10, "turn")]


def test_a_turn_that_starts_while_another_is_open_is_found(examine: Examine):
    lines = sample()
    during = [an_event("turn.start", OTHER), an_event("turn.done", OTHER)]
    assert rules(examine([*lines[:3], *during, *lines[3:]])) == [(4, "turn")]


def test_a_turn_without_end_is_found_when_it_is_not_the_newest(examine: Examine):
    lines = sample()
    found = rules(examine([*lines[:3], an_event("turn.start", OTHER), an_event("turn.done", OTHER)]))
    assert found == [(4, "turn"), (3, "turn")]


def test_behind_a_line_that_is_lost_nobody_claims_to_know_whether_a_turn_runs(examine: Examine):
    lines = sample()
    assert rules(examine([*lines[:7], b"lost", lines[8]])) == [(8, "json")]


# --- tool calls ---------------------------------------------------------------------------------------------------


def test_a_tool_call_without_its_result_is_found(examine: Examine):
    lines = sample()
    assert rules(examine([*lines[:4], *lines[5:]])) == [(4, "tool-call")]


def test_a_result_without_its_call_is_found(examine: Examine):
    lines = sample()
    assert rules(examine([*lines[:3], *lines[4:5], *lines[6:]])) == [(4, "tool-call")]


def test_a_call_that_the_provider_ran_itself_needs_no_tool_message(examine: Examine):
    lines = sample()
    lines[3]["data"]["content"][0]["providerExecuted"] = True
    assert examine([*lines[:4], *lines[5:]]) == []


def test_one_call_id_twice_before_its_result_is_found(examine: Examine):
    lines = sample()
    lines[3]["data"]["content"] *= 2
    assert rules(examine(lines)) == [(4, "tool-call")]


# --- references ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    ["32ea75ba-88a7-4465-be29-57140327a2b7:1", "32ea75ba-88a7-4465-be29-57140327a2b7:", "gone:0", "0", ":0", "x:-1"],
)
def test_an_image_key_that_names_nothing_is_found(examine: Examine, key: str):
    lines = sample()
    lines[5]["data"] = {"shown": [key], "released": [key]}
    assert rules(examine(lines)) == [(6, "images")]


def test_an_image_that_was_let_go_of_is_not_shown_again(examine: Examine):
    lines = sample()
    again = lines[5] | {"id": "again"}
    assert rules(examine([*lines[:6], again, *lines[6:]])) == [(7, "images")]
    lines[5]["data"] = lines[5]["data"] | {"released": []}
    assert examine([*lines[:6], again, *lines[6:]]) == []


def test_a_line_of_images_says_something_and_stands_behind_its_step(examine: Examine):
    lines = sample()
    assert rules(examine([*lines[:3], lines[5], *lines[3:5], *lines[6:]])) == [(4, "images")]
    lines[5]["data"] = {"shown": [], "released": []}
    assert rules(examine(lines)) == [(6, "images")]


def shake(start: str, end: str, entry: str) -> Document:
    region = {
        "toolCallId": "c",
        "entryId": entry,
        "tool": "t",
        "intent": "i",
        "status": "ok",
        "lines": {"start": 1, "end": 1},
    }
    stats = {"coveredMessages": 1, "coveredTokens": 1, "freedTokens": 1, "digestTokens": 1}
    data = {
        "range": {"start": start, "end": end},
        "digest": "",
        "artifact": "artifact://shake/x",
        "regions": [region],
        "stats": stats,
    }
    return a_line("ishiki.chat.shake", data)


def compact(last: str, shakes: list[str]) -> Document:
    stats = {"coveredTokens": 1, "summaryTokens": 1, "freedTokens": 1}
    data = {
        "summary": "".join(f"## {section}\n无\n" for section in SECTIONS),
        "lastEntryId": last,
        "artifact": "artifact://compact/x",
        "coveredShakeIds": shakes,
        "stats": stats,
        "attempts": [],
    }
    return a_line("ishiki.chat.compact", data)


def test_folds_and_anchors_that_stand_above_are_sound(examine: Examine):
    first, last = sample()[0]["id"], sample()[4]["id"]
    assert examine([*sample(), shake(first, last, last), compact(last, ["a-ishiki.chat.shake"])]) == []


def test_each_reference_that_leads_nowhere_is_found_with_its_member(examine: Examine):
    first = sample()[0]["id"]
    found = examine(
        [
            *sample(),
            shake("x", "y", "z"),
            compact("w", [first]),
            a_line("ishiki.compact", {"summary": "", "lastEntryId": "v"}),
        ]
    )
    assert rules(found) == [(10, "reference")] * 3 + [(11, "reference")] * 2 + [(12, "reference")]
    named = ("range.start", "range.end", "regions[0].entryId", "lastEntryId", "coveredShakeIds[0]", "lastEntryId")
    assert all(member in finding.message for member, finding in zip(named, found, strict=True))


def test_folds_that_run_backwards_or_overlap_are_found(examine: Examine):
    lines = sample()
    ids = [line["id"] for line in lines]
    apart = [shake(ids[0], ids[2], ids[0]), shake(ids[3], ids[4], ids[4]) | {"id": "second"}]
    assert examine([*lines, *apart]) == []
    assert examine([*lines, *reversed(apart)]) == []
    assert rules(examine([*lines, shake(ids[4], ids[3], ids[4])])) == [(10, "fold")]
    within = shake(ids[2], ids[4], ids[4]) | {"id": "second"}
    (finding,) = examine([*lines, apart[0], within])
    assert (finding.line, finding.rule) == (11, "fold")
    assert "begins on line 3" in finding.message


def test_a_summary_has_its_seven_sections_and_its_attempts_count_from_one(examine: Examine):
    anchor = compact(sample()[4]["id"], [])
    tried: Document = {"provider": "p", "modelId": "m"}
    anchor["data"]["attempts"] = [tried | {"attempt": 1}, tried | {"attempt": 2}]
    assert examine([*sample(), anchor]) == []
    anchor["data"]["attempts"] = [tried | {"attempt": 0}]
    assert rules(examine([*sample(), anchor])) == [(10, "summary")]
    anchor = compact(sample()[4]["id"], [])
    for summary in ("", anchor["data"]["summary"].replace("## 工作状态\n无\n", ""), anchor["data"]["summary"] * 2):
        anchor["data"]["summary"] = summary
        assert rules(examine([*sample(), anchor])) == [(10, "summary")]


def test_a_key_that_a_script_both_set_and_deleted_is_found(examine: Examine):
    lines = sample()
    store = a_line("ishiki.codemode.store", {"set": {"a": 1, "b": 2}, "delete": ["c"]}, turn=TURN)
    assert examine([*lines[:5], store, *lines[5:]]) == []
    store["data"]["delete"] = ["a"]
    (finding,) = examine([*lines[:5], store, *lines[5:]])
    assert (finding.line, finding.rule) == (6, "store")
    assert "'a'" in finding.message


# --- addresses and sidecars ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "https://cdn.discordapp.com/attachments/1/2/cat.png?ex=1&hm=2",
        "http://media.discordapp.net/x",
        "https:\\/\\/cdn.discordapp.com\\/x",
        "HTTPS://CDN.DISCORDAPP.COM/x",
        "https://discord.com/api/v10/channels/1",
        "https://images-ext-1.discordapp.net/external/x",
        "https://api.telegram.org/file/bot123456:abc/photo.jpg",
        "http://127.0.0.1:8081/file/bot123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1/photo.jpg",
    ],
)
def test_the_address_of_a_platforms_host_is_found_wherever_it_stands(examine: Examine, url: str):
    lines = [*map(line_of, sample())]
    lines[8] = lines[8].replace("晚安".encode(), url.encode())
    assert rules(examine(lines)) == [(9, "url")]


@pytest.mark.parametrize(
    "url", ["https://example.org/cdn", "https://discord.com/channels/1/2", "https://t.me/x", "cdn.discordapp.com"]
)
def test_another_address_is_no_finding(examine: Examine, url: str):
    lines = sample()
    lines[8]["data"]["data"]["content"] = url
    assert examine(lines) == []


def test_an_item_that_is_no_asset_is_found(examine: Examine):
    for url in ("asset://../x", "asset://a/b", "file:///etc/passwd", "asset://", "asset://.hidden"):
        lines = sample()
        lines[1]["data"]["data"]["items"][0]["url"] = url
        assert rules(examine(lines)) == [(2, "asset")]


def put_sidecar(folder: Path, **members: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    ref = FileRef(platform="test", channel_id="channel", message_id="m1", file_id=members.pop("file_id", "f"))  # pyright: ignore[reportArgumentType] - plain text will do
    sidecar = Sidecar(**({"id": ASSET, "kind": "asset", "name": ASSET, "created_at": 1, "ref": ref} | members))  # pyright: ignore[reportArgumentType] - as above
    (folder / f"{ASSET}.json").write_bytes(write_sidecar(sidecar))


def test_every_asset_of_a_message_has_its_sidecar(examine: Examine, tmp_path: Path):
    assets = tmp_path / "assets"
    assert rules(examine(sample(), assets)) == [(1, "sidecar"), (2, "sidecar")]
    put_sidecar(assets)
    assert examine(sample(), assets) == []
    put_sidecar(assets, id="another")
    assert rules(examine(sample(), assets)) == [(1, "sidecar"), (2, "sidecar")]
    put_sidecar(assets, file_id="https://cdn.discordapp.com/x")
    assert rules(examine(sample(), assets)) == [(1, "sidecar"), (2, "sidecar")]
    (assets / f"{ASSET}.json").write_bytes(b"{")
    assert rules(examine(sample(), assets)) == [(1, "sidecar"), (2, "sidecar")]


def test_what_the_journal_holds_is_checked_with_the_file(tmp_path: Path):
    lines = [line_of(line) + b"\n" for line in sample()]
    path = tmp_path / "events.jsonl"
    path.write_bytes(lines[0] + lines[1][:20])
    put_sidecar(tmp_path / "elsewhere")
    sidecar = (tmp_path / "elsewhere" / f"{ASSET}.json").read_bytes()
    records = [
        Record(
            session="dc-1", offset=len(lines[0]), content=lines[1], sidecars={f"resources/assets/{ASSET}.json": sidecar}
        ),
        Record(session="dc-1", offset=len(lines[0] + lines[1]), content=b"".join(lines[2:]), sidecars={}),
    ]
    with View(path) as log:
        assert rules([*check(log, tmp_path / "assets")]) == [(1, "sidecar"), (2, "torn-tail")]
    with View(path, records) as log:
        assert [*check(log, tmp_path / "assets")] == []
    assert path.read_bytes() == lines[0] + lines[1][:20]
