"""Messages and deletions into facts: let in, convert, and doubt the intent where too much comes empty."""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

import discord
import structlog
from msgspec.structs import replace as changed

from bots.discord import convert
from bots.discord.convert import Deletion
from bots.discord.media import session_of
from bots.discord.outbound import Links
from bots.discord.people import Me
from bots.discord.veil import Veil
from core.access import AllowRules
from core.clock import now_ms
from core.health import Troubles
from core.ids import ChannelId, SessionId
from core.sessions.directory import Sessions
from core.sessions.facts import Fact, Said

HIDDEN_IN_A_ROW: Final = 5
"""Guild messages without content after which the intent is doubted: one or two may really be empty."""
INTENT: Final = "Discord developer portal → your application → Bot → Message Content Intent"

logger = structlog.get_logger()


class Reader:
    """Reads what happens in the order of the wire. ``holds``: whether a session has facts that are not durable yet."""

    def __init__(
        self,
        rules: AllowRules,
        sessions: Sessions,
        veil: Veil,
        links: Links,
        *,
        troubles: Troubles,
        unread: Counter[str],
        holds: Callable[[SessionId], bool],
    ) -> None:
        self._rules = rules
        self._admits = lru_cache(maxsize=4096)(rules.admit)  # nearly always the same people in the same places
        self._sessions = sessions
        self._veil = veil
        self._links = links
        self._troubles = troubles
        self._unread = unread
        self._holds = holds
        self._hidden = 0

    def read_message(self, message: discord.Message, me: Me, *, sent_at: int | None, edited: bool) -> list[Said]:
        """What a message comes to; nothing where it is our own or not let in. ``sent_at`` as in `message_created`."""
        place = convert.visit(message)
        known_only = not self._admits(place)
        # What an excluded chat takes back is taken back; what it says anew is not heard.
        may_change = edited and not self._rules.excludes(place) and self._may_change(session_of(message))
        if convert.is_own(message, me=me) or (known_only and not may_change):
            return []
        fact = convert.message_created(message, me=me, veil=self._veil, sent_at=sent_at, known_only=known_only)
        self._links.remember(message)
        self._doubt_intent(message)
        return [fact]

    def read_deletion(self, event: Deletion, order: Iterable[int], me: Me, *, parent: ChannelId | None) -> list[Fact]:
        """What a deletion comes to; ``order`` and ``parent`` as in `messages_deleted` and `visit_of_deletion`."""
        place, session = convert.visit_of_deletion(event, parent=parent), convert.session_of_deletion(event)
        known_only = not self._rules.admit(place)
        if known_only and not self._may_change(session):
            return []
        facts = convert.messages_deleted(event, order, me=me, now=now_ms())
        return [changed(fact, known_only=known_only) for fact in facts]

    def _may_change(self, session: SessionId) -> bool:
        """No rule lets a chat in: whether what it may hold from before can still be edited and taken back."""
        return self._holds(session) or self._sessions.exists(session)

    def _doubt_intent(self, message: discord.Message) -> None:
        """Nobody tells a bot that it may not read: what it may not read just comes empty."""
        if convert.is_hidden(message):
            self._hidden += 1
            self._unread["content hidden"] += 1
            if self._hidden == HIDDEN_IN_A_ROW:
                problem = f"the messages of Discord servers come without content; switch on {INTENT}"
                self._troubles.begin("content", problem)
                logger.warning("discord_content_hidden", problem=problem)
        elif message.guild is not None:
            self._hidden = 0
            self._troubles.end("content")
