"""Reading and writing the lines of a log.

The bytes of a line stay the truth: readers that hand a line on hand on its bytes, so unknown members, unknown kinds
and foreign key order are kept.
"""

import json
import re
from collections.abc import Iterable
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct

from core.entries import (
    ABSENT,
    ATTACHMENT,
    CREATED,
    DELETED,
    AnyEntry,
    AssistantMessage,
    Attachment,
    ChatCompact,
    ChatShake,
    CodemodeStore,
    Compact,
    CustomMessage,
    Entry,
    Images,
    MessageCreated,
    MessageDeleted,
    Narrative,
    Part,
    State,
    SystemMessage,
    TextPart,
    ToolMessage,
    TurnEvent,
    Unknown,
    UserMessage,
)
from core.errors import InvalidEntry, MalformedLine

_CUSTOM_MESSAGES: dict[str, Any] = {
    CREATED: Entry[CustomMessage[MessageCreated]],
    DELETED: Entry[CustomMessage[MessageDeleted]],
    ATTACHMENT: Entry[CustomMessage[Attachment]],
}
_MESSAGES: dict[str, Any] = {
    "user": Entry[UserMessage],
    "system": Entry[SystemMessage],
    "assistant": Entry[AssistantMessage],
    "tool": Entry[ToolMessage],
}
_EVENTS = ("turn.start", "turn.done", "turn.failed", "turn.aborted")
_ENTRIES: dict[str, Any] = {
    "state": Entry[State],
    "ishiki.chat.shake": Entry[ChatShake],
    "ishiki.chat.compact": Entry[ChatCompact],
    "ishiki.compact": Entry[Compact],
    "ishiki.images": Entry[Images],
    "ishiki.narrative": Entry[Narrative],
    "ishiki.codemode.store": Entry[CodemodeStore],
}


class _Kind(Struct):
    role: Any = None
    type: Any = None


class _Peek(Struct):
    type: str
    data: Raw


_peek = msgspec.json.Decoder(_Peek)
_kind = msgspec.json.Decoder(_Kind)
_unknown = msgspec.json.Decoder(Entry[Raw])
_decoders: dict[tuple[str, str], msgspec.json.Decoder[AnyEntry]] = {
    **{("custom", name): msgspec.json.Decoder(model) for name, model in _CUSTOM_MESSAGES.items()},
    **{("message", role): msgspec.json.Decoder(model) for role, model in _MESSAGES.items()},
    **{("event", name): msgspec.json.Decoder(Entry[TurnEvent]) for name in _EVENTS},
    **{("entry", name): msgspec.json.Decoder(model) for name, model in _ENTRIES.items()},
}

_REFUSED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

# A line of ours, whose ids are UUIDs, names its kind at one of three places. This only guesses: the chosen model, and a
# look at what it read, tell whether that was right.
_UUID = "0" * 36
_EVENT = f'{{"id":"{_UUID}","type":"event","data":{{"type":"'
_MESSAGE = f'{{"id":"{_UUID}","type":"message","data":{{"id":"{_UUID}","timestamp":1700000000000,"role":"'
_AT_EVENT = slice(len(_EVENT) - 27, len(_EVENT))
_AT_ROLE = slice(len(_MESSAGE) - 8, len(_MESSAGE) + 4)
_AT_CUSTOM = slice(len(_MESSAGE) - 8, len(_MESSAGE) + 32)
_Guess = tuple[msgspec.json.Decoder[AnyEntry], str, str | None]
_guesses: dict[bytes, _Guess] = {
    _EVENT[_AT_EVENT].encode(): (_decoders["event", "turn.start"], "event", None),
    **{f'"role":"{role[:4]}'.encode(): (_decoders["message", role], "message", None) for role in _MESSAGES},
    **{
        f'"role":"custom","type":"{name}"'.encode()[:40]: (_decoders["custom", name], "message", name)
        for name in _CUSTOM_MESSAGES
    },
}
"""The model, the entry's type, and the name where it is a custom message."""


def decode(line: bytes) -> AnyEntry:
    """Read one line without its line feed.

    Raises `InvalidEntry` where it is no JSON object of the format's shape, `MalformedLine` where it is no JSON. An
    unknown kind is no error: its entry has `Unknown` data. A line that only the standard library's parser takes (lone
    surrogates, numbers out of range) is read with U+FFFD and the largest float in their place; its bytes are not
    touched.
    """
    guess = _guesses.get(line[_AT_CUSTOM]) or _guesses.get(line[_AT_ROLE]) or _guesses.get(line[_AT_EVENT])
    if guess is not None:
        decoder, entry_type, name = guess
        try:
            entry = decoder.decode(line)
        except _REFUSED:
            pass  # the guess was wrong, or the line is: the slow way tells which
        else:
            if entry.type == entry_type and (name is None or entry.data.type == name):
                return entry
    return _decode_slowly(line)


def _decode_slowly(line: bytes) -> AnyEntry:
    try:
        return _read(line)
    except _REFUSED as error:
        scrubbed = _scrub(line, error)
    try:
        return _read(scrubbed)
    except _REFUSED as error:
        raise InvalidEntry(str(error)) from error


