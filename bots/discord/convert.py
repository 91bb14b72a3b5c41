"""From Discord's objects to facts. Pure: no network, no clock but the event's, no dictionary leaves it.

The rules come from the API reference (Message Object, Message Types, Message Snapshot) and from the traps of the
library: ``content`` is empty for polls, stickers, forwards and notices, mentions are also set by reply pings, and where
a payload lacks ``author``, ``mentions``, ``mention_roles`` or ``components``, the attribute does not exist.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

import discord
from msgspec.structs import replace as changed

from bots.discord.cards import Read, components_in_words, embed_in_words, poll_in_words
from bots.discord.markdown import Names, read_markdown
from bots.discord.media import Source, files_of, media_of
from bots.discord.notices import PLAIN_TYPES, notice
from bots.discord.objects import Spoken
from bots.discord.people import Me, author_of, name_of
from bots.discord.veil import Veil
from core.access import Visit
from core.archive.profiles import Title
from core.clock import milliseconds
from core.content import Element, Node, in_lines, render, without_sources
from core.entries import Author, Forward, MessageCreated, MessageDeleted, Place, Quote, Via
from core.ids import ChannelId, MessageId, SessionId, UserId, discord_session
from core.pairing.codes import Knock
from core.resources.shown import Shown
from core.sessions.facts import Retracted, Said

Deletion: TypeAlias = discord.RawMessageDeleteEvent | discord.RawBulkMessageDeleteEvent

Readable: TypeAlias = Spoken | discord.DMChannel | discord.GroupChannel
"""What holds messages."""

HIDDEN: Final = "[a message whose content Discord does not show to this bot]"
_EMPTY: Final = "[an empty message]"
_WRITTEN: Final = frozenset({discord.MessageType.default, discord.MessageType.reply})
_REPLIES: Final = PLAIN_TYPES - {discord.MessageType.default}


def message_created(
    message: discord.Message, *, me: Me, veil: Veil, sent_at: int | None = None, known_only: bool = False
) -> Said:
    """A message as Discord shows it now, for a new one and for an edited one alike.

    ``sent_at`` is the payload's time in ms, which the library does not keep; its id tells it too. ``known_only`` is
    that of `Said`.
    """
    guild = _guild(message)
    files = _files(message, veil)
    return Said(
        message=MessageCreated(
            platform="discord",
            self_id=me.id,
            channel_id=_channel_id(message),
            message_id=MessageId(str(message.id)),
            timestamp=sent_at if sent_at is not None else milliseconds(message.created_at),
            content=veil.over(render(_content(message, files, veil))),
            is_direct=guild is None,
            user=_author(message, veil),
            guild_id=None if guild is None else str(guild),
            quote=_quote(message, veil),
            forward=_forward(message),
            via=_via(message),
        ),
        media=tuple([file.media for shown in files for file in shown]),
        edited_at=None if message.edited_at is None else milliseconds(message.edited_at),
        known_only=known_only,
    )


def messages_deleted(event: Deletion, order: Iterable[int], *, me: Me, now: int) -> list[Retracted]:
    """A deletion, in the ``order`` of Discord's list, which tells neither who nor when.

    ``now`` is the time of its receipt, in ms.
    """
    return [
        Retracted(
            MessageDeleted(
                platform="discord",
                self_id=me.id,
                channel_id=ChannelId(str(event.channel_id)),
                message_id=MessageId(str(message)),
                timestamp=now,
            )
        )
        for message in order
    ]


def message_gone(channel: ChannelId, message: MessageId, *, me: Me, now: int) -> Retracted:
    """A message of which Discord says, when asked, that there is none. ``now`` is when it said so, in ms."""
    return Retracted(
        MessageDeleted(
            platform="discord", self_id=me.id, channel_id=channel, message_id=message, timestamp=now, inferred=True
        )
    )


def visit(message: discord.Message) -> Visit:
    """Where a message was written, and by whom."""
    channel = message.channel
    author = getattr(message, "author", None)
    return _visit(
        channel.id,
        channel.parent_id if isinstance(channel, discord.Thread) else None,
        _guild(message),
        None if author is None else author.id,
    )


@lru_cache(maxsize=4096)
def _visit(channel: int, parent: int | None, guild: int | None, user: int | None) -> Visit:
    """Nearly always the same people speak in the same places."""
    return Visit(
        channel=ChannelId(str(channel)),
        parent=None if parent is None else ChannelId(str(parent)),
        guild=None if guild is None else str(guild),
        user=None if user is None else UserId(str(user)),
        direct=guild is None,
    )


def title(message: discord.Message) -> Title:
    """What Discord calls the channel of a message: in a direct chat the person who wrote it."""
    channel, guild = message.channel, message.guild
    if isinstance(channel, Spoken):
        parent = channel.parent if isinstance(channel, discord.Thread) else None
        where = f"#{channel.name}" if parent is None else f"#{parent.name} › {channel.name}"
        server = channel.guild.name
        return Title(
            f"{where} ({server})" if server else where, guild_id=str(channel.guild.id), channel_id=str(channel.id)
        )
    author = getattr(message, "author", None)
    if guild is not None or author is None:
        return Title("")
    return Title(name_of(author), channel_id=str(channel.id), user_id=str(author.id))


def knock(message: discord.Message, *, me: Me, veil: Veil) -> Knock | None:
    """A person's message to us, in a direct chat or by our name, from a chat that is not let in; None for others."""
    is_to_us = _guild(message) is None or int(me.id) in message.raw_mentions
    if not is_to_us or _via(message) is not None or message.type not in _WRITTEN:
        return None
    return Knock(
        platform="discord",
        session=discord_session(message.channel.id),
        title=veil.over(title(message).text),
        user=UserId(str(message.author.id)),
        name=veil.over(name_of(message.author)),
        message=MessageId(str(message.id)),
    )


