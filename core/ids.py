"""Every id that we make or read (contract sections 1 and 9). Nobody else formats, splits or compares one."""

import base64
import os
import re
import uuid
from functools import lru_cache
from typing import Literal, NamedTuple, NewType

from core.errors import InvalidId

SessionId = NewType("SessionId", str)
EntryId = NewType("EntryId", str)
"""Number of one log line. Ours are UUID v4; readers treat it as opaque (log-format 2)."""
TurnId = NewType("TurnId", str)
MessageId = NewType("MessageId", str)
"""A platform's message id as text."""
UserId = NewType("UserId", str)
ChannelId = NewType("ChannelId", str)
"""Discord channel, thread or DM channel id; Telegram chat id with its sign."""
ThreadId = NewType("ThreadId", str)
"""Telegram forum topic id."""
AssetId = NewType("AssetId", str)
TaskHash = NewType("TaskHash", str)
"""Names one confirmation or question: a UUID v4."""

Prefix = Literal["dc", "tg", "cli", "chat", "temp"]
Platform = Literal["discord", "telegram"]

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_SESSION = re.compile(
    rf"(?P<dc>dc-(?P<channel>[0-9]{{1,20}}))"
    rf"|(?P<tg>tg-(?P<chat>-?[0-9]{{1,19}})(?:~(?P<business>(?:[A-Za-z0-9_-]|%[0-9A-F]{{2}}){{1,192}}))?)"
    rf"|(?P<cli>cli-{_UUID})|(?P<chatp>chat-{_UUID})|(?P<temp>temp-{_UUID})"
)
_UUID_ONLY = re.compile(_UUID)
_CONTROL = re.compile(r"ik1:(?P<hash>[A-Za-z0-9_-]{22}):(?P<question>[0-9]{1,4}):(?P<option>[a-z0-9]{1,8})")
_ASSETS = uuid.uuid5(uuid.NAMESPACE_URL, "ishiki:asset")


def session_id(text: str) -> SessionId:
    """Read a session id from outside. Raises `InvalidId` before anybody forms a path from it."""
    return _checked(text)


@lru_cache(maxsize=4096)
def _checked(text: str) -> SessionId:
    if not is_session_id(text):
        raise InvalidId(
            "that is no session id; expected dc-<channel>, tg-<chat>, cli-<uuid>, chat-<uuid> or temp-<uuid>"
        )
    return SessionId(text)


def discord_session(channel: str | int) -> SessionId:
    """The session of one Discord channel, DM channel or thread."""
    return session_id(f"dc-{channel}")


def telegram_session(chat: str | int, business_connection: str | None = None) -> SessionId:
    """The session of one Telegram chat.

    A business chat bears the number of that person's direct chat, so it is told apart by its connection, of which
    everything but letters, digits, ``_`` and ``-`` is percent-encoded.
    """
    if business_connection is None:
        return session_id(f"tg-{chat}")
    kept = "".join(
        character if character.isascii() and (character.isalnum() or character in "_-") else _percent(character)
        for character in business_connection
    )
    return session_id(f"tg-{chat}~{kept}")


def new_session(prefix: Literal["cli", "chat", "temp"]) -> SessionId:
    """A fresh session of a terminal, of the web, or one that does not stay."""
    return SessionId(f"{prefix}-{new_uuid()}")


def prefix_of(session: SessionId) -> Prefix:
    """What the id alone decides: where confirmations go, and the tab of the menu."""
    match session.partition("-")[0]:
        case "dc":
            return "dc"
        case "tg":
            return "tg"
        case "cli":
            return "cli"
        case "chat":
            return "chat"
        case "temp":
            return "temp"
        case _:
            raise InvalidId("that is no session id")


def platform_of(session: SessionId) -> Platform | None:
    """The chat platform of a session; None for terminal and web."""
    match prefix_of(session):
        case "dc":
            return "discord"
        case "tg":
            return "telegram"
        case _:
            return None


def channel_of(session: SessionId) -> ChannelId:
    """The channel or chat that a ``dc-`` or ``tg-`` session stands for."""
    found = _SESSION.fullmatch(session)
    channel = found and (found["channel"] or found["chat"])
    if not channel:
        raise InvalidId("that session is not a chat of a platform")
    return ChannelId(channel)


