"""Messages and deletions into facts: let in, convert, and doubt the intent where too much comes empty."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

import discord
import structlog
from msgspec.structs import replace as changed

from bots.discord import convert
from bots.discord.convert import Deletion
from bots.discord.media import session_of
from bots.discord.objects import Spoken
from bots.discord.outbound import Links
from bots.discord.people import Me
from bots.discord.veil import Veil
from core.access import Visit
from core.clock import milliseconds, now_ms
from core.health import Troubles
from core.ids import ChannelId, MessageId, SessionId
from core.pairing.reception import Reception
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
        reception: Reception,
        sessions: Sessions,
        veil: Veil,
        links: Links,
        *,
        troubles: Troubles,
        unread: Counter[str],
        holds: Callable[[SessionId], bool],
    ) -> None:
        self._admission = reception.admission
        self._bell = reception.bell
        self._titles = reception.titles
        self._names: dict[int, str] = {}
        self._sessions = sessions
        self._veil = veil
        self._links = links
        self._troubles = troubles
        self._unread = unread
        self._holds = holds
        self._hidden = 0

    def read_message(
        self, message: discord.Message, me: Me, *, sent_at: int | None, edited: bool, past: bool = False
    ) -> list[Said]:
        """What a message comes to; nothing where it is our own or not let in. ``sent_at`` as in `message_created`.

        ``past``: it was not told when it was said, but asked for later.
        """
        place = convert.visit(message)
        known_only = not self._admission.admits(place, said_at=_said_at(message.id) if edited or past else None)
        if convert.is_own(message, me=me):
            return []
        if known_only:
            # What an excluded chat takes back is taken back; what it says anew is not heard.
            if self._admission.excludes(place):
                return []
            if not (edited and self._may_change(session_of(message))):
                if not (edited or past):
                    self._hear_knock(message, me)
                return []
        elif self._names.get(message.channel.id, "") != getattr(message.channel, "name", None):
            self._note_title(message)
        fact = convert.message_created(message, me=me, veil=self._veil, sent_at=sent_at, known_only=known_only)
        self._links.remember(message)
        self._doubt_intent(message)
        return [fact]

    def read_deletion(self, event: Deletion, order: Iterable[int], me: Me, *, parent: ChannelId | None) -> list[Fact]:
        """What a deletion comes to; ``order`` and ``parent`` as in `messages_deleted` and `visit_of_deletion`."""
        place, session = convert.visit_of_deletion(event, parent=parent), convert.session_of_deletion(event)
        if not self._admission.admits(place) and not self._may_change(session):
            return []
        facts = convert.messages_deleted(event, order, me=me, now=now_ms())
        return [changed(fact, known_only=not self._admits_then(place, fact.message.message_id)) for fact in facts]

    def _admits_then(self, place: Visit, message: MessageId) -> bool:
        return self._admission.admits(place, said_at=_said_at(int(message)))

    def _note_title(self, message: discord.Message) -> None:
        """The channel is new, has another name, or is a direct chat. Of a server's new name we hear at a start."""
        if isinstance(message.channel, Spoken):
            self._names[message.channel.id] = message.channel.name
        if self._titles is not None:
            self._titles.note(session_of(message), convert.title(message))

    def _hear_knock(self, message: discord.Message, me: Me) -> None:
        """Somebody says something where nobody is let in: a knock, if it is said to us."""
        if self._bell is not None and self._bell.is_due("discord", session_of(message)):
            knock = convert.knock(message, me=me, veil=self._veil)
            if knock is not None:
                self._bell.ring(knock)

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


def _said_at(message: int) -> int:
    """When a message was said, in ms, by its number."""
    return milliseconds(discord.utils.snowflake_time(message))
