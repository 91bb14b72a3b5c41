"""What the doors hand in: platform facts before the session has decided whether they are new.

An adapter converts one platform object to one of these, purely. Which revision an edit is, whose message a deletion
takes back, and whether any of it was known already is decided by the session, from the log.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from core.clock import now_ms
from core.codec import raw_json
from core.entries import AnyEntry, AttachmentItem, MessageCreated, MessageDeleted, UserMessage, message_entry
from core.ids import AssetId, new_uuid
from core.sidecars import FileRef, SourceInfo

if TYPE_CHECKING:
    from core.sessions.state import SessionState


class Media(msgspec.Struct, frozen=True):
    """One file of a message: its line in the attachment entry, and where its bytes can be had."""

    asset: AssetId
    item: AttachmentItem
    ref: FileRef
    declared: SourceInfo


class Said(msgspec.Struct, frozen=True):
    """A message as the platform shows it now.

    ``edited_at`` is the platform's edit time in ms, None for a message that was not edited. ``changed_only``: the
    platform also reports changes that nobody can see, so an edit counts only if content or media differ (Telegram).
    ``known_only``: no rule lets the chat in, so it counts only if the log holds the message already.
    """

    message: MessageCreated
    media: tuple[Media, ...] = ()
    edited_at: int | None = None
    changed_only: bool = False
    known_only: bool = False


class Retracted(msgspec.Struct, frozen=True):
    """A message was taken back, or found to be gone. ``known_only`` as in `Said`."""

    message: MessageDeleted
    known_only: bool = False


class Written(msgspec.Struct, frozen=True):
    """Lines of our own, in one batch.

    Where they depend on what they will stand behind, ``entries`` is a pure function of that state; no lines: nothing
    is written.
    """

    entries: "tuple[AnyEntry, ...] | Callable[[SessionState], tuple[AnyEntry, ...]]"


Fact = Said | Retracted | Written


def said_here(content: str) -> Written:
    """What a person says in a session without a platform; ``content`` is plain text."""

    def lines(state: "SessionState") -> tuple[AnyEntry, ...]:
        now = now_ms()
        message = UserMessage(id=new_uuid(), timestamp=now, content=raw_json(content))
        return (message_entry(message, now=now, turn_id=state.open_turn),)

    return Written(lines)
