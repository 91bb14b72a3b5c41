"""Looking at one session's lines: forwards, backwards, from a receipt, about a message. Changes nothing."""

import asyncio
from collections.abc import Iterator
from itertools import chain
from typing import Final, NamedTuple

import msgspec
import structlog

from core.codec import decode
from core.entries import AnyEntry, MessageCreated, MessageDeleted, fact_of
from core.errors import InvalidEntry, UnknownEntry
from core.ids import EntryId, MessageId, SessionId
from core.log.lines import Block, Line
from core.log.port import Log
from core.sessions.receipts import Receipt
from core.sessions.state import MessageKey, key_of, number_of

MOST_REPORTED: Final = 64
_MESSAGE: Final = b'"ishiki.message.'
_NUMBER: Final = b'"messageId":"'

logger = structlog.get_logger()


class Recorded(msgspec.Struct, frozen=True, gc=False):
    """An entry where it stands: ``end`` is the position after it, ``raw`` its bytes without the line feed."""

    entry: AnyEntry
    start: int
    end: int
    raw: bytes


class Newest(NamedTuple):
    """The end of a log: the highest message number that stands in it, 0 for none, and messages, newest first."""

    highest: int
    standing: list[MessageKey]


class Reading:
    """What can be asked of a session's log. Lines that do not parse are skipped, and named once by their number."""

    __slots__ = ("_log", "_reported", "id")

    def __init__(self, session_id: SessionId, log: Log) -> None:
        self.id = session_id
        self._log = log
        self._reported: set[int] = set()

    @property
    def size(self) -> int:
        """The position after the newest durable line."""
        return self._log.size

    def read(self, start: int = 0) -> Iterator[Recorded]:
        """Entries from a position on; lines that do not parse are skipped and reported. Blocks."""
        for block in self._log.read(start):
            yield from self._decode_all(block)

    def read_back(self, end: int | None = None) -> Iterator[Recorded]:
        """Entries from the end, or from a position, backwards. Blocks."""
        for line in self._log.read_back(end):
            if (recorded := self._decode(line)) is not None:
                yield recorded

    def read_chunk(self, start: int) -> tuple[list[Recorded], int]:
        """Some entries from a position on, and the position to go on from. Blocks."""
        end = self._log.size
        block = next(self._log.read(start), None)
        return ([], end) if block is None else (self._decode_all(block), block.end)

    def about(self, key: MessageKey) -> list[Recorded]:
        """Every line about one message, in file order. Blocks."""
        lines = self._log.search_back(f'"messageId":"{key.message_id}"'.encode("utf-8", "replace"))
        found = [recorded for line in lines if (recorded := self._decode(line)) is not None]
        return [recorded for recorded in reversed(found) if _is_about(recorded.entry, key)]

    def newest_messages(self, most: int) -> Newest:
        """The newest messages, as far back as so many that were not taken back. Blocks."""
        standing: dict[MessageKey, None] = {}
        gone: set[MessageKey] = set()
        highest = 0
        for recorded in self.read_back():
            fact = fact_of(recorded.entry)
            if not isinstance(fact, MessageCreated | MessageDeleted):
                continue
            key = key_of(fact)
            highest = max(highest, number_of(key.message_id))
            if isinstance(fact, MessageDeleted):
                gone.add(key)
            elif key not in gone:
                standing[key] = None
            if len(standing) >= most:
                break
        return Newest(highest, list(standing))

    def highest_number(self) -> int:
        """The highest message number in the whole log, 0 for none. Reads all of it. Blocks.

        Its end alone does not tell: a gap that was filled later, or a long turn, may stand behind higher numbers.
        """
        highest = 0
        for raw in chain.from_iterable(block.lines for block in self._log.read()):
            start = raw.find(_NUMBER) + len(_NUMBER)
            if start >= len(_NUMBER) and _MESSAGE in raw:
                number = raw[start : raw.find(b'"', start)]
                highest = max(highest, number_of(MessageId(number.decode("utf-8", "replace"))))
        return highest

    async def chunk_from(self, start: int) -> tuple[list[Recorded], int]:
        """As `read_chunk`, on the event loop."""
        return await asyncio.to_thread(self.read_chunk, start)

    async def position_after(self, entry: EntryId) -> int:
        """The position after an entry. Raises `UnknownEntry`."""
        return (await asyncio.to_thread(self._find, entry)).end

    async def find(self, entry: EntryId) -> Recorded:
        """The line of that id. Raises `UnknownEntry`."""
        return await asyncio.to_thread(self._find, entry)

    async def entry(self, entry: EntryId) -> AnyEntry:
        """The entry of that id. Raises `UnknownEntry`."""
        return (await asyncio.to_thread(self._find, entry)).entry

    async def holds_id(self, text: str) -> bool:
        """Whether that is the id of a line or of a message in the log."""
        return await asyncio.to_thread(self._holds_id, text)

    async def resume_from(self, receipt: Receipt | None) -> int:
        """The position that a follower goes on from: after its receipt, wherever that entry stands by now.

        The beginning where there is none, or where its entry is gone: an act is repeated rather than left out.
        """
        if receipt is None or receipt.position == 0:
            return 0
        return await asyncio.to_thread(self.resume_now, receipt)

    # --- all of this blocks ---------------------------------------------------------------------------------------

    def _find(self, entry: EntryId) -> Recorded:
        for line in self._log.search_back(f'"{entry}"'.encode("utf-8", "replace")):
            recorded = self._decode(line)
            if recorded is not None and recorded.entry.id == entry:
                return recorded
        raise UnknownEntry("the log holds no entry of that id")

    def _holds_id(self, text: str) -> bool:
        for line in self._log.search_back(f'"{text}"'.encode("utf-8", "replace")):
            recorded = self._decode(line)
            if recorded is not None and text in {recorded.entry.id, getattr(recorded.entry.data, "id", None)}:
                return True
        return False

    def resume_now(self, receipt: Receipt) -> int:
        """As `resume_from`. Blocks."""
        if receipt.position <= self._log.size:
            before = next(self.read_back(receipt.position), None)
            # Where lines before it were taken out, the position may lie within a later line.
            if before is not None and before.entry.id == receipt.entry and before.end == receipt.position:
                return receipt.position
        try:
            return self._find(receipt.entry).end
        except UnknownEntry:
            return self._past_damage(receipt.position)

    def _past_damage(self, position: int) -> int:
        """The position itself where its line stands there still, though nobody can read it any more; else 0."""
        line = next(self._log.read_back(position), None) if position <= self._log.size else None
        return position if line is not None and line.end == position and self._decode(line) is None else 0

    def _decode(self, line: Line) -> Recorded | None:
        try:
            return Recorded(decode(line.raw), line.start, line.end, line.raw)
        except InvalidEntry as error:
            self._report(line.start, error)
            return None

    def _decode_all(self, block: Block) -> list[Recorded]:
        found: list[Recorded] = []
        end = block.start
        for raw in block.lines:
            start, end = end, end + len(raw) + 1
            end = min(end, block.end)  # the last line of the file lacks its line feed
            try:
                found.append(Recorded(decode(raw), start, end, raw))
            except InvalidEntry as error:
                if raw.strip():
                    self._report(start, error)
        return found

    def _report(self, start: int, error: InvalidEntry) -> None:
        if start not in self._reported and len(self._reported) < MOST_REPORTED:
            self._reported.add(start)
            number = self._log.number_at(start)
            logger.warning("log_line_skipped", session=self.id, line=number, reason=str(error))


def _is_about(entry: AnyEntry, key: MessageKey) -> bool:
    fact = fact_of(entry)
    named = fact and (fact.platform, fact.self_id, fact.channel_id, fact.message_id)
    return named == (key.platform, key.self_id, key.channel_id, key.message_id)
