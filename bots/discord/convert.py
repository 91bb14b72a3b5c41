"""From Discord's objects to facts. Pure: no network, no clock but the event's, no dictionary leaves it.

The rules come from the API reference (Message Object, Message Types, Message Snapshot) and from the traps of the
library: ``content`` is empty for polls, stickers, forwards and notices, mentions are also set by reply pings, and where
a payload lacks ``author``, ``mentions``, ``mention_roles`` or ``components``, the attribute does not exist.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

import discord
from msgspec.structs import replace as changed

from bots.discord.cards import Read, components_in_words, embed_in_words, in_lines, poll_in_words
from bots.discord.markdown import Names, read_markdown
from bots.discord.media import files_of, media_of
from bots.discord.notices import PLAIN_TYPES, notice
from bots.discord.veil import Veil
from core.access import Visit
from core.content import Element, Node, joined, render
from core.entries import Author, Forward, MessageCreated, MessageDeleted, Place, Quote, Via
from core.ids import ChannelId, MessageId, UserId
from core.sessions.facts import Retracted, Said

HIDDEN: Final = "[a message whose content Discord does not show to this bot]"
_EMPTY: Final = "[an empty message]"
_REPLIES: Final = PLAIN_TYPES - {discord.MessageType.default}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def message_created(message: discord.Message, *, self_id: UserId, veil: Veil, sent_at: int | None = None) -> Said:
    """A message as Discord shows it now, for a new one and for an edited one alike.

    ``sent_at`` is the payload's time in ms, which the library does not keep; its id tells it too.
    """
    return Said(
        message=MessageCreated(
            platform="discord",
            self_id=self_id,
            channel_id=ChannelId(str(message.channel.id)),
            message_id=MessageId(str(message.id)),
            timestamp=sent_at if sent_at is not None else milliseconds(message.created_at),
            content=veil.over(render(_content(message, veil))),
            is_direct=_guild_id(message) is None,
            user=_author(message, veil),
            guild_id=_guild_id(message),
            quote=_quote(message, veil),
            forward=_forward(message),
            via=_via(message),
        ),
        media=tuple(file.media for source in files_of(message) for file in media_of(source, message)),
        edited_at=None if message.edited_at is None else milliseconds(message.edited_at),
    )


def message_deleted(event: discord.RawMessageDeleteEvent, *, self_id: UserId, now: int) -> Retracted:
    """A retraction. Discord tells neither author nor operator nor time: ``now`` is that of its receipt, in ms."""
    return _retracted(event.channel_id, event.message_id, self_id, now)


def messages_deleted(
    event: discord.RawBulkMessageDeleteEvent, order: Iterable[int], *, self_id: UserId, now: int
) -> list[Retracted]:
    """A bulk deletion in the order of Discord's list, which the library makes a set of."""
    return [_retracted(event.channel_id, message, self_id, now) for message in order]


def visit(message: discord.Message) -> Visit:
    """Where a message was written, and by whom."""
    channel = message.channel
    author = getattr(message, "author", None)
    guild = _guild_id(message)
    return Visit(
        channel=ChannelId(str(channel.id)),
        parent=ChannelId(str(channel.parent_id)) if isinstance(channel, discord.Thread) else None,
        guild=guild,
        user=None if author is None else UserId(str(author.id)),
        direct=guild is None,
    )


def is_hidden(message: discord.Message) -> bool:
    """Whether somebody wrote something that Discord keeps from us, for want of the Message Content intent."""
    return (
        message.type in PLAIN_TYPES
        and _guild_id(message) is not None
        and not (message.content or message.stickers or message.message_snapshots or message.flags.loading)
        and not (message.attachments or message.embeds or message.poll or message.activity)
        and not getattr(message, "components", ())
    )


def milliseconds(moment: datetime) -> int:
    """Unix time in ms. Discord's times are in UTC, also where one does not say so."""
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - _EPOCH) // timedelta(milliseconds=1)


# --- content ------------------------------------------------------------------------------------------------------


def _content(message: discord.Message, veil: Veil) -> list[Node]:
    """Everything that can be read in a message; never empty. Its files stand in the order of `media_of`."""
    read = _reader(message, veil)
    who = _author(message, veil).name or "somebody"
    if message.type is discord.MessageType.thread_starter_message:
        nodes = _thread_start(message, veil)
    elif said := notice(message, who=who):
        told = message.embeds if message.type is discord.MessageType.auto_moderation_action else []
        nodes = in_lines([[said], *(embed_in_words(embed, read) for embed in told)])
        nodes += [file.element for file in media_of(message, message)]
    else:
        nodes = _body(message, message, read, is_person=_via(message) is None)
    for snapshot in message.message_snapshots[:1]:
        forwarded = _body(snapshot, message, read, is_person=True) or [_EMPTY]
        nodes = [*nodes, Element("message", {"forward": True}, tuple(forwarded))]
    return nodes or [_stand_in(message)]


