"""The alphabet: samples pass unchanged, nothing is lost, nothing is mistaken for something else."""

import json
import math
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import codec
from core.codec import decode, encode, parts_of, raw_json
from core.entries import (
    ABSENT,
    AnyEntry,
    AssistantMessage,
    Attachment,
    AttachmentItem,
    Author,
    CodemodeStore,
    CustomMessage,
    Edited,
    Entry,
    FailureCause,
    Forward,
    ImagePart,
    Images,
    MessageCreated,
    MessageDeleted,
    Place,
    Quote,
    State,
    SystemMessage,
    TextPart,
    ToolCallPart,
    ToolMessage,
    ToolResultPart,
    TurnDone,
    TurnFailed,
    TurnStart,
    Unknown,
    UserMessage,
    custom_message,
    fact_of,
    message_entry,
    turn_event,
)
from core.errors import InvalidEntry, MalformedLine
from core.ids import ChannelId, EntryId, MessageId, ThreadId, TurnId, UserId

SAMPLES = Path(__file__).parents[1] / "samples"
LINES = {
    f"{path.stem}:{number}": line
    for path in sorted(SAMPLES.glob("*.jsonl"))
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1)
    if line and not (path.stem == "broken" and number == 5)
}
# The payloads of the format page's own samples begin with the timestamp, ours with the platform: those are read alike.
# A state holds members that are its host's affair. What hands such lines on hands on their bytes.
OURS = {name: line for name, line in LINES.items() if b'"data":{"timestamp":' not in line and b'"state"' not in line}

text = st.text(alphabet=st.characters(codec="utf-8"), max_size=20)
any_text = st.text(max_size=20)  # lone surrogates too
number = st.integers(-(2**63), 2**70)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)


# --- samples ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OURS)
def test_a_sample_line_passes_through_unchanged(name: str):
    entry = decode(OURS[name])
    assert encode(entry) == OURS[name]
    assert not isinstance(entry.data, Unknown)


@pytest.mark.parametrize("name", LINES)
def test_every_sample_line_means_the_same_after_passing_through(name: str):
    written = json.loads(encode(decode(LINES[name])))
    meant = json.loads(LINES[name])
    meant["data"].pop("userName", None)
    assert written == meant


def test_the_broken_line_is_malformed_and_the_others_are_read():
    lines = (SAMPLES / "broken.jsonl").read_bytes().splitlines()
    with pytest.raises(MalformedLine, match=r"byte 51"):
        decode(lines[4])
    assert len([decode(line) for line in lines[:4] + lines[5:]]) == 8


# --- what goes in comes out ---------------------------------------------------------------------------------------


@given(json_values)
def test_any_json_value_survives_in_every_opaque_place(value: Any):
    raw = raw_json(value)
    made: list[AnyEntry] = [
        message_entry(UserMessage(id="m", timestamp=1, content=raw, provider_options=raw), now=1),
        message_entry(
            AssistantMessage(id="m", timestamp=1, content=raw, usage=raw, finish_reason="stop", provider_options=raw),
            now=1,
        ),
        message_entry(ToolMessage(id="m", timestamp=1, content=raw), now=1),
        turn_event(TurnDone(turn_id=TurnId("t"), usage=raw), now=1),
        Entry(
            id=EntryId("e"), type="ishiki.codemode.store", data=CodemodeStore(set={"k": raw}, delete=[]), timestamp=1
        ),
    ]
    for entry in made:
        again = decode(encode(entry))
        assert encode(again) == encode(entry)
        document = json.loads(encode(again))["data"]
        for place in ("content", "usage", "providerOptions"):
            assert document.get(place, value) == value
        assert document.get("set", {"k": value}) == {"k": value}


