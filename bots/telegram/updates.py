"""Updates as they come: JSON from outside, read one by one so that a bad one harms no other."""

import json
import re
from typing import Any, Final, NamedTuple, cast

from core.access import Visit
from core.ids import ChannelId, UserId

MESSAGES: Final = ("message", "channel_post", "business_message")
EDITS: Final = ("edited_message", "edited_channel_post", "edited_business_message")
CONNECTIONS: Final = "business_connection"
DELETIONS: Final = "deleted_business_messages"
SILENT: Final = ("callback_query", "my_chat_member")
"""Kinds that leave nothing in the log."""
KINDS: Final = (*MESSAGES, *EDITS, CONNECTIONS, DELETIONS, *SILENT)
"""What `getUpdates` is asked for, by name, every time; else the server goes on with the list of the last call."""

_POLL: Final = {"allows_revoting": False, "members_only": False}
_OPTION: Final = {"persistent_id": ""}
_NAME: Final = re.compile(r"[a-z_]{1,40}")
_TOKEN: Final = re.compile(r"\b\d{5,}(?::|%3[Aa])[A-Za-z0-9_-]{20,}")
_QUERY: Final = re.compile(r'\?(?:[^\s"\\]|\\(?:u[0-9a-f]{4}|[/\\]))+')
_BLANK: Final = "***"


class Place(NamedTuple):
    """Where an update belongs that cannot be read."""

    visit: Visit
    business_connection: str | None


def number_of(raw: object) -> int | None:
    """The ``update_id``."""
    return _integer(object_of(raw).get("update_id"))


def kind_of(raw: object) -> str:
    """The kind of an update, a word that can be counted under whatever it was."""
    names = object_of(raw).keys() - {"update_id"}
    known = next((kind for kind in KINDS if kind in names), None)
    return known or next((name for name in sorted(names) if _NAME.fullmatch(name)), "no update")


def place_of(raw: object) -> Place | None:
    """Where an update belongs that cannot be read; None where not even that can be."""
    payload = object_of(object_of(raw).get(kind_of(raw)))
    message = object_of(payload.get("message", payload))
    chat = object_of(message.get("chat"))
    number, user = _integer(chat.get("id")), _integer(object_of(payload.get("from")).get("id"))
    if number is None:
        return None
    connection = message.get("business_connection_id")
    visit = Visit(
        channel=ChannelId(str(number)),
        user=None if user is None else UserId(str(user)),
        direct=chat.get("type") == "private",
        business=connection is not None,
    )
    return Place(visit, None if connection is None else str(connection))


def completed(raw: object) -> object:
    """The same with what the library demands of a poll since Bot API 9.6 and 10.0, and older servers do not send."""
    if isinstance(raw, list):
        return [completed(item) for item in cast("list[object]", raw)]
    if not isinstance(raw, dict):
        return raw
    members = {name: completed(value) for name, value in cast("dict[str, object]", raw).items()}
    if poll := object_of(members.get("poll")):
        options: list[object] = poll["options"] if isinstance(poll.get("options"), list) else []
        members["poll"] = _POLL | poll | {"options": [_OPTION | object_of(option) for option in options]}
    return members


def blanked(raw: object, token: str) -> str:
    """An update as text, without query strings and tokens."""
    text = json.dumps(raw).replace(token, _BLANK)
    return _QUERY.sub(f"?{_BLANK}", _TOKEN.sub(_BLANK, text))


def object_of(value: object) -> dict[str, Any]:
    """A JSON object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType] - JSON from outside


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