def _stand_in(message: discord.Message) -> str:
    if message.activity is not None:
        return "[an invitation to join an activity]"
    if message.flags.loading:
        return "[an app is thinking about its answer]"
    return HIDDEN if is_hidden(message) else _EMPTY


def _body(
    source: discord.Message | discord.MessageSnapshot, message: discord.Message, read: Read, *, is_person: bool
) -> list[Node]:
    """Text, poll, embeds, and files behind them. Previews of the links in a person's text add nothing."""
    pieces = [read(source.content)]
    if isinstance(source, discord.Message) and source.poll is not None:
        pieces.append(poll_in_words(source.poll))
    if not is_person:
        pieces.extend(embed_in_words(embed, read) for embed in source.embeds if embed.type == "rich")
    components = components_in_words(getattr(source, "components", ()), read)
    if source.flags.components_v2:
        pieces.append(components)
    nodes = joined([*in_lines(pieces), *(file.element for file in media_of(source, message))])
    if nodes:
        return nodes
    words = in_lines(embed_in_words(embed, read) for embed in source.embeds)
    return words or components


def _thread_start(message: discord.Message, veil: Veil) -> list[Node]:
    """The first message of a thread that was started from another one, which stands in another channel."""
    original = message.reference.resolved if message.reference is not None else None
    if not isinstance(original, discord.Message):
        return ["The thread was started from a message that cannot be shown."]
    return ["The thread was started from this message:\n", Element("quote", {}, tuple(_quoted(original, veil)))]


def _quoted(message: discord.Message, veil: Veil) -> list[Node]:
    """A message as another one shows it: its files are named, but are not that other one's."""
    return _without_sources(_content(message, veil))


def _without_sources(nodes: Iterable[Node]) -> list[Node]:
    return [
        node
        if isinstance(node, str)
        else Element(
            node.tag,
            {name: value for name, value in node.attributes.items() if name != "src"},
            tuple(_without_sources(node.children)),
        )
        for node in nodes
    ]


def _reader(message: discord.Message, veil: Veil) -> Read:
    """Reads Markdown with the names that came along, and those of the server's roles and channels."""
    guild = message.guild
    named = (
        {}
        if guild is None
        else {channel: guild.get_channel_or_thread(channel) for channel in message.raw_channel_mentions}
    )
    names = Names(
        users={str(user.id): user.display_name for user in getattr(message, "mentions", ())},
        roles={str(role.id): role.name for role in getattr(message, "role_mentions", ())},
        channels={str(number): channel.name for number, channel in named.items() if channel is not None},
        everyone=message.mention_everyone,
    )
    return lambda text: read_markdown(veil.over(text), names)


# --- who, where, when ---------------------------------------------------------------------------------------------


def _author(message: discord.Message, veil: Veil) -> Author:
    """The author as of then; where the payload names none, the channel speaks."""
    author = getattr(message, "author", None)
    if author is None:
        return Author(id=UserId(str(message.webhook_id or message.channel.id)))
    name = veil.over(author.display_name.strip())
    return Author(id=UserId(str(author.id)), name=name or None)


def _via(message: discord.Message) -> Via | None:
    """How somebody who is no person speaks. The answer of an app bears the app's number as that of a webhook."""
    author = getattr(message, "author", None)
    if message.webhook_id is not None and message.webhook_id != message.application_id:
        return "webhook"
    if author is None:
        return "channel"
    return "bot" if author.bot or author.system or message.webhook_id is not None else None


def _quote(message: discord.Message, veil: Veil) -> Quote | None:
    """The message replied to: with its content where Discord sent it along, by its number alone where it is gone."""
    reference = message.reference
    if reference is None or reference.message_id is None or message.type not in _REPLIES:
        return None
    elsewhere = reference.channel_id != message.channel.id
    quote = Quote(
        id=MessageId(str(reference.message_id)),
        channel=Place(id=str(reference.channel_id)) if elsewhere else None,
    )
    original = reference.resolved
    if not isinstance(original, discord.Message):
        return quote
    return changed(quote, content=veil.over(render(_quoted(original, veil))), user=_author(original, veil))


def _forward(message: discord.Message) -> Forward | None:
    """Discord says from which channel something was forwarded, and when it was written, but not by whom."""
    reference, snapshots = message.reference, message.message_snapshots
    if not snapshots:
        return None
    return Forward(
        channel=None if reference is None else Place(id=str(reference.channel_id)),
        timestamp=milliseconds(snapshots[0].created_at),
    )


def _guild_id(message: discord.Message) -> str | None:
    """The server, also one of which the library knows nothing but the number."""
    channel = message.channel
    if isinstance(channel, discord.PartialMessageable):
        return None if channel.guild_id is None else str(channel.guild_id)
    return None if message.guild is None else str(message.guild.id)


def _retracted(channel: int, message: int, self_id: UserId, now: int) -> Retracted:
    return Retracted(
        MessageDeleted(
            platform="discord",
            self_id=self_id,
            channel_id=ChannelId(str(channel)),
            message_id=MessageId(str(message)),
            timestamp=now,
        )
    )