authors = st.builds(Author, id=text.map(UserId), name=st.none() | text)
places = st.builds(Place, id=text, name=st.none() | text)
quotes = st.builds(
    Quote,
    id=text.map(MessageId),
    content=st.none() | text,
    user=st.none() | authors,
    channel=st.none() | places,
    guild=st.none() | places,
)
key = {"platform": text, "self_id": text, "channel_id": text, "message_id": text, "timestamp": number}
facts = st.one_of(
    st.builds(
        MessageCreated,
        **key,
        content=text,
        is_direct=st.booleans(),
        user=authors,
        guild_id=st.none() | text,
        quote=st.none() | quotes,
        thread_id=st.none() | text.map(ThreadId),
        edited=st.none() | st.builds(Edited, timestamp=number, revision=number),
        forward=st.none() | st.builds(Forward, user=st.none() | authors, channel=st.none() | places, timestamp=number),
        album=st.none() | text,
        via=st.sampled_from([None, "webhook", "bot", "anonymous-admin", "channel"]),
    ),
    st.builds(
        MessageDeleted,
        **key,
        user_id=st.none() | text,
        operator_id=st.none() | text,
        inferred=st.none() | st.booleans(),
    ),
    st.builds(
        Attachment,
        source=text,
        platform=st.none() | text,
        tool_name=st.none() | text,
        items=st.lists(st.builds(AttachmentItem, url=text, media_type=text, width=st.none() | number), max_size=3),
    ),
)


@given(facts, number, st.none() | text)
def test_a_fact_that_is_written_read_and_written_is_the_same_bytes(fact: Any, now: int, turn: TurnId | None):
    entry = custom_message(fact, now=now, turn_id=turn)
    line = encode(entry)
    again = decode(line)
    assert again == entry
    assert encode(again) == line
    assert b"\n" not in line
    assert b"null" not in re.sub(rb'"(?:[^"\\]|\\.)*"', b"", line)


@given(any_text, any_text)
def test_lone_surrogates_are_written_as_escapes_that_any_parser_reads(content: str, name: str):
    fact = MessageCreated(
        platform="discord",
        self_id=UserId("1"),
        channel_id=ChannelId("2"),
        message_id=MessageId("3"),
        timestamp=4,
        content=content,
        is_direct=True,
        user=Author(id=UserId("5"), name=name),
    )
    line = encode(custom_message(fact, now=1))
    line.decode()
    payload = json.loads(line)["data"]["data"]
    # Two escapes in a row that make a pair are one character to every JSON reader.
    assert payload["content"].encode("utf-16", "surrogatepass") == content.encode("utf-16", "surrogatepass")
    read = fact_of(decode(line))
    assert isinstance(read, MessageCreated)
    assert read.user.id == "5"
    read.content.encode()


def test_what_surrounds_a_lone_surrogate_is_written_as_ever():
    usage = raw_json(None)
    message = AssistantMessage(
        id="\ud800", timestamp=1, content=msgspec.Raw(b"[1.50,1e3,null,12345678901234567890123]"), usage=usage
    )
    line = encode(message_entry(message, now=1))
    assert b'"data":{"id":"\\ud800","timestamp":1,"role":"assistant","content":[1.50,1e3,null,1234' in line
    assert line.endswith(b'"usage":null},"timestamp":1}')
    event = encode(turn_event(TurnStart(turn_id=TurnId("\udfff")), now=1))
    assert b'"data":{"type":"turn.start","turnId":"\\udfff"}' in event


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, object(), {1, 2}, [math.nan], {(1,): 2}])
def test_what_is_no_json_is_refused_when_it_would_be_written(value: object):
    with pytest.raises(InvalidEntry):
        raw_json(value)


def test_a_value_without_end_is_refused_when_it_would_be_written():
    ring: list[object] = []
    ring.append(ring)
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (ring, deep):
        with pytest.raises(InvalidEntry):
            raw_json(value)


# --- what others wrote --------------------------------------------------------------------------------------------

CREATED = LINES["seed-lines:4"]


def with_member(member: str, line: bytes = CREATED) -> bytes:
    """A line with one more member in its payload."""
    return line.replace(b'"isDirect"', member.encode() + b',"isDirect"')


def payload_of(line: bytes) -> object:
    return fact_of(decode(line))


