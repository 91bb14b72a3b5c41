"""Who is who: ids of lines and messages, and the life of each message."""

from collections.abc import Iterator
from sys import intern

import msgspec

from core.audit.finding import Finding, Seen, short
from core.entries import AnyEntry, Attachment, MessageCreated, MessageDeleted, Unknown, fact_of
from core.sessions.state import key_of


class _WithId(msgspec.Struct):
    id: str | None = None


def _message_id(entry: AnyEntry) -> str | None:
    if entry.type != "message":
        return None
    if not isinstance(entry.data, Unknown):
        return entry.data.id
    try:
        return msgspec.json.decode(entry.data.raw, type=_WithId).id
    except msgspec.DecodeError:
        return None


class Identity:
    """Entry ids are unique, message ids too, and no value is both."""

    def __init__(self) -> None:
        self.entries: set[str] = set()
        self._messages: set[str] = set()

    def look(self, seen: Seen) -> Iterator[Finding]:
        entry = seen.entry.id
        if entry in self.entries:
            yield Finding(seen.number, "duplicate-id", f"the entry id {short(entry)} stands on an earlier line too")
        message = _message_id(seen.entry)
        if message is not None and message in self._messages:
            text = f"the message id {short(message)} (data.id) stands on an earlier line too"
            yield Finding(seen.number, "duplicate-id", text)
        self.entries.add(entry)
        if message is not None:
            self._messages.add(message)
            if message in self.entries:
                yield Finding(seen.number, "crossed-id", f"data.id {short(message)} is the entry id of a line too")
        if entry in self._messages and entry != message:
            yield Finding(seen.number, "crossed-id", f"the entry id {short(entry)} is the data.id of a message too")

    def lost(self, number: int) -> None:
        pass

    def end(self) -> Iterator[Finding]:
        return iter(())


class Revisions:
    """A message is created once, its revisions count 1…n, it is deleted once; its media stand behind it."""

    def __init__(self) -> None:
        self._revisions: dict[tuple[str, ...], int] = {}
        self._original: set[tuple[str, ...]] = set()
        self._deleted: set[tuple[str, ...]] = set()

    def look(self, seen: Seen) -> Iterator[Finding]:
        match fact_of(seen.entry):
            case MessageCreated() as fact:
                yield from self._created(seen.number, fact)
            case MessageDeleted() as fact:
                if key_of(fact) in self._deleted:
                    text = f"message {short(fact.message_id)} was deleted on an earlier line already"
                    yield Finding(seen.number, "deleted-twice", text)
                self._deleted.add(key_of(fact))
            case Attachment(source="platform") as media:
                yield from self._attached(seen.number, media)
            case _:
                pass

    def _created(self, number: int, fact: MessageCreated) -> Iterator[Finding]:
        key = tuple(intern(part) for part in key_of(fact))
        newest = self._revisions.setdefault(key, 0)
        name = short(fact.message_id)
        if fact.edited is None:
            if key in self._original:
                yield Finding(number, "created-twice", f"message {name} was created on an earlier line already")
            self._original.add(key)
            return
        revision = fact.edited.revision
        if revision != newest + 1:
            what = "stands on an earlier line too" if 0 < revision <= newest else f"comes where {newest + 1} should"
            yield Finding(number, "revision", f"revision {revision} of message {name} {what}")
        self._revisions[key] = max(newest, revision)

    def _attached(self, number: int, media: Attachment) -> Iterator[Finding]:
        parts = (media.platform, media.self_id, media.channel_id, media.message_id)
        if None in parts:
            yield Finding(number, "attachment", "a platform's attachment lacks a member of its message's key")
        elif parts not in self._revisions:
            text = f"no created line of message {short(str(media.message_id))} stands above its attachment"
            yield Finding(number, "attachment", text)

    def lost(self, number: int) -> None:
        pass

    def end(self) -> Iterator[Finding]:
        return iter(())
