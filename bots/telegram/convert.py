"""From Telegram's objects to facts. Pure: no network, no clock but the event's, no dictionary leaves it.

The rules come from the Bot API (Message, MessageOrigin, ExternalReplyInfo, TextQuote, BusinessMessagesDeleted). An own
bot is named in a text by ``@username`` alone; ``/command@username`` stays a command and is no mention.
"""

import re
from collections.abc import Sequence
from typing import Final

import telegram
from msgspec.structs import replace as changed

from bots.telegram.cards import Read, cards_of
from bots.telegram.entities import read_entities
from bots.telegram.media import media_of
from bots.telegram.notices import is_notice, notice
from bots.telegram.people import Me, author_of, name_of, place_of
from bots.telegram.veil import Veil
from core.access import Visit
from core.archive.profiles import Title
from core.clock import milliseconds
from core.content import Element, Node, in_lines, mentions, render, without_sources
from core.entries import Author, Forward, MessageCreated, MessageDeleted, Quote, Via
from core.ids import ChannelId, MessageId, SessionId, ThreadId, UserId, telegram_session
from core.pairing.codes import Knock
from core.resources.shown import Shown
from core.sessions.facts import Retracted, Said

_TELEGRAM: Final = 777000
"""The account in whose name a linked channel's posts come."""
_MEMBER: Final = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)


def message_created(message: telegram.Message, *, me: Me, veil: Veil) -> Said:
    """A message as Telegram shows it now: new or edited, of a chat, a channel or a business connection alike."""
    files = media_of(message, message, veil)
    return Said(
        message=MessageCreated(
            platform="telegram",
            self_id=me.id,
            channel_id=_channel_id(message.chat),
            message_id=MessageId(str(message.message_id)),
            timestamp=milliseconds(message.date),
            content=veil.over(render(_content(message, files, me, veil))),
            is_direct=_is_direct(message),
            user=author_of(_sender(message), veil),
            quote=_quote(message, me, veil),
            thread_id=_thread_id(message),
            forward=_forward(message.forward_origin, veil),
            album=None if message.media_group_id is None else str(message.media_group_id),
            via=_via(message),
        ),
        media=tuple([file.media for file in files]),
        edited_at=None if message.edit_date is None else milliseconds(message.edit_date),
        changed_only=True,
    )


def messages_deleted(event: telegram.BusinessMessagesDeleted, *, me: Me, now: int) -> list[Retracted]:
    """A deletion in a business chat, in the order of Telegram's list, which tells neither who nor when.

    ``now`` is the time of its receipt, in ms.
    """
    return [
        Retracted(
            MessageDeleted(
                platform="telegram",
                self_id=me.id,
                channel_id=_channel_id(event.chat),
                message_id=MessageId(str(message)),
                timestamp=now,
            )
        )
        for message in event.message_ids
    ]


def visit(message: telegram.Message) -> Visit:
    """Where a message was written, and by whom."""
    return Visit(
        channel=_channel_id(message.chat),
        user=UserId(str(_sender(message).id)),
        direct=_is_direct(message),
        business=message.business_connection_id is not None,
    )


def title(message: telegram.Message) -> Title:
    """What Telegram calls the chat of a message."""
    chat = message.chat
    return Title(
        name_of(chat),
        chat_id=str(chat.id),
        user_id=str(chat.id) if chat.type == telegram.Chat.PRIVATE else "",
        business_id=message.business_connection_id or "",
    )


def knock(message: telegram.Message, said: MessageCreated, *, me: Me, veil: Veil) -> Knock | None:
    """A person's message to us, in a direct chat or by our name, from a chat that is not let in; None for others.

    In privacy mode a bot in a group hears only commands that bear its name, so those count too. What customers write in
    a business chat is said to its owner. Who hides behind a chat, as anonymous administrators do, is nobody.
    """
    if message.business_connection_id is not None or message.from_user is None:
        return None
    if _via(message) is not None or is_notice(message) or message.pinned_message is not None:
        return None
    if not (_is_direct(message) or me.id in mentions(said.content) or _is_command_to(me, message)):
        return None
    return Knock(
        platform="telegram",
        session=telegram_session(message.chat.id),
        title=veil.over(name_of(message.chat)),
        user=UserId(str(message.from_user.id)),
        name=veil.over(name_of(message.from_user)),
        message=said.message_id,
        thread=said.thread_id,
    )


