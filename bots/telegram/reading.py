"""Updates into facts: parse each by itself, let in, convert, and leave out what cannot be read."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import structlog
import telegram
from msgspec.structs import replace as changed
from telegram.error import RetryAfter, TelegramError

from bots.telegram import convert
from bots.telegram.connection import Connection, is_network, seconds_of
from bots.telegram.media import session_of
from bots.telegram.objects import ordinary
from bots.telegram.people import Me
from bots.telegram.updates import EDITS, SILENT, blanked, completed, kind_of, object_of, place_of
from bots.telegram.veil import Veil
from core.access import Visit
from core.clock import now_ms
from core.codec import encode
from core.entries import MessageCreated, custom_message
from core.errors import ChatUnavailable, InvalidEntry
from core.ids import ChannelId, SessionId, channel_of, telegram_session
from core.pairing.reception import Reception
from core.sessions.directory import Sessions
from core.sessions.facts import Retracted, Said
from core.wake import BACKLOG_MS

logger = structlog.get_logger()


@dataclass(slots=True)
class Batch:
    """What updates come to: facts in their order, what could not be read, and what people answered.

    ``moves`` are chats that go on as another session, ``replies`` messages that quote another, ``pressing`` the presses
    that are being recorded.
    """

    facts: list[tuple[SessionId, Said | Retracted]] = field(default_factory=list[tuple[SessionId, Said | Retracted]])
    parked: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    moves: list[tuple[SessionId, SessionId]] = field(default_factory=list[tuple[SessionId, SessionId]])
    presses: list[telegram.CallbackQuery] = field(default_factory=list[telegram.CallbackQuery])
    pressing: "list[asyncio.Task[None]]" = field(default_factory=list["asyncio.Task[None]"])
    replies: list[telegram.Message] = field(default_factory=list[telegram.Message])

    def park(self, reason: str, fact: Said | Retracted) -> None:
        """Set a fact aside that found no place in its log, as the line that it would have been."""
        with suppress(InvalidEntry, ValueError):  # it is no JSON, which may be what was wrong with it
            self.parked.append((reason, encode(custom_message(fact.message, now=now_ms())).decode()))


class Reader:
    """Reads updates in the order in which they happened; knows which business connections the bot serves."""

    def __init__(
        self,
        token: str,
        reception: Reception,
        sessions: Sessions,
        veil: Veil,
        unread: Counter[str],
        earlier: Callable[[SessionId], Sequence[SessionId]] = lambda _session: (),
    ) -> None:
        """``earlier`` are the sessions that one goes on from, whose rules hold in it."""
        self._token = token
        self._veil = veil
        self._admission = reception.admission
        self._bell = reception.bell
        self._titles = reception.titles
        self._sessions = sessions
        self._unread = unread
        self._earlier = earlier
        self._moved: dict[ChannelId, ChannelId] = {}
        self._businesses: dict[str, bool] = {}

    async def read(self, raw_updates: Sequence[object], connection: Connection, me: Me) -> Batch:
        """Parse and convert.

        Raises `ChatUnavailable` where Telegram has to be asked something and does not answer; nothing is counted then.
        """
        updates = [_parsed(raw, connection) for raw in raw_updates]
        await self._learn_businesses(updates, connection)
        batch = Batch()
        sessions: set[SessionId] = set()
        for raw, update in zip(raw_updates, updates, strict=True):
            if isinstance(update, Exception):
                self._leave_out(raw, update, batch)
                continue
            try:
                self._note_move(update, batch)
                facts = self._facts(raw, update, sessions, me)
            except Exception as error:  # noqa: BLE001 - one update that cannot be read must not hold up the others
                self._leave_out(raw, error, batch)
            else:
                batch.facts += facts
                self._note_answers(update, batch, heard=bool(facts))
                sessions.update(session for session, _ in facts)
        return batch

    def _facts(
        self, raw: object, update: telegram.Update, sessions: set[SessionId], me: Me
    ) -> list[tuple[SessionId, Said | Retracted]]:
        """What one update says; ``sessions`` are about to be made by those before it."""
        message = update.message or update.channel_post or update.business_message
        message = message or update.edited_message or update.edited_channel_post or update.edited_business_message
        if message is not None:
            return self._facts_of_message(message, kind_of(raw), sessions, me)
        if update.deleted_business_messages is not None:
            return self._facts_of_deletion(update.deleted_business_messages, sessions, me)
        if (business := update.business_connection) is not None:
            self._businesses[business.id] = business.is_enabled
        elif (kind := kind_of(raw)) not in SILENT:
            self._unread[kind] += 1
        return []

    def _facts_of_message(
        self, message: telegram.Message, kind: str, sessions: set[SessionId], me: Me
    ) -> list[tuple[SessionId, Said | Retracted]]:
        """What a message says, new or edited; nothing where it is our own or not let in."""
        if convert.is_own(message, me=me) or not self._is_served(message.business_connection_id):
            return []
        place, session = convert.visit(message), session_of(message)
        said = convert.message_created(message, me=me, veil=self._veil)
        is_edit = kind in EDITS
        if self._admits(place, said.message.timestamp if is_edit else None):
            if self._titles is not None:
                self._titles.note(session, convert.title(message))
            return [(session, said)]
        # What an excluded chat takes back is taken back; what it says anew is not heard.
        if self.excludes(place):
            return []
        if not is_edit:
            self._hear_knock(message, said.message, me)
            return []
        return [(session, changed(said, known_only=True))] if self._may_change(session, sessions) else []

    def _facts_of_deletion(
        self, deletion: telegram.BusinessMessagesDeleted, sessions: set[SessionId], me: Me
    ) -> list[tuple[SessionId, Said | Retracted]]:
        """What a deletion says; nothing where the chat is not let in and never was."""
        if not self._is_served(deletion.business_connection_id):
            return []
        session = convert.session_of_deletion(deletion)
        known_only = not self._admits(convert.visit_of_deletion(deletion))
        if known_only and not self._may_change(session, sessions):
            return []
        facts = convert.messages_deleted(deletion, me=me, now=now_ms())
        return [(session, changed(fact, known_only=known_only)) for fact in facts]

    def excludes(self, place: Visit) -> bool:
        """Whether a rule keeps this out, also one for the group that a supergroup was before."""
        return any(map(self._admission.excludes, self._guises(place)))

    def _admits(self, place: Visit, said_at: int | None = None) -> bool:
        guises = self._guises(place)
        admitted = any(self._admission.admits(guise, said_at=said_at) for guise in guises)
        return admitted and not any(map(self._admission.excludes, guises))

    def _guises(self, place: Visit) -> list[Visit]:
        """A visit to a supergroup counts as one to the group that it was, too."""
        earlier = [] if place.business else [channel_of(old) for old in self._earlier(telegram_session(place.channel))]
        if place.channel in self._moved and not place.business:
            earlier.append(self._moved[place.channel])
        return [place, *(replace(place, channel=channel) for channel in earlier)]

    def _note_move(self, update: telegram.Update, batch: Batch) -> None:
        """A group became a supergroup: said in the old chat, in the new one, or in both (Message)."""
        message = update.message
        if message is None:
            return
        old = message.chat.id if message.migrate_to_chat_id is not None else message.migrate_from_chat_id
        new = message.migrate_to_chat_id if message.migrate_to_chat_id is not None else message.chat.id
        if old is None or old == new:
            return
        before, after = telegram_session(old), telegram_session(new)
        # What is not let in leaves no trace.
        asks = self._bell is not None and self._bell.asks(before)
        if asks or self._admits(Visit(channel=ChannelId(str(old)))) or self._sessions.exists(before):
            self._moved[ChannelId(str(new))] = ChannelId(str(old))
            batch.moves.append((before, after))

    def _note_answers(self, update: telegram.Update, batch: Batch, *, heard: bool) -> None:
        if update.callback_query is not None:
            batch.presses.append(update.callback_query)
        message = update.message or update.business_message
        if heard and message is not None and message.reply_to_message is not None and message.text:
            batch.replies.append(message)

    def _hear_knock(self, message: telegram.Message, said: MessageCreated, me: Me) -> None:
        """Somebody says something where nobody is let in: a knock, if it is said to us, and not long ago."""
        if self._bell is None or now_ms() - said.timestamp > BACKLOG_MS:
            return
        if self._bell.is_due("telegram", telegram_session(message.chat.id)):
            knock = convert.knock(message, said, me=me, veil=self._veil)
            if knock is not None:
                self._bell.ring(knock)

    def _may_change(self, session: SessionId, sessions: set[SessionId]) -> bool:
        """No rule lets a chat in: whether what it may hold from before can still be edited and taken back."""
        return session in sessions or self._sessions.exists(session)

    def _leave_out(self, raw: object, error: Exception, batch: Batch) -> None:
        """Park an update that cannot be read, if its chat is let in; else only count it."""
        kind, place = kind_of(raw), place_of(raw)
        reason = f"{kind}: {type(error).__name__}"
        if place is not None and self._admits(place.visit) and self._knows(place.business_connection):
            batch.parked.append((reason, blanked(raw, self._token)))
        self._unread[kind] += 1
        logger.warning("telegram_update_unread", kind=kind, error=type(error).__name__)

    # --- business connections -----------------------------------------------------------------------------------------

    async def _learn_businesses(self, updates: Sequence[telegram.Update | Exception], connection: Connection) -> None:
        """Ask about connections that nobody told of: since the last start, say. Raises `ChatUnavailable`."""
        told: set[str] = set()
        for update in updates:
            if isinstance(update, Exception):
                continue
            if update.business_connection is not None:
                told.add(update.business_connection.id)
            name = _business_of(update)
            if name is None or name in told or name in self._businesses:
                continue
            try:
                self._businesses[name] = (await connection.get_business_connection(name)).is_enabled
            except Exception as error:  # noqa: BLE001 - an answer that cannot be read must not hold up the updates
                problem = "Telegram does not tell about a business connection; it is asked again"
                if isinstance(error, RetryAfter):
                    raise ChatUnavailable(problem, retry_after=seconds_of(error)) from None
                if isinstance(error, TelegramError) and is_network(error):
                    raise ChatUnavailable(problem) from None
                self._businesses[name] = False
                logger.warning("telegram_business_unknown", error=type(error).__name__)

    def _is_served(self, business: str | None) -> bool:
        """Whether a message belongs to the bot itself or to a connection that is known and enabled."""
        if self._knows(business):
            return True
        self._unread["business connection"] += 1
        return False

    def _knows(self, business: str | None) -> bool:
        return business is None or self._businesses.get(business, False)


def _parsed(raw: object, connection: Connection) -> telegram.Update | Exception:
    """One update as the library reads it, or what it trips over."""
    try:
        try:
            payload = object_of(raw)
            return ordinary(payload, connection) or telegram.Update.de_json(payload, connection)
        except TypeError:
            return telegram.Update.de_json(object_of(completed(raw)), connection)
    except Exception as error:  # noqa: BLE001 - the library raises whatever a missing or odd field leads to
        return error


def _business_of(update: telegram.Update) -> str | None:
    """The business connection that an update came through, if its state is not what it tells."""
    spoken = update.business_message or update.edited_business_message or update.deleted_business_messages
    return None if spoken is None else spoken.business_connection_id
