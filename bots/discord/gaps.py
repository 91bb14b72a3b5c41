"""One channel's gap: the messages that were missed, and what became of those that were not.

A deletion is believed only when Discord says of that very message that there is none: a listing may be cut short, and
leaves out what we may not read.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic

from bots.discord.convert import message_gone
from bots.discord.history import PAGE, History, Listed
from bots.discord.inbox import Inbox
from bots.discord.people import Me
from bots.discord.reading import Reader
from core.clock import now_ms
from core.entries import MessageCreated, MessageDeleted, fact_of
from core.ids import MessageId, SessionId, channel_of
from core.sessions.facts import Said
from core.sessions.reading import Recorded
from core.sessions.state import MessageKey, number_of
from core.wake import BACKLOG_MS

Gone = Callable[[SessionId, Sequence[MessageId]], None]
OnUnread = Callable[[str, Exception], None]


@dataclass(slots=True)
class Summary:
    """What catching up came to, in messages but for the last three, which are in channels.

    ``too_old`` are those recovered that wake nobody any more, ``went_ahead`` channels whose live events could not wait.
    """

    recovered: int = 0
    too_old: int = 0
    edited: int = 0
    deleted: int = 0
    unreadable: set[SessionId] = field(default_factory=set[SessionId])
    unanswered: int = 0
    went_ahead: int = 0
    began: float = field(default_factory=monotonic)


class Gaps:
    """Fills gaps for one login. Everything raises `ChatUnavailable` and `ChatRefused`."""

    def __init__(self, reader: Reader, inbox: Inbox, me: Me, gone: Gone, on_unread: OnUnread, summary: Summary) -> None:
        self._reader = reader
        self._inbox = inbox
        self._me = me
        self._gone = gone
        self._on_unread = on_unread
        self._summary = summary

    async def fill(self, session: SessionId, history: History, start: int) -> None:
        """Record what was said behind a message, the oldest first, a page at a time.

        What was told live meanwhile takes its place among it: a listing lacks what was taken back before it was made.
        """
        while page := await history.after(start):
            start = page[-1].number
            listed = {MessageId(str(one.number)) for one in page}
            live = [fact for fact in self._inbox.said_before(session, start) if fact.message.message_id not in listed]
            for line in await self._record(session, page, edited=False, live=live):
                fact = fact_of(line.entry)
                if isinstance(fact, MessageCreated) and fact.message_id in listed:
                    self._summary.recovered += 1
                    self._summary.too_old += line.entry.timestamp - fact.timestamp > BACKLOG_MS

    async def compare(self, session: SessionId, history: History, known: Sequence[MessageKey]) -> None:
        """Record what happened to messages that the log holds: ``known``, which is not empty, newest first."""
        unseen = {int(key.message_id) for key in known}
        end, oldest = max(unseen) + 1, min(unseen)
        for _ in range(len(unseen) // PAGE + 3):
            page = [listed for listed in await history.before(end) if listed.number < end]
            await self._take_edits(session, [listed for listed in page if listed.number in unseen])
            unseen -= {listed.number for listed in page}
            end = page[0].number if page else oldest
            if end <= oldest:
                break
        for number in sorted(number for number in unseen if number >= end):
            listed = await history.find(number)
            if listed is not None:
                await self._take_edits(session, [listed])
            else:
                await self._take_deletion(session, MessageId(str(number)))

    async def _take_edits(self, session: SessionId, listed: Sequence[Listed]) -> None:
        edited = [one for one in listed if one.told is not None and one.told.message.edited_at is not None]
        for line in await self._record(session, edited, edited=True):
            self._summary.edited += isinstance(fact_of(line.entry), MessageCreated)

    async def _take_deletion(self, session: SessionId, message: MessageId) -> None:
        fact = message_gone(channel_of(session), message, me=self._me, now=now_ms())
        for line in await self._inbox.write(session, [fact]):
            self._summary.deleted += isinstance(fact_of(line.entry), MessageDeleted)
        self._gone(session, [message])

    async def _record(
        self, session: SessionId, page: Sequence[Listed], *, edited: bool, live: Sequence[Said] = ()
    ) -> list[Recorded]:
        facts: list[Said] = [*live]
        for told in (listed.told for listed in page):
            try:
                if told is not None:
                    message, at = told
                    facts += self._reader.read_message(message, self._me, sent_at=at, edited=edited, past=True)
            except Exception as error:  # noqa: BLE001 - one message must not hide those beside it
                self._on_unread("history", error)
        facts.sort(key=lambda fact: number_of(fact.message.message_id))
        await asyncio.sleep(0)  # a page takes some milliseconds to read, in which nothing else was heard
        return await self._inbox.write(session, facts) if facts else []
