"""What a runtime returns for the log: taken as it is where it may be, refused where it may not (contract section 9)."""

from typing import Final

import msgspec
from msgspec import Raw

from core.codec import decode, encode, raw_json
from core.entries import AnyEntry, AssistantMessage, Attachment, Entry, ToolMessage, Unknown, fact_of
from core.errors import InvalidEntry
from core.ids import EntryId, TurnId, new_entry_id, new_uuid

NEVER_IN_A_TURN: Final = frozenset({"ishiki.chat.shake", "ishiki.chat.compact", "ishiki.compact"})
ALWAYS_IN_A_TURN: Final = frozenset({"ishiki.images", "ishiki.narrative", "ishiki.codemode.store"})

_members = msgspec.json.Decoder(dict[str, Raw])


def accept(raw: Raw, *, turn: TurnId, now: int) -> AnyEntry:
    """An entry of a runtime with ``id``, ``timestamp`` and ``turnId`` filled in where missing.

    Its ``data`` stays as it came, byte for byte, but for a message's own ``id`` and ``timestamp`` where it has none.
    Raises `InvalidEntry` for anything but assistant, tool and custom entries, and for what is not of the format's
    shape: platform facts, ``user``, ``state`` and ``event`` are ours alone.
    """
    try:
        given = _members.decode(raw)
        kind = msgspec.json.decode(given["type"], type=str)
        data = _members.decode(given["data"])
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
    fact = fact_of(read)
    of_a_tool = isinstance(fact, Attachment) and fact.source != "platform"
    if kind == "message" and not (of_a_tool or isinstance(read.data, AssistantMessage | ToolMessage)):
        raise InvalidEntry("of messages only assistant, tool and the attachments of tools are taken from a runtime")
    return entry


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