@pytest.mark.parametrize(
    "member",
    [
        '"x":"\\ud800"',
        '"x":1e999',
        '"x":-1e999',
        f'"x":{"9" * 5000}',
        '"x":{"role":"custom","type":"ishiki.message.deleted"}',
        '"x":[[[[[[]]]]]]',
        '"x":null',
        '"user":null,"user":{"id":"u1","name":"阿岚"}',
    ],
)
def test_a_member_that_we_do_not_know_changes_nothing(member: str):
    assert payload_of(with_member(member)) == payload_of(CREATED)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"{}x",
        b"nothing",
        b"\x00\x00",
        with_member('"x":NaN'),
        with_member('"x":Infinity'),
        CREATED.replace("阿".encode(), b"\xff\xfe"),
        b'{"id":' * 50_000,
        b"[" * 50_000,
    ],
)
def test_a_line_that_both_parsers_refuse_is_malformed(line: bytes):
    with pytest.raises(MalformedLine):
        decode(line)


@pytest.mark.parametrize(
    ("line", "member"),
    [
        (b"[]", "object"),
        (b"7", "object"),
        (b'{"id":"1","type":"x","timestamp":1}', "data"),
        (b'{"id":"1","type":"x","data":[],"timestamp":1}', "object"),
        (b'{"id":1,"type":"x","data":{},"timestamp":1}', r"\$\.id"),
        (CREATED.replace(b'"isDirect":true', b'"isDirect":"yes"'), r"\$\.data\.data\.isDirect"),
        (CREATED.replace(b'"selfId":"bot",', b""), "selfId"),
        (b'{"id":"1","type":"event","data":{"type":"turn.start"},"timestamp":1}', "turnId"),
        (with_member('"x":"\\ud800"').replace(b'"isDirect":true', b'"isDirect":1'), r"\$\.data\.data\.isDirect"),
    ],
)
def test_a_line_of_the_wrong_shape_names_the_member_and_is_not_called_malformed(line: bytes, member: str):
    with pytest.raises(InvalidEntry, match=member) as refused:
        decode(line)
    assert not isinstance(refused.value, MalformedLine)


@pytest.mark.parametrize(
    "line",
    [
        b'{"id":"1","type":"ishiki.checkpoint","data":{"a": [1,  2], "b":"\\u00e9"},"timestamp":1,"parentId":"0"}',
        b'{"id":"1","type":"event","data":{"type":"tool.start","tool":"x"},"timestamp":1}',
        b'{"id":"1","type":"message","data":{"id":"m","timestamp":1,"role":"custom","type":"onebot.x","data":{}},"timestamp":1}',
        b'{"id":"1","type":"message","data":{"role":"narrator"},"timestamp":1,"turnId":"t"}',
        b'{"id":"1","type":"message","data":{"role":["custom"],"type":{}},"timestamp":1}',
        # As long as a line of ours up to the word, which is no role.
        b'{"id":"%b","type":"message","data":{"id":"%b","timestamp":1700000000000,"kind":"user","content":"a"},"timestamp":1}'
        % (b"0" * 36, b"1" * 36),
    ],
)
def test_a_kind_that_we_do_not_know_is_kept_byte_for_byte(line: bytes):
    entry = decode(line)
    assert isinstance(entry.data, Unknown)
    assert encode(entry) == line


TALK = [
    '"role":"custom","type":"ishiki.message.deleted"',
    '{"role":"tool","content":[]}',
    '"type":"event","data":{"type":"turn.start","turnId":"t"}',
    '\n"role":"assistant"\u2028\u0085',
]


@given(st.sampled_from(TALK) | text)
def test_what_people_say_is_never_taken_for_the_kind_of_the_line(content: str):
    fact = payload_of(CREATED)
    assert isinstance(fact, MessageCreated)
    fact = msgspec.structs.replace(fact, content=content, user=Author(id=UserId(content), name=content))
    entry = custom_message(fact, now=1)
    assert decode(encode(entry)) == entry


@given(st.sampled_from([*LINES]), st.sampled_from([*LINES]), st.booleans())
@settings(max_examples=200)
def test_another_line_inside_of_a_line_does_not_change_its_kind(outer: str, inner: str, first: bool):
    """Foreign writers order members as they like, and may hold whole lines of ours in members that we do not know."""
    document = json.loads(LINES[outer])
    nested = json.loads(LINES[inner])
    data = {"x": nested, **document["data"]} if first else {**document["data"], "x": nested}
    turned = {"y": nested, "data": data, **{name: value for name, value in document.items() if name != "data"}}
    line = json.dumps(turned, ensure_ascii=False, separators=(",", ":")).encode()
    assert decode(line) == decode(LINES[outer])


