"""Updates are made as the library makes them, member for member, and fail as they fail there."""

from typing import Any

import pytest
import telegram
from hypothesis import given
from hypothesis import strategies as st

from bots.telegram.objects import MADE_FOR, ordinary
from bots.telegram.updates import EDITS, MESSAGES

BOT = telegram.Bot("7000000001:AAours")
AT = 1793531041
MONA = {"id": 20001, "is_bot": False, "first_name": "Mona", "username": "mona", "is_premium": True}
GROUP = {"id": -1001000000007, "type": "supergroup", "title": "Film club", "is_forum": True}
FILE = {"file_id": "f", "file_unique_id": "u", "file_size": 3}
PICTURE = FILE | {"width": 90, "height": 51}
ENTITIES = [
    {"type": "bold", "offset": 0, "length": 2},
    {"type": "text_mention", "offset": 2, "length": 2, "user": MONA},
    {"type": "not_known_yet", "offset": 0, "length": 1},
]
NEEDED: dict[str, Any] = {"message_id": 812, "date": AT, "chat": GROUP}
MEMBERS: dict[str, Any] = {
    "from": MONA,
    "sender_chat": GROUP,
    "via_bot": MONA,
    "edit_date": AT + 5,
    "text": "it is loud",
    "entities": ENTITIES,
    "caption": "a still",
    "caption_entities": ENTITIES[:1],
    "link_preview_options": {"is_disabled": True},
    "photo": [PICTURE, PICTURE | {"width": 320}],
    "animation": PICTURE | {"duration": 2, "thumbnail": PICTURE},
    "audio": FILE | {"duration": 2, "title": "Song"},
    "document": FILE | {"file_name": "a.pdf", "mime_type": "application/pdf"},
    "sticker": PICTURE | {"type": "regular", "is_animated": False, "is_video": False, "emoji": "!"},
    "video": PICTURE | {"duration": 2},
    "video_note": FILE | {"length": 240, "duration": 2},
    "voice": FILE | {"duration": 2},
    "reply_to_message": NEEDED | {"from": MONA, "text": "what?"},
    "quote": {"text": "what", "position": 0, "is_manual": True, "entities": ENTITIES[:1]},
    "forward_origin": {"type": "hidden_user", "date": AT, "sender_user_name": "Somebody"},
    "forum_topic_created": {"name": "Tickets", "icon_color": 7},
    "message_thread_id": 4,
    "is_topic_message": True,
    "business_connection_id": "b",
    "media_group_id": "9",
    "author_signature": "M.",
    "is_automatic_forward": True,
    "has_protected_content": True,
    "has_media_spoiler": True,
    "show_caption_above_media": True,
    # What is not ordinary, not the library's, or meant for its own use:
    "location": {"latitude": 1.5, "longitude": 2.5},
    "reply_markup": {"inline_keyboard": [[{"text": "yes", "callback_data": "y"}]]},
    "a_member_of_next_year": {"id": 1},
    "api_kwargs": {"text": "?"},
    "from_user": MONA,
}
VALUES: list[object] = [None, 0, -1, True, "", "x", 10**20, 1.5, [], [None], {}, {"id": 5}, [[]], [{"type": "bold"}]]
ODD = st.sampled_from(VALUES)


def update_of(raw: dict[str, Any], bot: telegram.Bot) -> telegram.Update:
    """As the door reads it."""
    return ordinary(raw, bot) or telegram.Update.de_json(raw, bot)


def told(value: object) -> object:
    """All that an object holds, with the library's names."""
    if isinstance(value, telegram.TelegramObject):
        names = {name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())} - {"_frozen"}
        library = next(kind for kind in type(value).__mro__ if kind.__module__.startswith("telegram."))
        return library, {name: told(getattr(value, name)) for name in names if hasattr(value, name)}
    return [told(item) for item in value] if isinstance(value, tuple | list) else value  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON, or made of it


def outcome(read: Any, raw: Any) -> object:
    try:
        return told(read(raw, BOT))
    except Exception as error:  # noqa: BLE001 - whatever it is, it has to be the same
        return type(error), str(error).replace("_Message", "Message")


def test_they_are_made_for_the_version_that_is_installed() -> None:
    assert telegram.__version__ == MADE_FOR, "see what has changed in the library's objects, then say so"


@pytest.mark.parametrize("name", [*MEMBERS])
def test_each_member_is_read_as_the_library_reads_it(name: str) -> None:
    message = NEEDED | {name: MEMBERS[name]}
    raw = {"update_id": 1, "message": message | {"reply_to_message": message}}
    assert outcome(update_of, raw) == outcome(telegram.Update.de_json, raw)


@pytest.mark.parametrize("kind", [*MESSAGES, *EDITS])
def test_an_ordinary_message_has_none_of_the_library_s_guards(kind: str) -> None:
    raw = {"update_id": 1, kind: NEEDED | {"text": "hm"}}
    assert outcome(update_of, raw) == outcome(telegram.Update.de_json, raw)
    update = update_of(raw, BOT)
    assert type(getattr(update, kind)) is not telegram.Message
    assert isinstance(getattr(update, kind), telegram.Message)


@given(
    names=st.lists(st.sampled_from([*MEMBERS]), unique=True, max_size=6),
    odd=st.dictionaries(st.sampled_from([*NEEDED, *MEMBERS]), ODD, max_size=2),
    missing=st.lists(st.sampled_from([*NEEDED]), max_size=1),
    nested=st.booleans(),
)
def test_what_is_odd_is_read_or_fails_as_in_the_library(
    names: list[str], odd: dict[str, object], missing: list[str], nested: bool
) -> None:
    message = NEEDED | {name: MEMBERS[name] for name in names} | odd
    for name in missing:
        message.pop(name, None)
    raw = {"update_id": 1, "message": NEEDED | {"reply_to_message": message} if nested else message}
    assert outcome(update_of, raw) == outcome(telegram.Update.de_json, raw)


@given(ODD)
def test_what_is_no_message_fails_as_in_the_library(odd: object) -> None:
    updates: list[dict[str, object]] = [
        {"update_id": 1, "message": odd},
        {"update_id": odd, "message": NEEDED},
        {"message": NEEDED},
        {"update_id": 1},
        {"update_id": 1, "poll": odd},
        {"update_id": 1, "message": NEEDED, "edited_message": NEEDED},
    ]
    for raw in updates:
        assert outcome(update_of, raw) == outcome(telegram.Update.de_json, raw)
