"""What a runtime returns for the log: taken as it is where it may be, refused where it may not (contract section 9)."""

from typing import Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from core.codec import compact, decode, encode, members_of, parts_of, raw_json
from core.entries import AnyEntry, AssistantMessage, Attachment, Entry, ToolMessage, Unknown, fact_of
from core.errors import InvalidEntry
from core.ids import EntryId, TurnId, new_entry_id, new_uuid

NEVER_IN_A_TURN: Final = frozenset({"ishiki.chat.shake", "ishiki.chat.compact", "ishiki.compact"})
ALWAYS_IN_A_TURN: Final = frozenset({"ishiki.images", "ishiki.narrative", "ishiki.codemode.store"})

_NULL: Final = Raw(b"null")


def accept(raw: Raw, *, turn: TurnId, now: int) -> AnyEntry:
    """An entry of a runtime in the format's form, with ``id``, ``timestamp`` and ``turnId`` filled in where missing.

    What its ``data`` says stays as it came: unknown members, digits of numbers. Raises `InvalidEntry` for anything but
    assistant, tool and custom entries, and for what is not of the format's shape: platform facts, ``user``, ``state``
    and ``event`` are ours alone.
    """
    try:
        given = members_of(compact(raw))
        kind = msgspec.json.decode(given["type"], type=str)
        data = {name: value for name, value in members_of(given["data"]).items() if value != _NULL}
    except (msgspec.DecodeError, KeyError) as error:
        raise InvalidEntry("an entry needs a type and data") from error
    if kind == "message":
        data = {"id": raw_json(new_uuid()), "timestamp": raw_json(now)} | data
    elif kind not in NEVER_IN_A_TURN | ALWAYS_IN_A_TURN:
        raise InvalidEntry("only assistant, tool and custom entries of the format are taken")
    entry = Entry(
        id=EntryId(_text(given.get("id")) or new_entry_id()),
        type=kind,
        data=Unknown(raw=Raw(msgspec.json.encode(data))),
        timestamp=_number(given.get("timestamp")) or now,
        turn_id=None if kind in NEVER_IN_A_TURN else turn,
    )
    read = decode(encode(entry))
    _check(kind, read)
    order = {name: place for place, name in enumerate(read.data.__struct_encode_fields__)}
    ordered = dict(sorted(data.items(), key=lambda member: order.get(member[0], len(order))))
    entry = replace(entry, data=Unknown(raw=Raw(msgspec.json.encode(ordered))))
    return renumbered(entry, entry.id) if message_id(entry) == entry.id else entry


def message_id(entry: AnyEntry) -> str | None:
    """The message's own id in an accepted entry; None where it is no message."""
    return _text(members_of(entry.data.raw).get("id")) if entry.type == "message" else None


def renumbered(entry: AnyEntry, taken: str) -> AnyEntry:
    """The entry with another id in the place of one that is taken."""
    if entry.id == taken:
        return replace(entry, id=new_entry_id())
    data = members_of(entry.data.raw) | {"id": raw_json(new_uuid())}
    return replace(entry, data=Unknown(raw=Raw(msgspec.json.encode(data))))


def _check(kind: str, read: AnyEntry) -> None:
    """Whether a runtime may say this, and whether its parts can be read."""
    if kind != "message":
        return
    match read.data:
        case AssistantMessage(content=content):
            parts_of(content)
        case ToolMessage(content=content):
            if bytes(content)[:1] != b"[":
                raise InvalidEntry("the content of a tool message is a list of results")
            parts_of(content)
        case _:
            fact = fact_of(read)
            if not isinstance(fact, Attachment) or fact.source == "platform":
                raise InvalidEntry(
                    "of messages only assistant, tool and the attachments of tools are taken from a runtime"
                )


def _text(raw: Raw | None) -> str | None:
    try:
        return msgspec.json.decode(raw, type=str) if raw else None
    except msgspec.DecodeError:
        return None


def _number(raw: Raw | None) -> int | None:
    try:
        return msgspec.json.decode(raw, type=int) if raw else None
    except msgspec.DecodeError:
        return None
