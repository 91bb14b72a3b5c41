"""A conversation as people see it: each message once, where it first stood, as it is now. Pure.

Lines come from both ends: older pages in front, new ones behind. Whatever is known of a message stands in the place of
its oldest line so far, so that a page more may move it up to where it began.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from bots.terminal.log_reader import Found, Unreadable
from core.confirmations.record import Record
from core.entries import AnyEntry, Attachment, MessageCreated, MessageDeleted, fact_of
from core.ids import TaskHash

Key = tuple[str | None, str | None, str | None, str | None]


@dataclass(slots=True, eq=False)
class Item:
    """One thing that happened. ``version`` grows with each change.

    ``at`` is in Unix ms, for what was said on a platform by its clock.
    A message of a platform has its newest revision, its newest list of files, and its retraction; whichever is known.
    Anything else is an ``entry``, a ``record`` of something that was asked, or a line that cannot be read: neither.
    """

    at: int
    entry: AnyEntry | None = None
    record: Record | None = None
    key: Key | None = None
    message: MessageCreated | None = None
    files: Attachment | None = None
    deleted: MessageDeleted | None = None
    version: int = 0


class Conversation:
    """``items`` are in the order in which things happened."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self._messages: dict[Key, Item] = {}
        self._asked: dict[TaskHash, Item] = {}
        self._waiting: list[Record] = []

    def append(self, found: Iterable[Found]) -> None:
        """Newer lines, the oldest first."""
        for line in found:
            if (item := _item(line)) is None:
                continue
            known = self._messages.get(item.key) if item.key is not None else None
            if known is None:
                self._add(item, len(self.items))
            else:
                known.message = item.message or known.message
                known.files = item.files or known.files
                known.deleted = item.deleted or known.deleted
                known.version += 1

    def prepend(self, found: Iterable[Found], *, whole: bool) -> None:
        """Older lines, the newest first; ``whole``: there are none before them."""
        page: list[Item] = []
        moved: set[int] = set()
        for line in found:
            if (item := _item(line)) is None:
                continue
            known = self._messages.get(item.key) if item.key is not None else None
            if known is not None:
                item.message = known.message or item.message
                item.files = known.files or item.files
                item.deleted = known.deleted or item.deleted
                item.version = known.version + 1
                moved.add(id(known))
            if item.key is not None:
                self._messages[item.key] = item
            page.append(item)
        page.reverse()
        self.items[:0] = page
        if moved:
            self.items = [item for item in self.items if id(item) not in moved]
        waiting, self._waiting = self._waiting, []
        for record in waiting:
            self._place(record, whole=whole)

    def ask(self, records: Iterable[Record], *, whole: bool) -> None:
        """Show what was asked, or what became of it; what is older than all that was read waits for its page."""
        for record in records:
            known = self._asked.get(record.task_hash)
            if known is None:
                self._place(record, whole=whole)
            elif known.record != record:
                known.record = record
                known.version += 1

    def close(self, records: Iterable[Record]) -> None:
        """As `ask`, of those alone that are shown."""
        self.ask((record for record in records if record.task_hash in self._asked), whole=True)

    def _place(self, record: Record, *, whole: bool) -> None:
        place = len(self.items)
        while place and self.items[place - 1].at > record.created_at:
            place -= 1
        if place == 0 and self.items and not whole:
            self._waiting.append(record)
            return
        item = self._asked[record.task_hash] = Item(record.created_at, record=record)
        self._add(item, place)

    def _add(self, item: Item, place: int) -> None:
        if item.key is not None:
            self._messages[item.key] = item
        self.items.insert(place, item)


def _item(line: Found) -> Item | None:
    if isinstance(line, Unreadable):
        return Item(0)
    match fact_of(line):
        case MessageCreated() as message:
            return Item(message.timestamp, key=_key(message), message=message)
        case MessageDeleted() as deleted:
            return Item(line.timestamp, key=_key(deleted), deleted=deleted)
        case Attachment(source="platform") as files:
            return Item(line.timestamp, key=_key(files), files=files)
        case _:
            return Item(line.timestamp, entry=line)


def _key(fact: MessageCreated | MessageDeleted | Attachment) -> Key:
    return fact.platform, fact.self_id, fact.channel_id, fact.message_id
