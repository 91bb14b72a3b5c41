"""Who is who at Telegram: ourselves, people, and the chats that speak for themselves."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import telegram

from bots.telegram.veil import Veil
from core.entries import Author, Place
from core.ids import UserId

NOT_PEOPLE: Final = frozenset({777000, 1087968824, 136817688})
"""Who stands in for the linked channel, for anonymous administrators, and for channels (User, Message)."""


@dataclass(frozen=True, slots=True)
class Me:
    """Who we are at Telegram, from ``getMe``."""

    id: UserId
    username: str | None


def author_of(who: telegram.User | telegram.Chat, veil: Veil) -> Author:
    """A person, bot or chat as an author."""
    return Author(id=UserId(str(who.id)), name=veil.over(name_of(who)) or None)


def place_of(chat: telegram.Chat, veil: Veil) -> Place:
    """A chat as a place."""
    return Place(id=str(chat.id), name=veil.over(name_of(chat)) or None)


def name_of(who: telegram.User | telegram.Chat | telegram.SharedUser) -> str:
    """Title, else first and last name, else username; empty if there is none of them."""
    title = (getattr(who, "title", None) or "").strip()
    first, last = (who.first_name or "").strip(), (who.last_name or "").strip()
    return title or f"{first} {last}".strip() or (who.username or "").strip()


def names_of(people: Iterable[telegram.User | telegram.Chat | telegram.SharedUser]) -> str:
    """The names of several, in a row; ``somebody`` for one without."""
    return ", ".join(name_of(person) or "somebody" for person in people) or "somebody"
