"""Payloads as the library needs them: what it demands and Discord may leave out is filled in before it parses.

Where a member is missing the library raises, and the whole message would be lost. The defaults are those of the API
reference (User, Attachment, Poll Object), where ``text`` of a poll answer is optional and ``expiry`` may be null.
Ordinary messages, which lack nothing, do not come here: `bots.discord.objects` makes those.
"""

from collections.abc import Callable
from typing import Any, Final, cast

Json = dict[str, Any]

_USER: Final = {"username": "", "discriminator": "0", "avatar": None}
_FILE: Final = {"filename": "file", "size": 0, "proxy_url": ""}
_CHANNEL: Final = {"name": "", "position": 0, "bitrate": 0, "user_limit": 0}
_THREAD: Final = {
    "parent_id": 0,
    "owner_id": 0,
    "message_count": 0,
    "member_count": 0,
    "thread_metadata": {
        "archived": False,
        "auto_archive_duration": 60,
        "archive_timestamp": "1970-01-01T00:00:00+00:00",
    },
}
_THREADS: Final = frozenset({10, 11, 12})


def completed(kind: str, payload: Any) -> Any:  # noqa: ANN401 - JSON from outside, and still so
    """The payload of an event, completed; one of another kind or shape as it is."""
    if kind in {"MESSAGE_CREATE", "MESSAGE_UPDATE"}:
        return _message(payload)
    if kind == "INTERACTION_CREATE" and isinstance(payload, dict):
        return _interaction(cast("Json", payload))
    if kind == "MESSAGE_DELETE_BULK" and isinstance(payload, dict):
        event = cast("Json", payload)
        return event | {"ids": [number for number in _list(event.get("ids")) if str(number).isdecimal()]}
    return payload


def _interaction(event: Json) -> Json:
    """A press counts in the channel that the event names, whatever the channel object in it leaves out."""
    channel = event.get("channel")
    known = cast("Json", channel) if isinstance(channel, dict) else {}
    event = {"attachment_size_limit": 0, "version": 1} | event
    kind = {"type": 0 if event.get("guild_id") else 1} | known
    needed = _CHANNEL | (_THREAD if kind["type"] in _THREADS else {})
    event["channel"] = needed | kind | {"id": event.get("channel_id")}
    _change(event, "message", _message)
    _change(event, "user", lambda user: _user(user) or user)
    _change(event, "member", _member)
    return event


def _member(value: object) -> object:
    if not isinstance(value, dict):
        return value
    member = cast("Json", {"roles": [], "flags": 0}) | cast("Json", value)
    _change(member, "user", lambda user: _user(user) or user)
    return member


def _message(payload: object) -> object:
    if not isinstance(payload, dict):
        return payload
    told = cast("Json", payload)
    message = {name: value for name, value in told.items() if (name, value) != ("thread", None)}
    author = _user(message.pop("author", None))
    if author is not None:
        message["author"] = author
    else:
        message.pop("member", None)  # the library takes the one for a sign of the other
    message["mentions"] = [user for user in map(_user, _list(message.get("mentions"))) if user is not None]
    message["attachments"] = [_attachment(file) for file in _list(message.get("attachments"))]
    _change(message, "poll", lambda poll: _poll(poll, message.get("timestamp")))
    _change(message, "referenced_message", _message)
    for snapshot in _list(message.get("message_snapshots")):
        if isinstance(snapshot, dict):
            _change(cast("Json", snapshot), "message", _message)
    return message


def _user(value: object) -> Json | None:
    """A user, or None where not even a number says who it is."""
    user = cast("Json", value) if isinstance(value, dict) else {}
    return _USER | user if str(user.get("id", "")).isdecimal() else None


def _attachment(value: object) -> object:
    if not isinstance(value, dict):
        return value
    file = cast("Json", value)
    return _FILE | {"proxy_url": file.get("url", "")} | file


def _poll(value: object, sent_at: object) -> object:
    if not isinstance(value, dict):
        return value
    poll = cast("Json", value)
    answers = [cast("Json", answer) for answer in _list(poll.get("answers")) if isinstance(answer, dict)]
    return poll | {
        "expiry": poll.get("expiry") or sent_at,
        "question": _poll_media(poll.get("question")),
        "answers": [answer | {"poll_media": _poll_media(answer.get("poll_media"))} for answer in answers],
    }


def _poll_media(value: object) -> Json:
    return {"text": ""} | (cast("Json", value) if isinstance(value, dict) else {})


def _change(members: Json, name: str, change: Callable[[object], object]) -> None:
    if members.get(name) is not None:
        members[name] = change(members[name])


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []
