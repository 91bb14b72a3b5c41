"""What is true now in a session: a fold of its log. Pure: no clock, no disk, no loop.

`SessionState.apply` takes a line that stands in the log; `decide` says which lines a fact calls for. Only lines that
are durable are applied, so the memory is never ahead of the file.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec.structs import replace as changed

from core.entries import (
    AnyEntry,
    Attachment,
    Edited,
    MessageCreated,
    MessageDeleted,
    Narrative,
    TurnAborted,
    TurnDone,
    TurnFailed,
    custom_message,
    fact_of,
)
from core.ids import ChannelId, EntryId, MessageId, TurnId, UserId
from core.sessions.facts import Fact, Media, Retracted, Said

MOST_MESSAGES: Final = 256
"""Messages that memory knows of each lively session; older ones are looked up in the file. Some 450 bytes each."""


class MessageKey(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """The key of a message, compared as a 4-tuple (log-format 7)."""

    platform: str
    self_id: UserId
    channel_id: ChannelId
    message_id: MessageId


class Standing(msgspec.Struct, frozen=True, gc=False):
    """What the log says of one message.

    ``version`` is a hash of its newest content, media included; ``versions`` are those of its newest edit time, as
    older edits count no more.
    """

    author: UserId | None = None
    sent_at: int = 0
    original: bool = False
    revision: int = 0
    edited_at: int = 0
    version: int = 0
    versions: frozenset[int] = frozenset()
    deleted: bool = False

    @property
    def written(self) -> bool:
        return self.original or self.revision > 0


UNHEARD: Final = Standing()
ABOUT_A_MESSAGE: Final = (MessageCreated, MessageDeleted)
_ENDS: Final = (TurnDone, TurnFailed, TurnAborted)


class Decision(msgspec.Struct, frozen=True):
    """Lines to write for one fact, and the media whose sidecars go with them. Empty: nothing new."""

    entries: tuple[AnyEntry, ...] = ()
    media: tuple[Media, ...] = ()


class SessionState:
    """The newest messages, and the open turn.

    ``complete``: every message of the log is here, so one that is not was never written. Otherwise an unknown key
    has to be looked up in the file before `decide` may say that it is new.
    """

    def __init__(self, *, complete: bool = True) -> None:
        self._messages: OrderedDict[MessageKey, Standing] = OrderedDict()
        self.complete = complete
        self.highest = 0
        self.surveyed = complete
        """Whether `highest` is the highest number of the whole log, not only of what was folded."""
        self._partial: set[MessageKey] = set()
        self.open_turn: TurnId | None = None
        self.inherited_turn: TurnId | None = None
        """The turn that the log was found with: its process is gone, so nobody will end it but us."""
        self.last_entry: EntryId | None = None

    def standing(self, key: MessageKey) -> Standing | None:
        """What is known of a message; None where nothing is in memory."""
        return self._messages.get(key)

    def is_retracted(self, key: MessageKey) -> bool:
        standing = self.standing(key)
        return standing is not None and standing.deleted

    def needs_lookup(self, fact: Fact) -> MessageKey | None:
        """The key that has to be looked for in the file before the fact can be decided."""
        if self.complete or not isinstance(fact, Said | Retracted):
            return None
        key = key_of(fact.message)
        original = isinstance(fact, Said) and fact.edited_at is None
        known = self._messages.get(key)
        if known is not None:
            if known.deleted or isinstance(fact, Retracted):
                return None
            # Of a message that the log's end tells of, the original or other edits may stand further up.
            return key if (not known.original if original else key in self._partial) else None
        return None if original and number_of(key.message_id) > self.highest else key

    def remember(self, key: MessageKey, standing: Standing) -> None:
        """Keep what holds of a message."""
        self._messages[key] = standing
        self._messages.move_to_end(key)

    def doubt(self) -> None:
        """What is here comes from the log's end: of each of these messages more may stand further up."""
        self._partial.update(self._messages)

    def is_partial(self, key: MessageKey) -> bool:
        """Whether the file may say more of a message than memory does."""
        return not self.complete and (key in self._partial or key not in self._messages)

    def recall(self, key: MessageKey, standing: Standing) -> None:
        """Keep what the whole file says of a message."""
        self.remember(key, standing)
        self._partial.discard(key)

    def trim(self, most: int = MOST_MESSAGES) -> None:
        """Let go of the messages least lately touched. Not while something is being decided: it may need them."""
        while len(self._messages) > most:
            key, _ = self._messages.popitem(last=False)
            self._partial.discard(key)
            self.complete = False

    def absorb(self, draft: "Draft") -> None:
        """What a draft on this state held to come is durable now."""
        for key, standing in draft.changes.items():
            self.remember(key, standing)
        self.highest = draft.highest
        self.open_turn, self.inherited_turn = draft.open_turn, draft.inherited_turn
        self.last_entry = draft.last_entry
        self.trim()

    def apply(self, entry: AnyEntry) -> None:
        """Take one line of the log."""
        self.last_entry = entry.id
        fact = fact_of(entry)
        if isinstance(fact, ABOUT_A_MESSAGE):
            key = key_of(fact)
            self.remember(key, fold_message(self.standing(key) or UNHEARD, fact))
            self.highest = max(self.highest, number_of(key.message_id))
        if isinstance(entry.data, _ENDS):
            self.open_turn = self.inherited_turn = None
        elif entry.turn_id is not None and not isinstance(entry.data, Narrative):  # which may follow its turn's end
            self.open_turn = entry.turn_id