def test_a_null_member_reads_as_an_absent_one():
    entry = decode(CREATED[:-1] + b',"turnId":null}')
    assert entry.turn_id is None
    assert b"turnId" not in encode(entry)


# --- parts --------------------------------------------------------------------------------------------------------


def test_the_parts_of_a_message_are_read_and_an_unknown_one_stays_as_it_is():
    content = raw_json(
        [
            {"type": "text", "text": "a"},
            {"type": "tool-call", "toolCallId": "1", "toolName": "t", "input": {"k": [1, None]}},
            {
                "type": "tool-result",
                "toolCallId": "1",
                "toolName": "t",
                "output": {"type": "error-text", "value": "no"},
            },
            {"type": "image", "image": "asset://x", "mediaType": "image/png"},
            {"type": "hologram", "z": 1},
            {"no": "type"},
            {"type": "text"},
            7,
        ]
    )
    said, call, result, image, *strange = parts_of(content)
    assert said == TextPart(text="a")
    assert isinstance(call, ToolCallPart)
    assert bytes(call.input) == b'{"k":[1,null]}'
    assert isinstance(result, ToolResultPart)
    assert result.output.failed
    assert isinstance(image, ImagePart)
    assert [bytes(part) for part in strange if isinstance(part, msgspec.Raw)] == [
        b'{"type":"hologram","z":1}',
        b'{"no":"type"}',
        b'{"type":"text"}',
        b"7",
    ]


def test_a_plain_text_is_one_part_and_anything_else_is_refused():
    assert parts_of(raw_json("hi\n")) == [TextPart(text="hi\n")]
    spaced = decode(
        b'{"id": "1", "type": "message", "timestamp": 1, '
        b'"data": {"id": "m", "timestamp": 1, "role": "user", "content": "x"}}'
    )
    assert isinstance(spaced.data, UserMessage)
    assert parts_of(spaced.data.content) == [TextPart(text="x")]
    assert parts_of(raw_json([])) == []
    for content in (raw_json({}), raw_json(None), raw_json(5), ABSENT):
        with pytest.raises(InvalidEntry):
            parts_of(content)


def test_a_text_with_a_lone_surrogate_is_still_read():
    (part,) = parts_of(msgspec.Raw(b'"\\ud800!"'))
    assert part == TextPart(text="\ufffd!")
    (part,) = parts_of(msgspec.Raw(b'[{"type":"text","text":"\\ud800!"}]'))
    assert part == TextPart(text="\ufffd!")


# --- each kind ----------------------------------------------------------------------------------------------------


def test_each_kind_of_the_format_is_read_as_its_own_model():
    read = {type(decode(line).data).__name__ for line in LINES.values()}
    payloads = {type(fact).__name__ for line in LINES.values() if (fact := fact_of(decode(line)))}
    assert payloads == {"MessageCreated", "MessageDeleted", "Attachment"}
    assert read == {
        "CustomMessage", "UserMessage", "SystemMessage", "AssistantMessage", "ToolMessage", "TurnStart", "TurnDone",
        "TurnFailed", "TurnAborted", "State", "ChatShake", "ChatCompact", "Compact", "Images", "Narrative",
        "CodemodeStore",
    }  # fmt: skip


def test_a_failed_turn_says_why_and_a_state_has_a_version():
    failed = turn_event(TurnFailed(turn_id=TurnId("t"), error=FailureCause(name="X", message="m")), now=5)
    assert failed.turn_id == "t"
    assert encode(failed).endswith(
        b'"data":{"type":"turn.failed","turnId":"t","error":{"name":"X","message":"m"}},"timestamp":5,"turnId":"t"}'
    )
    state: Entry[State] = Entry(id=EntryId("s"), type="state", data=State(version=2**70), timestamp=1)
    assert encode(decode(encode(state))) == encode(state)
    assert codec.encode(
        Entry(id=EntryId("i"), type="ishiki.images", data=Images(shown=[], released=[]), timestamp=1)
    ) == (b'{"id":"i","type":"ishiki.images","data":{"shown":[],"released":[]},"timestamp":1}')
    assert isinstance(decode(LINES["format-lines:2"]).data, SystemMessage)
    assert not isinstance(decode(LINES["format-lines:2"]).data, CustomMessage)