def _read(line: bytes) -> AnyEntry:
    peek = _peek.decode(line)
    decoder = _decoders.get(_name(peek.type, _kind.decode(peek.data)))
    if decoder is not None:
        return decoder.decode(line)
    entry = _unknown.decode(line)
    return cast("AnyEntry", msgspec.structs.replace(entry, data=Unknown(raw=entry.data)))


def _name(entry_type: str, kind: _Kind) -> tuple[str, str]:
    if entry_type == "message":
        return ("custom", str(kind.type)) if kind.role == "custom" else ("message", str(kind.role))
    return ("event", str(kind.type)) if entry_type == "event" else ("entry", entry_type)


_SURROGATE = re.compile("[\ud800-\udfff]")


def _scrub(line: bytes, reason: Exception) -> bytes:
    """The same line in a form that msgspec takes. Raises `InvalidEntry` where the standard library refuses it too."""
    try:
        value = json.loads(line, parse_constant=_refuse_constant, parse_float=_finite)
        text = json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError) as error:
        worded = error if isinstance(reason, msgspec.ValidationError) else reason
        raise MalformedLine(str(worded)) from error
    return _SURROGATE.sub("\ufffd", text).encode()


def _refuse_constant(name: str) -> float:
    raise MalformedLine(f"{name} is no JSON")


def _finite(digits: str) -> float:
    return max(min(float(digits), 1.7976931348623157e308), -1.7976931348623157e308)


class _PartKind(Struct):
    type: str


_part_kind = msgspec.json.Decoder(_PartKind)
_parts = msgspec.json.Decoder(list[Raw])
_part: msgspec.json.Decoder[Part] = msgspec.json.Decoder(Part)  # pyright: ignore[reportAssignmentType] - a union is no type[T]


def parts_of(content: Raw) -> list[Part | Raw]:
    """Read the parts of a message's ``content``; a plain text is one `TextPart`, an unknown part stays `Raw`.

    Raises `InvalidEntry` where it is neither text nor a list.
    """
    try:
        return _read_parts(content)
    except _REFUSED as error:
        scrubbed = _scrub(bytes(content), error)
    try:
        return _read_parts(Raw(scrubbed))
    except _REFUSED as error:
        raise InvalidEntry(str(error)) from error


def _read_parts(content: Raw) -> list[Part | Raw]:
    if bytes(memoryview(content)[:1]) == b'"':
        return [TextPart(text=msgspec.json.decode(content, type=str))]
    return [_read_part(raw) for raw in _parts.decode(content)]


def _read_part(raw: Raw) -> Part | Raw:
    try:
        return _part.decode(raw)
    except msgspec.ValidationError:
        return raw


# --- writing ------------------------------------------------------------------------------------------------------

_encoder = msgspec.json.Encoder()
_members = msgspec.json.Decoder(dict[str, Raw])


def encode(entry: AnyEntry) -> bytes:
    """One line without its line feed: compact, non-ASCII literal, lone surrogates as ``\\udXXX``."""
    if isinstance(entry.data, Unknown):
        entry = msgspec.structs.replace(entry, data=entry.data.raw)
    try:
        return _encoder.encode(entry)
    except UnicodeEncodeError:
        return _written(entry)


def raw_json(value: object) -> Raw:
    """Any JSON value as bytes. Raises `InvalidEntry` for NaN, infinities and what is no JSON."""
    try:
        return Raw(_dump(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidEntry(f"this is no JSON: {error}") from error


def compact(text: bytes | Raw) -> Raw:
    """JSON of somebody else in our form: no blanks, no line feed that would end the line; numbers keep their digits.

    Raises `InvalidEntry` where it is no JSON.
    """
    try:
        return Raw(msgspec.json.format(bytes(text), indent=-1))
    except (msgspec.DecodeError, RecursionError):
        try:
            return raw_json(json.loads(bytes(text), parse_constant=_refuse_constant))
        except (ValueError, RecursionError) as error:
            raise InvalidEntry("this is no JSON, or nested too deep") from error


def members_of(text: bytes | Raw) -> dict[str, Raw]:
    """The members of a JSON object, each as it stands. Raises `InvalidEntry` where it is none."""
    try:
        return _members.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            loaded: object = json.loads(bytes(text), parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise InvalidEntry("this is no JSON, or nested too deep") from error
    if not isinstance(loaded, dict):
        raise InvalidEntry("this is no JSON object")
    return {name: raw_json(value) for name, value in cast("dict[str, object]", loaded).items()}


def _dump(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # The handler writes a lone surrogate as \udXXX, which is JSON's own escape for it.
    return text.encode("utf-8", "backslashreplace")


def _written(value: object) -> bytes:
    """A model as msgspec would write it, but for lone surrogates; what is JSON already stays as it is."""
    match value:
        case Struct():
            config = value.__struct_config__
            names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
            members = [(name, getattr(value, field)) for field, name in names]
            kind = [(config.tag_field, config.tag)] if config.tag_field else []
            return _object([*kind, *(member for member in members if member[1] not in (None, ABSENT))])
        case Raw():
            return bytes(value)
        case list():
            return b"[" + b",".join(_written(item) for item in cast("list[object]", value)) + b"]"
        case dict():
            return _object(cast("dict[str, object]", value).items())
        case _:
            return _dump(value)


def _object(members: Iterable[tuple[str, object]]) -> bytes:
    return b"{" + b",".join(_dump(name) + b":" + _written(value) for name, value in members) + b"}"