def visit_of_channel(channel: Readable | discord.ForumChannel) -> Visit:
    """A channel, DM channel or thread as a place; who speaks there is not known."""
    direct = isinstance(channel, discord.DMChannel | discord.GroupChannel)
    return Visit(
        channel=ChannelId(str(channel.id)),
        parent=ChannelId(str(channel.parent_id)) if isinstance(channel, discord.Thread) else None,
        guild=None if direct else str(channel.guild.id),
        direct=direct,
    )


def visit_of_deletion(event: Deletion, *, parent: ChannelId | None) -> Visit:
    """Where messages were deleted; Discord does not say by whom. ``parent`` is the channel of a thread."""
    return Visit(
        channel=ChannelId(str(event.channel_id)),
        parent=parent,
        guild=None if event.guild_id is None else str(event.guild_id),
        direct=event.guild_id is None,
    )


def visit_of_press(interaction: discord.Interaction) -> Visit:
    """Where a button, menu or form was used, and by whom."""
    channel, guild = interaction.channel, interaction.guild_id
    return Visit(
        channel=ChannelId(str(interaction.channel_id)),
        parent=ChannelId(str(channel.parent_id)) if isinstance(channel, discord.Thread) else None,
        guild=None if guild is None else str(guild),
        user=UserId(str(interaction.user.id)),
        direct=guild is None,
    )


def session_of_deletion(event: Deletion) -> SessionId:
    """The session of the channel, DM channel or thread."""
    return discord_session(event.channel_id)


def is_own(message: discord.Message, *, me: Me) -> bool:
    """Whether we said this ourselves."""
    author = getattr(message, "author", None)
    return author is not None and str(author.id) == me.id


def is_hidden(message: discord.Message) -> bool:
    """Whether somebody wrote something that Discord keeps from us, for want of the Message Content intent."""
    return (
        message.type in PLAIN_TYPES
        and _guild(message) is not None
        and not (message.content or message.stickers or message.message_snapshots or message.flags.loading)
        and not (message.attachments or message.embeds or message.poll or message.activity)
        and not getattr(message, "components", ())
    )


# --- content ------------------------------------------------------------------------------------------------------


def _files(message: discord.Message, veil: Veil) -> list[list[Shown]]:
    """The files of a message, and behind them those of what it forwards."""
    return [media_of(source, message, veil) for source in files_of(message)]


def _content(message: discord.Message, files: Sequence[Sequence[Shown]], veil: Veil) -> list[Node]:
    """Everything that can be read in a message; never empty. ``files`` are those of `_files`, in their order."""
    read = _reader(message, veil)
    if message.type in PLAIN_TYPES:
        nodes = _body(message, files[0], read)
    elif message.type is discord.MessageType.thread_starter_message:
        nodes = _thread_start(message, veil)
    else:
        nodes = [*_notice(message, read, veil), *_elements(files[0])]
    for snapshot, shown in zip(message.message_snapshots, files[1:], strict=False):
        forwarded = _body(snapshot, shown, read) or [_EMPTY]
        nodes = [*nodes, Element("message", {"forward": True}, tuple(forwarded))]
    return nodes or [_stand_in(message)]


def _elements(files: Iterable[Shown]) -> list[Node]:
    return [file.element for file in files]


def _stand_in(message: discord.Message) -> str:
    if message.activity is not None:
        return "[an invitation to join an activity]"
    if message.flags.loading:
        return "[an app is thinking about its answer]"
    return HIDDEN if is_hidden(message) else _EMPTY


def _body(source: Source, files: Sequence[Shown], read: Read) -> list[Node]:
    """Text, poll, embeds, and files behind them. Previews of the links in a person's text add nothing."""
    pieces = [read(source.content)]
    if isinstance(source, discord.Message):
        if source.poll is not None:
            pieces.append(poll_in_words(source.poll))
        if source.embeds and _via(source) is not None:
            pieces.extend(embed_in_words(embed, read) for embed in source.embeds if embed.type == "rich")
    parts = getattr(source, "components", ())
    components = components_in_words(parts, read) if parts else []
    if components and source.flags.components_v2:
        pieces.append(components)
    nodes = [*in_lines(pieces), *_elements(files)]
    return nodes or in_lines(embed_in_words(embed, read) for embed in source.embeds) or components


def _notice(message: discord.Message, read: Read, veil: Veil) -> list[Node]:
    said = notice(message, who=_author(message, veil).name or "somebody")
    told = message.embeds if message.type is discord.MessageType.auto_moderation_action else []
    return in_lines([[said], *(embed_in_words(embed, read) for embed in told)])


def _thread_start(message: discord.Message, veil: Veil) -> list[Node]:
    """The first message of a thread that was started from another one, which stands in another channel."""
    original = message.reference.resolved if message.reference is not None else None
    if not isinstance(original, discord.Message):
        return ["The thread was started from a message that cannot be shown."]
    return ["The thread was started from this message:\n", Element("quote", {}, tuple(_quoted(original, veil)))]


def _quoted(message: discord.Message, veil: Veil) -> list[Node]:
    """A message as another one shows it: its files are named, but are not that other one's."""
    return without_sources(_content(message, _files(message, veil), veil))


def _reader(message: discord.Message, veil: Veil) -> Read:
    """Reads Markdown. What its tokens are called is looked up only where a text may hold one."""

    def read(text: str) -> list[Node]:
        shown = veil.over(text)
        return read_markdown(shown, _names(message) if "<" in shown else Names(everyone=message.mention_everyone))

    return read


def _names(message: discord.Message) -> Names:
    """The names that came along, and those of the server's roles and channels."""
    return Names(
        users={str(user.id): user.display_name for user in getattr(message, "mentions", ())},
        roles={str(role.id): role.name for role in getattr(message, "role_mentions", ())},
        channels=dict(_channels(message)) if "<#" in message.content else {},
        everyone=message.mention_everyone,
    )


def _channels(message: discord.Message) -> Iterator[tuple[str, str]]:
    guild = message.guild
    for number in message.raw_channel_mentions:
        if guild is not None and (channel := guild.get_channel_or_thread(number)) is not None:
            yield str(number), channel.name


# --- who, where, when ---------------------------------------------------------------------------------------------


def _channel_id(message: discord.Message) -> ChannelId:
    return ChannelId(str(message.channel.id))


def _guild(message: discord.Message) -> int | None:
    """The server's number, also of one of which the library knows nothing else."""
    channel = message.channel
    if isinstance(channel, discord.PartialMessageable):
        return channel.guild_id
    return None if message.guild is None else message.guild.id


def _author(message: discord.Message, veil: Veil) -> Author:
    """The author as of then; where the payload names none, the channel speaks."""
    author = getattr(message, "author", None)
    if author is None:
        return Author(id=UserId(str(message.webhook_id or message.channel.id)))
    return author_of(author, veil)


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