def business_connection_of(session: SessionId) -> str | None:
    """The Telegram business connection that a session belongs to, decoded."""
    found = _SESSION.fullmatch(session)
    kept = found and found["business"]
    if not kept:
        return None
    decoded = re.sub(rb"%([0-9A-F]{2})", lambda code: bytes([int(code[1], 16)]), kept.encode())
    try:
        return decoded.decode()
    except UnicodeDecodeError as error:
        raise InvalidId("that session's business connection is no text") from error


def is_session_id(text: str) -> bool:
    """Whether a text has the shape of a session id."""
    return _SESSION.fullmatch(text) is not None


def is_uuid(text: str) -> bool:
    """Whether a text has the shape of the ids we make ourselves: task hashes, assets."""
    return _UUID_ONLY.fullmatch(text) is not None


def new_uuid() -> str:
    """A random UUID v4 as text. Any thread may ask."""
    while True:
        try:
            return _pool.pop()  # which is one step of the interpreter
        except IndexError:
            _pool.extend(_make_uuids(256))


def new_entry_id() -> EntryId:
    """The id of a new log line."""
    return EntryId(new_uuid())


def new_turn_id() -> TurnId:
    """The id of a new turn."""
    return TurnId(new_uuid())


def rest_of(turn: TurnId) -> TurnId:
    """The turn in which a reply is finished that was cut off with ``turn``: one only, however often that is tried."""
    return TurnId(str(uuid.uuid5(uuid.UUID(turn), "rest")))


def asset_id(session: SessionId, platform: str, message: str, file: str) -> AssetId:
    """The id under which one file of one message is kept (log-format 9.1).

    ``file`` is Discord's attachment or sticker id, or Telegram's ``file_unique_id``. The same file of the same
    message keeps its id after a crash and in an edit; two messages never share one.
    """
    return AssetId(str(uuid.uuid5(_ASSETS, f"{session}/{platform}/{message}/{file}")))


class Control(NamedTuple):
    """What a button or menu says when it is used: the question of a task, from 0, and the option, a number or a word.

    It fits into Telegram's 64 bytes and Discord's 100 characters and holds no label, command or secret.
    """

    task: TaskHash
    question: int
    option: str

    def __str__(self) -> str:
        packed = base64.urlsafe_b64encode(uuid.UUID(self.task).bytes).rstrip(b"=").decode()
        return f"ik1:{packed}:{self.question}:{self.option}"


def control(text: str) -> Control | None:
    """Read what a button says; None where it is none of ours."""
    found = _CONTROL.fullmatch(text)
    if found is None:
        return None
    task = uuid.UUID(bytes=base64.urlsafe_b64decode(f"{found['hash']}=="))
    return Control(TaskHash(str(task)), int(found["question"]), found["option"])


def task_hash(text: str) -> TaskHash:
    """Read a task hash from outside. Raises `InvalidId` before anybody forms a path from it."""
    if not is_uuid(text):
        raise InvalidId("that is no task hash; expected a UUID as `ishiki pending` shows it")
    return TaskHash(text)


def new_task_hash() -> TaskHash:
    """The id of a new confirmation or question."""
    return TaskHash(new_uuid())


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())


def _make_uuids(count: int) -> list[str]:
    """Many at once, digit by digit: two ``uuid.uuid4()`` would cost as much as the rest of an entry."""
    octets = bytearray(os.urandom(16 * count))
    octets[6::16] = octets[6::16].translate(_VERSION)
    octets[8::16] = octets[8::16].translate(_VARIANT)
    digits = octets.hex().encode()
    text = bytearray(_BLANK * count)
    for number, place in enumerate(_PLACES):
        text[place :: len(_BLANK)] = digits[number::32]
    return text.decode().split()


_BLANK = b"........-....-....-....-............ "
_PLACES = [place for place, character in enumerate(_BLANK) if character == ord(".")]
_VERSION = bytes(octet & 0x0F | 0x40 for octet in range(256))
_VARIANT = bytes(octet & 0x3F | 0x80 for octet in range(256))
"""What RFC 9562 makes of the octets 6 and 8 of a UUID v4."""
_pool: list[str] = []
os.register_at_fork(after_in_child=_pool.clear)
