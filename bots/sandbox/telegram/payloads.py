"""What a person puts into a message, and the fields of the Message object that come of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from bots.sandbox.telegram.chats import MEDIA, Chat, Json, Message, Topic
from bots.sandbox.telegram.entities import Entity, detect, trim
from bots.sandbox.telegram.files import File, describe
from bots.sandbox.telegram.markup import parse_html
from bots.sandbox.telegram.world import World

if TYPE_CHECKING:
    from bots.sandbox.telegram.people import Person


@dataclass(frozen=True)
class Poll:
    """A regular poll."""

    question: str
    options: Sequence[str]
    is_anonymous: bool = True
    allows_multiple_answers: bool = False


@dataclass(frozen=True)
class Contact:
    """Somebody's card; `user_id` only if that person is on Telegram."""

    phone_number: str
    first_name: str
    last_name: str = ""
    user_id: int | None = None


@dataclass(frozen=True)
class Venue:
    """A place with a name; degrees."""

    latitude: float
    longitude: float
    title: str
    address: str


class Saying(TypedDict, total=False):
    """Everything that `Person.say` takes besides the text. `extra` is merged in last, as it is."""

    reply_to: Message
    quote: str
    topic: Topic
    html: bool
    entities: list[Entity]
    photo: File
    document: File
    audio: File
    voice: File
    video: File
    video_note: File
    animation: File
    sticker: File
    emoji: str
    location: tuple[float, float]
    venue: Venue
    contact: Contact
    dice: tuple[str, int]
    poll: Poll
    forward: Message
    hide_forwarder: bool
    via_bot: Person
    anonymous: bool
    as_chat: Chat
    extra: Json


def content(world: World, text: str, details: Saying) -> Json:
    """The content fields of the message that this saying makes."""
    body = _body(world, details)
    words = formatted(world, text, html=details.get("html", False), entities=details.get("entities"))
    name = "caption" if body else "text"
    if words[0]:
        body[name] = words[0]
        if words[1]:
            body["entities" if name == "text" else "caption_entities"] = words[1]
    return body | details.get("extra", {})


def formatted(
    world: World, text: str, *, html: bool = False, entities: list[Entity] | None = None
) -> tuple[str, list[Entity]]:
    """The text as stored and its entities, those included that the server finds by itself."""
    plain, marked = parse_html(text) if html else (text, list(entities or ()))
    plain, marked = trim(plain, marked)
    known: list[Entity] = []
    for one in marked:
        if one["type"] != "text_mention":
            known.append(one)
        elif (user := world.users.get(one["user"]["id"])) is not None:
            known.append(one | {"user": user})
    return plain, detect(plain, known)


def media(world: World, kind: str, file: File, emoji: str = "") -> Json:
    """The fields of one medium."""
    fields = describe(world.files, world.files.put(kind, file))
    if emoji and kind == "sticker":
        fields["sticker"]["emoji"] = emoji
    return fields


def _body(world: World, details: Saying) -> Json:
    given: dict[str, Any] = dict(details)
    for kind in MEDIA:
        if kind in given:
            return media(world, kind, given[kind], details.get("emoji", ""))
    for name, make in _OTHER.items():
        if name in given:
            return make(world, given[name])
    return {}


def _location(_world: World, place: tuple[float, float]) -> Json:
    return {"location": {"latitude": place[0], "longitude": place[1]}}


def _venue(world: World, venue: Venue) -> Json:
    place = _location(world, (venue.latitude, venue.longitude))
    return place | {"venue": place | {"title": venue.title, "address": venue.address}}


def _contact(_world: World, contact: Contact) -> Json:
    shown: Json = {"phone_number": contact.phone_number, "first_name": contact.first_name}
    if contact.last_name:
        shown["last_name"] = contact.last_name
    if contact.user_id is not None:
        shown["user_id"] = contact.user_id
    return {"contact": shown}


def _dice(_world: World, dice: tuple[str, int]) -> Json:
    return {"dice": {"emoji": dice[0], "value": dice[1]}}


def _poll(world: World, poll: Poll) -> Json:
    shown: Json = {
        "id": str(5_300_000_000_000_000_000 + next(world.numbers)),
        "question": poll.question,
        "options": [
            {"persistent_id": f"{number}", "text": text, "voter_count": 0} for number, text in enumerate(poll.options)
        ],
        "total_voter_count": 0,
        "is_closed": False,
        "is_anonymous": poll.is_anonymous,
        "type": "regular",
        "allows_multiple_answers": poll.allows_multiple_answers,
        "allows_revoting": True,
        "members_only": False,
    }
    return {"poll": shown}


_OTHER: dict[str, Callable[[World, Any], Json]] = {
    "venue": _venue,
    "location": _location,
    "contact": _contact,
    "dice": _dice,
    "poll": _poll,
}
