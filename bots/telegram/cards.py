"""What a message shows besides its text and files: polls, places, contacts and their kin, in words."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TypeAlias

import telegram

from bots.telegram.people import name_of, names_of
from core.content import Node

Read: TypeAlias = Callable[[str, Sequence[telegram.MessageEntity] | None], list[Node]]
"""Reads a text with Telegram's entities."""


def cards_of(source: telegram.Message | telegram.ExternalReplyInfo, read: Read) -> Iterator[list[Node]]:
    """Everything that is no text and no file, a piece each."""
    if source.poll is not None:
        yield poll_in_words(source.poll, read)
    if source.checklist is not None:
        yield checklist_in_words(source.checklist, read)
    if source.venue is not None:
        yield [venue_in_words(source.venue)]
    elif source.location is not None:
        yield [place_in_words(source.location)]
    if source.contact is not None:
        yield [_contact(source.contact)]
    if source.dice is not None:
        yield [f"{source.dice.emoji} {source.dice.value}"]
    if source.game is not None:
        yield _game(source.game, read)
    yield from _offers(source)


def _offers(source: telegram.Message | telegram.ExternalReplyInfo) -> Iterator[list[Node]]:
    if source.invoice is not None:
        yield [_invoice(source.invoice)]
    if source.giveaway is not None:
        yield [_giveaway(source.giveaway)]
    if source.giveaway_winners is not None:
        yield [_winners(source.giveaway_winners)]
    if source.story is not None:
        yield [f"[a story of {name_of(source.story.chat) or 'somebody'}]"]
    if source.paid_media is not None:
        yield [_paid_media(source.paid_media)]


def poll_in_words(poll: telegram.Poll, read: Read) -> list[Node]:
    """The question, and the answers a line each; the votes are not in it, as they are no edits."""
    kind = "Quiz" if poll.type == telegram.Poll.QUIZ else "Poll"
    manner = " (several answers)" if poll.allows_multiple_answers else ""
    nodes: list[Node] = [f"{kind}{manner}: ", *read(poll.question, poll.question_entities)]
    if poll.description:
        nodes += ["\n", *read(poll.description, poll.description_entities)]
    for option in poll.options:
        nodes += ["\n- ", *read(option.text, option.text_entities)]
    places = [part.media for part in (poll, *poll.options) if part.media is not None]
    for media in places:
        if media.venue is not None:
            nodes += ["\n", venue_in_words(media.venue)]
        elif media.location is not None:
            nodes += ["\n", place_in_words(media.location)]
    return nodes


def checklist_in_words(checklist: telegram.Checklist, read: Read) -> list[Node]:
    """The title, and the tasks a line each, with a mark at those done."""
    nodes: list[Node] = ["Checklist: ", *read(checklist.title, checklist.title_entities)]
    for task in checklist.tasks:
        nodes += ["\n[x] " if task.completion_date is not None else "\n[ ] ", *read(task.text, task.text_entities)]
    return nodes


def place_in_words(location: telegram.Location) -> str:
    """The coordinates, in degrees."""
    return f"Location: {_degrees(location.latitude)}, {_degrees(location.longitude)}"


def venue_in_words(venue: telegram.Venue) -> str:
    """Name, address and coordinates."""
    words = ", ".join(part for part in (venue.title, venue.address) if part)
    return f"Venue: {words} ({_degrees(venue.location.latitude)}, {_degrees(venue.location.longitude)})"


def money(amount: int, currency: str) -> str:
    """A price in the smallest units of its currency, which for Telegram's own stars is one star."""
    return f"{amount} stars" if currency == "XTR" else f"{amount} of the smallest unit of {currency}"


def moment(when: datetime) -> str:
    """A time of Telegram's, which are in UTC."""
    return f"{when:%Y-%m-%d %H:%M} UTC"


def _contact(contact: telegram.Contact) -> str:
    name = " ".join(part for part in (contact.first_name, contact.last_name) if part)
    return f"Contact: {name}, {contact.phone_number}"


def _game(game: telegram.Game, read: Read) -> list[Node]:
    text = read(game.text, game.text_entities) if game.text else [game.description]
    return [f"Game: {game.title}\n", *text]


def _invoice(invoice: telegram.Invoice) -> str:
    return f"Invoice: {invoice.title}, {money(invoice.total_amount, invoice.currency)}\n{invoice.description}"


def _giveaway(giveaway: telegram.Giveaway) -> str:
    words = f"Giveaway of {names_of(giveaway.chats)}: {giveaway.winner_count} winners"
    prize = _prize(giveaway.prize_description, giveaway.prize_star_count, giveaway.premium_subscription_month_count)
    return f"{words}{prize}, drawn on {moment(giveaway.winners_selection_date)}"


def _winners(giveaway: telegram.GiveawayWinners) -> str:
    prize = _prize(giveaway.prize_description, giveaway.prize_star_count, giveaway.premium_subscription_month_count)
    return f"Winners of the giveaway of {name_of(giveaway.chat) or 'somebody'}{prize}: {names_of(giveaway.winners)}"


def _prize(description: str | None, stars: int | None, months: int | None) -> str:
    told = (description, f"{stars} stars" if stars else None, f"{months} months of Premium" if months else None)
    words = ", ".join(part for part in told if part)
    return f" of {words}" if words else ""


def _paid_media(paid: telegram.PaidMediaInfo) -> str:
    closed = sum(isinstance(media, telegram.PaidMediaPreview) for media in paid.paid_media)
    unseen = f", {closed} of them not shown to this bot" if closed else ""
    return f"[paid media for {paid.star_count} stars: {len(paid.paid_media)}{unseen}]"


def _degrees(value: float) -> str:
    """A coordinate as people write it; six digits are a hand's breadth."""
    return f"{value:.6f}".rstrip("0").rstrip(".")