def _is_command_to(me: Me, message: telegram.Message) -> bool:
    """Whether it begins with ``/command@`` and our name, in any case."""
    words = (message.text or message.caption or "").split(maxsplit=1)
    return bool(me.username and words) and words[0].startswith("/") and words[0].lower().endswith(
        f"@{me.username}".lower()
    )  # fmt: skip


def visit_of_press(query: telegram.CallbackQuery) -> Visit | None:
    """Where a button was pressed, and by whom; None where Telegram does not say where."""
    message = query.message
    if message is None:
        return None
    connection = message.business_connection_id if isinstance(message, telegram.Message) else None
    return Visit(
        channel=_channel_id(message.chat),
        user=UserId(str(query.from_user.id)),
        direct=message.chat.type == telegram.Chat.PRIVATE,
        business=connection is not None,
    )


def visit_of_deletion(event: telegram.BusinessMessagesDeleted) -> Visit:
    """Where messages were deleted; Telegram does not say by whom."""
    return Visit(channel=_channel_id(event.chat), direct=True, business=True)


def session_of_deletion(event: telegram.BusinessMessagesDeleted) -> SessionId:
    """The session of a business chat, which is never that person's direct chat with the bot."""
    return telegram_session(event.chat.id, event.business_connection_id)


def is_own(message: telegram.Message, *, me: Me) -> bool:
    """Whether we said this ourselves, in our own name or through a business connection."""
    senders = (message.from_user, message.sender_business_bot)
    return any(sender is not None and str(sender.id) == me.id for sender in senders)


# --- content ------------------------------------------------------------------------------------------------------


def _content(message: telegram.Message, files: Sequence[Shown], me: Me, veil: Veil) -> list[Node]:
    """Everything that can be read in a message; never empty. ``files`` are its own, in their order."""
    read = _reader(me)
    pieces = [
        read(message.text or "", message.entities),
        read(message.caption or "", message.caption_entities),
        *cards_of(message, read),
        _notice(message, me, veil),
    ]
    nodes = [*in_lines(pieces), *[file.element for file in files]] or [_stand_in(message)]
    if message.forward_origin is not None:
        nodes = [Element("message", {"forward": True}, (*_hidden_origin(message.forward_origin), *nodes))]
    return in_lines([_reply_in_words(message, me, veil), nodes])


def _notice(message: telegram.Message, me: Me, veil: Veil) -> list[Node]:
    pinned = message.pinned_message
    if pinned is None and not is_notice(message):
        return []
    who = name_of(_sender(message)) or "somebody"
    if pinned is None:
        return [notice(message, who=who)]
    if isinstance(pinned, telegram.Message):
        return [f"{who} pinned a message:\n", Element("quote", {}, tuple(_quoted(pinned, me, veil)))]
    return [f"{who} pinned message {pinned.message_id}."]


def _stand_in(message: telegram.Message) -> str:
    """What is known of a message of which this version knows nothing else: the names of what it holds."""
    unknown = [name for name in message.api_kwargs if _MEMBER.fullmatch(name)]
    return f"[a message of a kind that this version does not know: {', '.join(unknown[:8]) or 'empty'}]"


def _hidden_origin(origin: telegram.MessageOrigin) -> list[Node]:
    """The name of somebody forwarded who hides their number, and so cannot stand as a user."""
    return [f"{origin.sender_user_name}:\n"] if isinstance(origin, telegram.MessageOriginHiddenUser) else []


def _reply_in_words(message: telegram.Message, me: Me, veil: Veil) -> list[Node]:
    """What was replied to, where it has no number that could stand in ``quote``."""
    if message.reply_to_story is not None:
        return [f"[a reply to a story of {name_of(message.reply_to_story.chat) or 'somebody'}]"]
    reply = message.external_reply
    if message.reply_to_message is not None or reply is None or reply.message_id is not None:
        return []
    return [Element("quote", {}, tuple(_quoted_elsewhere(message, reply, me, veil)))]


def _quoted(message: telegram.Message, me: Me, veil: Veil) -> list[Node]:
    """A message as another one shows it: its files are named, but are not that other one's."""
    return without_sources(_content(message, media_of(message, message, veil), me, veil))


