"""What stands in a log behind a receipt, as far as waking is concerned (log-format 14.1)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from core.entries import MessageCreated, TurnStart, fact_of
from core.ids import SessionId, TurnId
from core.sessions.reading import Recorded
from core.sessions.receipts import Receipt
from core.sessions.session import Session
from core.sessions.state import key_of
from core.wake import ALBUM_QUIET_MS, BACKLOG_MS, Rule, WakeRules, rule_met

ALBUM_REACH: Final = 100
"""Entries before the receipt among which parts of an album are looked for that has woken already."""


IsAnswer = Callable[[SessionId, MessageCreated], Awaitable[bool]]
"""Whether a message in a session answers a question that stands in its chat."""


async def nothing_asked(_session: SessionId, _message: MessageCreated) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Candidate:
    """A message that may wake, and the rule it met."""

    recorded: Recorded
    rule: Rule

    @property
    def message(self) -> MessageCreated | None:
        return _message(self.recorded)


@dataclass(slots=True)
class Outlook:
    """``newest`` is the newest message that wakes, not before ``album_until`` (ms); ``end`` what was read up to."""

    newest: Candidate | None = None
    end: Receipt | None = None
    album_until: int = 0
    started: set[TurnId] = field(default_factory=set[TurnId])


async def look(
    session: Session,
    position: int,
    rules: WakeRules,
    *,
    since: int,
    is_answer: IsAnswer = nothing_asked,
    receipt_lost: bool = False,
) -> Outlook:
    """Judge everything behind a position. An album is judged over all its parts, and wakes once.

    A message that ``is_answer`` to a question of ours wakes nobody: whoever asked is told in another way.

    ``since`` is when this process began to listen, in ms: the quiet after an album's last part is counted from there at
    the earliest, as parts may have come while nobody did.

    ``receipt_lost``: nobody knows what was dealt with, as where history.db was deleted, or where there was no runtime
    until now. Then each turn has settled all that stands before it, and what was recorded long before ``since`` wakes
    nobody: a chat must not be answered months later.
    """
    outlook = Outlook()
    albums: dict[str, int] = {}
    woken = await asyncio.to_thread(lambda: set(_albums_before(session, position, rules)))
    state = await session.state()
    while position < session.size:
        chunk, position = await asyncio.to_thread(session.read_chunk, position)
        for recorded in chunk:
            if isinstance(recorded.entry.data, TurnStart):
                outlook.started.add(recorded.entry.data.turn_id)
                if receipt_lost:
                    outlook.newest = None
            if receipt_lost and recorded.entry.timestamp < since - BACKLOG_MS:
                continue
            message = _message(recorded)
            if message is not None:
                if message.album is not None:
                    albums[message.album] = recorded.entry.timestamp
                if message.album in woken or state.is_retracted(key_of(message)):
                    continue
            rule = rule_met(recorded.entry, rules)
            if rule is not None and not (message is not None and await is_answer(session.id, message)):
                outlook.newest = Candidate(recorded, rule)
        if chunk:
            outlook.end = Receipt(chunk[-1].entry.id, position)
    newest = outlook.newest.message if outlook.newest else None
    if newest is not None and newest.album is not None:
        outlook.album_until = max(albums[newest.album], since) + ALBUM_QUIET_MS
    return outlook


def _albums_before(session: Session, position: int, rules: WakeRules) -> Iterator[str]:
    """The albums that a turn was run for already: a part of theirs that wakes stands before the receipt. Blocks."""
    if position == 0:
        return
    for recorded in islice(session.read_back(position), ALBUM_REACH):
        message = _message(recorded)
        if message is not None and message.album is not None and rule_met(recorded.entry, rules) is not None:
            yield message.album


def _message(recorded: Recorded) -> MessageCreated | None:
    fact = fact_of(recorded.entry)
    return fact if isinstance(fact, MessageCreated) else None
