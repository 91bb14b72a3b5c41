"""Telegram's objects as the library makes them, of ordinary messages in a fraction of its time.

The library guards every attribute that it sets, and looks for each of the hundred things that a message might hold. Of
a message with ordinary members only, those that are there are read, each by the library's own class. Whatever else
comes is left to the library as a whole, which also says what is wrong with it.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import telegram

from bots.telegram.updates import EDITS, MESSAGES

MADE_FOR: Final = "22.8"
"""The version of the library whose objects these are; to another one all is left."""

_MESSAGES: Final = frozenset({*MESSAGES, *EDITS})
_UPDATE_ID: Final = "update_id"


def ordinary(payload: dict[str, Any], bot: telegram.Bot) -> telegram.Update | None:
    """The update that a payload tells of; None for one that the library has to read. Changes nothing in it."""
    kind = next((name for name in payload if name != _UPDATE_ID), "")
    if telegram.__version__ != MADE_FOR or len(payload) != 2 or kind not in _MESSAGES:
        return None
    try:
        members: dict[str, Any] = {kind: _Message.de_json(payload[kind], bot)}
        update = _Update(payload[_UPDATE_ID], **members)
        update.set_bot(bot)
    except Exception:  # noqa: BLE001 - not judged here: the library reads it again and says what is wrong
        return None
    return update


class _Unguarded:
    """An object that is filled at the speed of Python's own: nobody changes what is only read here."""

    __slots__ = ()
    # Both, as Python takes its own short way only where neither is another's.
    __setattr__ = object.__setattr__
    __delattr__ = object.__delattr__


class _Update(_Unguarded, telegram.Update):
    __slots__ = ()


class _User(_Unguarded, telegram.User):
    __slots__ = ()


class _Chat(_Unguarded, telegram.Chat):
    __slots__ = ()


class _Entity(_Unguarded, telegram.MessageEntity):
    __slots__ = ()


class _Message(_Unguarded, telegram.Message):
    __slots__ = ()

    @classmethod
    def de_json(cls, data: dict[str, Any], bot: telegram.Bot | None = None) -> telegram.Message:
        if not (_NEEDED <= data.keys() <= _KNOWN):
            return super().de_json(data, bot)
        members: dict[str, Any] = {name: _read(name, value, bot) for name, value in data.items()}
        members["from_user"] = members.pop("from", None)
        message = cls(**members)
        message.set_bot(bot)
        return message


def _read(name: str, value: Any, bot: telegram.Bot | None) -> object:  # noqa: ANN401 - JSON from outside
    read = _READERS.get(name)
    return value if read is None or value is None else read(value, bot)


def _moment(seconds: Any, _bot: telegram.Bot | None) -> datetime:  # noqa: ANN401 - JSON from outside
    return datetime.fromtimestamp(seconds, UTC)


_READERS: Final[Mapping[str, Callable[[Any, telegram.Bot | None], object]]] = {
    "from": _User.de_json,
    "sender_chat": _Chat.de_json,
    "chat": _Chat.de_json,
    "via_bot": _User.de_json,
    "date": _moment,
    "edit_date": _moment,
    "entities": _Entity.de_list,
    "caption_entities": _Entity.de_list,
    "link_preview_options": telegram.LinkPreviewOptions.de_json,
    "photo": telegram.PhotoSize.de_list,
    "animation": telegram.Animation.de_json,
    "audio": telegram.Audio.de_json,
    "document": telegram.Document.de_json,
    "sticker": telegram.Sticker.de_json,
    "video": telegram.Video.de_json,
    "video_note": telegram.VideoNote.de_json,
    "voice": telegram.Voice.de_json,
    "reply_to_message": _Message.de_json,
    "quote": telegram.TextQuote.de_json,
    "forward_origin": telegram.MessageOrigin.de_json,
    "forum_topic_created": telegram.ForumTopicCreated.de_json,
}
_NEEDED: Final = frozenset({"message_id", "date", "chat"})
_KNOWN: Final = _READERS.keys() | {
    "message_id",
    "message_thread_id",
    "is_topic_message",
    "business_connection_id",
    "media_group_id",
    "author_signature",
    "is_automatic_forward",
    "has_protected_content",
    "has_media_spoiler",
    "show_caption_above_media",
    "text",
    "caption",
}
