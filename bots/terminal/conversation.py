"""A stretch of a log as people read it: each message once, as it is now, in the place of its first line. Pure."""

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace as changed

from bots.timeline import Moment, clock, moment
from core.content import for_terminal
from core.entries import AnyEntry, Attachment, MessageCreated, MessageDeleted, custom_message, fact_of
from core.sessions.state import MessageKey

RETRACTED: Final = "dim red"

PlatformFact = MessageCreated | MessageDeleted | Attachment


def items(entries: Iterable[AnyEntry]) -> list[Moment]:
    """What to show of these lines, which stand in file order.

    An edit takes the place of what it edits, with a mark; a message's files stand with it; a retraction leaves who and
    when, and nothing of what was said. What belongs to a message further up than the first of these lines stands by
    itself.
    """
    found: list[Moment] = []
    places: dict[MessageKey, int] = {}
    retracted: set[MessageKey] = set()
    for entry in entries:
        fact = fact_of(entry)
        key = _key(fact)
        if key is None:
            found.append(moment(entry))
        elif key in retracted:
            continue
        elif key in places:
            found[places[key]] = _later(found[places[key]], entry, fact)
        else:
            places[key] = len(found)
            found.append(_said(entry, fact) if isinstance(fact, MessageCreated) else moment(entry))
        if key is not None and isinstance(fact, MessageDeleted):
            retracted.add(key)
    return found


def _later(before: Moment, entry: AnyEntry, fact: PlatformFact | None) -> Moment:
    """What a message's item becomes with one more line about it."""
    match fact:
        case MessageCreated():
            return _said(entry, fact)._replace(at=before.at)
        case MessageDeleted():
            return _retracted(before, fact, entry.timestamp)
        case _:
            return before._replace(what="\n".join(filter(None, (before.what, moment(entry).what))))


def _said(entry: AnyEntry, fact: MessageCreated) -> Moment:
    if fact.edited is None:
        return moment(entry)
    plain = moment(custom_message(changed(fact, edited=None), now=entry.timestamp))
    return plain._replace(who=f"{plain.who} (edited {clock(fact.edited.timestamp)})", style="yellow")


def _retracted(before: Moment, fact: MessageDeleted, at: int) -> Moment:
    by = f" by {fact.operator_id}" if fact.operator_id else ""
    found = ", found out by comparing" if fact.inferred else ""
    return Moment(before.at, before.who, for_terminal(f"✗ retracted {clock(at)}{by}{found}"), RETRACTED)


def _key(fact: PlatformFact | None) -> MessageKey | None:
    """Which message a line is about; None for what is about none."""
    if fact is None or fact.platform is None or fact.self_id is None:
        return None
    if fact.channel_id is None or fact.message_id is None:
        return None
    return MessageKey(fact.platform, fact.self_id, fact.channel_id, fact.message_id)