class Draft(SessionState):
    """What would be true after lines that are not durable yet: a layer over a state, which it leaves alone.

    One is made for each append, so it holds no more than ``changes``.
    """

    def __init__(self, base: SessionState) -> None:
        self.changes: dict[MessageKey, Standing] = {}
        self._base = base
        self.complete = base.complete
        self.highest, self.surveyed = base.highest, base.surveyed
        self.open_turn, self.inherited_turn = base.open_turn, base.inherited_turn
        self.last_entry = base.last_entry

    def standing(self, key: MessageKey) -> Standing | None:
        return self.changes.get(key) or self._base.standing(key)

    def remember(self, key: MessageKey, standing: Standing) -> None:
        self.changes[key] = standing

    def take(self, fact: Fact, *, now: int) -> Decision:
        """Decide one fact on top of those taken before, and remember what it leads to."""
        decision = decide(self, fact, now=now)
        for entry in decision.entries:
            self.apply(entry)
        return decision


def fold_message(standing: Standing, fact: MessageCreated | MessageDeleted) -> Standing:
    """What holds of a message after one more line about it."""
    if isinstance(fact, MessageDeleted):
        return changed(standing, deleted=True, author=standing.author or fact.user_id)
    version = _version(fact.content)
    if fact.edited is None:
        if standing is UNHEARD:  # nearly always
            return Standing(fact.user.id, fact.timestamp, original=True, version=version)
        newest = standing.version if standing.revision else version
        return changed(standing, author=fact.user.id, sent_at=fact.timestamp, original=True, version=newest)
    newer = fact.edited.timestamp > standing.edited_at
    older = fact.edited.timestamp < standing.edited_at
    return changed(
        standing,
        author=fact.user.id,
        sent_at=fact.timestamp,
        revision=max(standing.revision, fact.edited.revision),
        edited_at=max(standing.edited_at, fact.edited.timestamp),
        version=version,
        versions=standing.versions if older else (frozenset() if newer else standing.versions) | {version},
    )


def decide(state: SessionState, fact: Fact, *, now: int) -> Decision:
    """Which lines a fact calls for: none when the log holds it already, or when it may not count.

    ``now`` is in Unix milliseconds. Everything in it is the first of its kind: a message once per key, an edit once per
    edit time and content, a deletion once per key (log-format 7.1, 7.2; contract section 9, "Log").
    """
    if isinstance(fact, Said):
        return _decide_said(state, fact, now)
    if isinstance(fact, Retracted):
        return _decide_retracted(state, fact, now)
    return Decision(fact.entries(state) if callable(fact.entries) else fact.entries)


def _decide_said(state: SessionState, fact: Said, now: int) -> Decision:
    message = fact.message
    standing = state.standing(key_of(message)) or UNHEARD
    if standing.deleted or (fact.known_only and not standing.written):
        return Decision()
    if fact.edited_at is None:
        if standing.original:
            return Decision()
    else:
        version = _version(message.content)
        if (
            fact.edited_at < standing.edited_at
            or (fact.edited_at == standing.edited_at and version in standing.versions)
            or (fact.changed_only and standing.written and version == standing.version)
        ):
            return Decision()
        sent_at = standing.sent_at if standing.written else message.timestamp
        revision = Edited(timestamp=fact.edited_at, revision=standing.revision + 1)
        message = changed(message, timestamp=sent_at, edited=revision)
    entries: list[AnyEntry] = [custom_message(message, now=now, turn_id=state.open_turn)]
    if fact.media:
        attachment = Attachment(
            source="platform",
            platform=message.platform,
            self_id=message.self_id,
            channel_id=message.channel_id,
            message_id=message.message_id,
            items=[media.item for media in fact.media],
        )
        entries.append(custom_message(attachment, now=now, turn_id=state.open_turn))
    return Decision(tuple(entries), fact.media)


def _decide_retracted(state: SessionState, fact: Retracted, now: int) -> Decision:
    standing = state.standing(key_of(fact.message)) or UNHEARD
    if standing.deleted or (fact.known_only and not standing.written):
        return Decision()
    message = changed(
        fact.message,
        timestamp=max(fact.message.timestamp, standing.sent_at),
        user_id=fact.message.user_id or standing.author,
    )
    return Decision((custom_message(message, now=now, turn_id=state.open_turn),))


_NAME: Final = re.compile(r' name="[^"]*"')


def _version(content: str) -> int:
    """A hash of what somebody wrote: the names in it are the platform's, and change when people are renamed."""
    if ' name="' in content:
        content = _NAME.sub("", content)
    if not content.isascii():
        # A lone surrogate is read back from the log as U+FFFD.
        content = content.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return hash(content)


def key_of(message: MessageCreated | MessageDeleted) -> MessageKey:
    return MessageKey(message.platform, message.self_id, message.channel_id, message.message_id)


def number_of(message_id: MessageId) -> int:
    """Platforms number the messages of a chat upwards; an id that is no number sorts lowest."""
    return int(message_id) if message_id.isdecimal() and len(message_id) <= 20 else 0


def fold(entries: Iterable[AnyEntry], *, complete: bool = True) -> SessionState:
    """The state after these lines, in file order."""
    state = SessionState(complete=complete)
    for entry in entries:
        state.apply(entry)
    if not complete:
        state.doubt()
    state.trim()
    return state