def _quoted_elsewhere(message: telegram.Message, reply: telegram.ExternalReplyInfo, me: Me, veil: Veil) -> list[Node]:
    """What is shown of a message in another chat: the part that was quoted, its cards and its files."""
    read = _reader(me)
    quoted = [] if message.quote is None else read(message.quote.text, message.quote.entities)
    files = (file.element for file in media_of(reply, message, veil))
    shown = without_sources([*in_lines([quoted, *cards_of(reply, read)]), *files])
    return [*_hidden_origin(reply.origin), *(shown or ["[a message in another chat]"])]


def _reader(me: Me) -> Read:
    return lambda text, entities: read_entities(text, entities, me)


# --- who, where, when ---------------------------------------------------------------------------------------------


def _channel_id(chat: telegram.Chat) -> ChannelId:
    return ChannelId(str(chat.id))


def _is_direct(message: telegram.Message) -> bool:
    return message.business_connection_id is not None or message.chat.type == telegram.Chat.PRIVATE


def _thread_id(message: telegram.Message) -> ThreadId | None:
    """The topic; a chain of replies in an ordinary supergroup bears such a number too, but is none."""
    number = message.message_thread_id
    return ThreadId(str(number)) if message.is_topic_message and number is not None else None


def _sender(message: telegram.Message) -> telegram.User | telegram.Chat:
    """The chat in whose name it was said, else who said it; where neither is told, the chat itself speaks."""
    return message.sender_chat or message.from_user or message.chat


def _via(message: telegram.Message) -> Via | None:
    """How somebody who is no person speaks. What a person sent with the help of an inline bot is that person's."""
    chat, sender = message.sender_chat, message.from_user
    if chat is not None:
        anonymous = chat.id == message.chat.id and chat.type != telegram.Chat.CHANNEL
        return "anonymous-admin" if anonymous else "channel"
    if sender is None or sender.id == _TELEGRAM:
        return "channel"
    return "bot" if sender.is_bot or message.sender_business_bot is not None else None


def _quote(message: telegram.Message, me: Me, veil: Veil) -> Quote | None:
    """The message replied to. In a topic the one that made the topic stands for no reply at all."""
    original = message.reply_to_message
    if original is None:
        return _quote_elsewhere(message, me, veil)
    if message.is_topic_message and original.forum_topic_created is not None:
        return None
    quote = Quote(
        id=MessageId(str(original.message_id)),
        channel=place_of(original.chat, veil) if original.chat.id != message.chat.id else None,
    )
    if milliseconds(original.date) <= 0:
        return quote
    content = render(_marked(message, me) or _quoted(original, me, veil))
    return changed(quote, content=veil.over(content), user=author_of(_sender(original), veil))


def _quote_elsewhere(message: telegram.Message, me: Me, veil: Veil) -> Quote | None:
    reply = message.external_reply
    if reply is None or reply.message_id is None:
        return None
    return Quote(
        id=MessageId(str(reply.message_id)),
        content=veil.over(render(_quoted_elsewhere(message, reply, me, veil))),
        user=_speaker(reply.origin, veil),
        channel=None if reply.chat is None else place_of(reply.chat, veil),
    )


def _marked(message: telegram.Message, me: Me) -> list[Node]:
    """The part of the original that somebody marked to reply to."""
    part = message.quote
    return read_entities(part.text, part.entities, me) if part is not None and part.is_manual else []


def _speaker(origin: telegram.MessageOrigin, veil: Veil) -> Author | None:
    match origin:
        case telegram.MessageOriginUser():
            return author_of(origin.sender_user, veil)
        case telegram.MessageOriginChat():
            return author_of(origin.sender_chat, veil)
        case telegram.MessageOriginChannel():
            return author_of(origin.chat, veil)
        case _:
            return None


def _forward(origin: telegram.MessageOrigin | None, veil: Veil) -> Forward | None:
    """From whom, or from which chat, and when it was written. Who hides their number is named in the content."""
    if origin is None:
        return None
    at = milliseconds(origin.date)
    match origin:
        case telegram.MessageOriginUser():
            return Forward(user=author_of(origin.sender_user, veil), timestamp=at)
        case telegram.MessageOriginChat():
            return Forward(channel=place_of(origin.sender_chat, veil), timestamp=at)
        case telegram.MessageOriginChannel():
            return Forward(channel=place_of(origin.chat, veil), timestamp=at)
        case _:
            return Forward(timestamp=at)
