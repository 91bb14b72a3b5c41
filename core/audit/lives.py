"""The life of each message that people wrote: created, edited, deleted, its media behind it (log-format 7)."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from core.audit.finding import Finding, Seen, short
from core.entries import Attachment, MessageCreated, MessageDeleted, fact_of


class _Life(NamedTuple):
    """What stood above of one message. Times in ms; ``revision`` and ``edited`` are of the newest edit."""

    sent: int = 0
    original: bool = False
    revision: int = 0
    edited: int = 0
    deleted: bool = False

    @property
    def created(self) -> bool:
        return self.original or self.revision > 0


class _Untold(msgspec.Struct, rename="camel"):
    """Members that a deletion never has: they would say again what was taken back."""

    content: Any = None
    user: Any = None
    is_direct: Any = None
    guild_id: Any = None
    quote: Any = None


class _Message(msgspec.Struct):
    data: _Untold


class _Line(msgspec.Struct):
    data: _Message


class Lives:
    """A message is created once, its revisions count 1…n, it is deleted once and then said no more of."""

    def __init__(self) -> None:
        self._chats: dict[tuple[str | None, ...], dict[str, int | _Life]] = {}

    def look(self, seen: Seen) -> Iterator[Finding]:
        match fact_of(seen.entry):
            case MessageCreated() as fact:
                yield from self._created(seen.number, fact)
            case MessageDeleted() as fact:
                yield from self._deleted(seen, fact)
            case Attachment() as media:
                yield from self._attached(seen.number, media)
            case _:
                pass

    def lost(self, number: int) -> None:
        pass

    def end(self) -> Iterator[Finding]:
        return iter(())

    def _life(self, fact: MessageCreated | MessageDeleted | Attachment) -> _Life | None:
        life = self._chats.get((fact.platform, fact.self_id, fact.channel_id), {}).get(fact.message_id or "")
        # Most messages are said once and left alone: of those the time alone is kept.
        return _Life(sent=life, original=True) if isinstance(life, int) else life

    def _keep(self, fact: MessageCreated | MessageDeleted, life: _Life) -> None:
        plain = life == _Life(sent=life.sent, original=True)
        chat = self._chats.setdefault((fact.platform, fact.self_id, fact.channel_id), {})
        chat[fact.message_id] = life.sent if plain else life

    def _created(self, number: int, fact: MessageCreated) -> Iterator[Finding]:
        life = self._life(fact) or _Life()
        name = short(fact.message_id)
        if life.deleted:
            yield Finding(number, "deleted", f"message {name} is written again though it was deleted above")
        yield from _told(number, fact)
        if fact.edited is None:
            if life.original:
                yield Finding(number, "created-twice", f"message {name} was created on an earlier line already")
            self._keep(fact, life._replace(original=True, sent=fact.timestamp))
            return
        revision, edited = fact.edited.revision, fact.edited.timestamp
        if revision != life.revision + 1:
            again = 0 < revision <= life.revision
            what = "stands on an earlier line too" if again else f"comes where {life.revision + 1} should"
            yield Finding(number, "revision", f"revision {revision} of message {name} {what}")
        if edited < life.edited:
            text = f"revision {revision} of message {name} was made before the one above (edited.timestamp)"
            yield Finding(number, "revision", text)
        if life.created and fact.timestamp != life.sent:
            text = f"an edit keeps the timestamp of its message, which is {life.sent} for {name}, not {fact.timestamp}"
            yield Finding(number, "revision", text)
        newest = max(life.revision, revision)
        self._keep(fact, life._replace(sent=fact.timestamp, revision=newest, edited=max(life.edited, edited)))

    def _deleted(self, seen: Seen, fact: MessageDeleted) -> Iterator[Finding]:
        life = self._life(fact) or _Life()
        name = short(fact.message_id)
        if life.deleted:
            text = f"message {name} was deleted on an earlier line already"
            yield Finding(seen.number, "deleted-twice", text)
        if fact.timestamp < life.sent:
            text = f"message {name} was deleted at {fact.timestamp}, before it was written at {life.sent}"
            yield Finding(seen.number, "deleted", text)
        for member in _untold(seen.raw):
            yield Finding(seen.number, "deleted", f"a deletion has no member {member}; this one does")
        self._keep(fact, life._replace(deleted=True))

    def _attached(self, number: int, media: Attachment) -> Iterator[Finding]:
        if media.source != "platform":
            if media.tool_name is None or media.tool_call_id is None:
                yield Finding(number, "attachment", "a tool's attachment lacks toolName or toolCallId")
            return
        if None in (media.platform, media.self_id, media.channel_id, media.message_id):
            yield Finding(number, "attachment", "a platform's attachment lacks a member of its message's key")
            return
        life = self._life(media)
        if life is None or not life.created:
            text = f"no created line of message {short(str(media.message_id))} stands above its attachment"
            yield Finding(number, "attachment", text)


def _told(number: int, fact: MessageCreated) -> Iterator[Finding]:
    """What a message says of itself."""
    name = short(fact.message_id)
    if not fact.content:
        yield Finding(number, "content", f"the content of message {name} is empty; every message has something to read")
    if fact.user.id == fact.self_id:
        yield Finding(number, "self", f"message {name} is the bot's own, which is an assistant message, never created")
    if fact.forward is not None and fact.forward.user is not None and fact.forward.channel is not None:
        yield Finding(number, "shape", f"message {name} has forward.user and forward.channel; only one can be")


def _untold(raw: bytes) -> list[str]:
    try:
        found = msgspec.json.decode(raw, type=_Line).data.data
    except msgspec.DecodeError:
        return []  # with what only the other parser takes
    names = zip(_Untold.__struct_fields__, _Untold.__struct_encode_fields__, strict=True)
    return [encoded for name, encoded in names if getattr(found, name) is not None]
