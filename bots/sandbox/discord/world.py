"""Discord's state and everything that can happen to it.

Each operation changes the state and publishes the dispatches that Discord would send for it, in its order. People
(`people.py`) and the REST API (`rest.py`, `messages.py`) call the same operations, so neither can do what the other
would not see.
"""

import asyncio
import io
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar

import imagesize

from bots.sandbox.discord import mentions, payloads
from bots.sandbox.discord.message_payloads import MessagePayloads
from bots.sandbox.discord.model import (
    EVERY_PERMISSION,
    AllowedMentions,
    Attachment,
    Channel,
    ChannelType,
    Event,
    File,
    Guild,
    Intent,
    JsonObject,
    Message,
    MessageFlag,
    MessageType,
    Permission,
    Reference,
    Role,
    Snowflakes,
    User,
    moment_of,
)

T = TypeVar("T")


class World:
    """One bot's Discord. `publish` is where dispatches go; the gateway sets it.

    `granted` are the privileged intents switched on in the developer portal: a session that asks for another is
    refused, and without Message Content REST answers without user input too. `owner` runs the bot and owns the servers.
    `switches` are other fields of the application that the owner has changed; `logins_left` is what `GET /gateway/bot`
    says, and is not counted.
    """

    def __init__(self, bot_name: str, sign: Callable[[Channel, Attachment], str], *, granted: Intent) -> None:
        self.ids = Snowflakes()
        self.owner = User(self.ids.new(), "operator", "Operator")
        self.bot = User(self.ids.new(), bot_name, bot=True)
        self.granted = granted
        self.switches: JsonObject = {}
        self.logins_left = 999
        self.users: dict[str, User] = {user.id: user for user in (self.owner, self.bot)}
        self.guilds: dict[str, Guild] = {}
        self.channels: dict[str, Channel] = {}
        self.attachments: dict[str, Attachment] = {}
        self.publish: Callable[[Event], None] = lambda _event: None
        self.payloads = MessagePayloads(self.bot, sign, self.find_message)
        self._pulse = asyncio.Event()

    # People and places

    def add_user(self, user: User) -> None:
        """Let an account in; it becomes a member of every guild."""
        self.users[user.id] = user
        for guild in self.guilds.values():
            self.add_member(guild, user)

    def add_member(self, guild: Guild, user: User) -> None:
        if user.id in guild.members:
            return
        guild.members[user.id] = user
        data = payloads.member(guild, user) | {"guild_id": guild.id}
        self._tell("GUILD_MEMBER_ADD", data, Intent.GUILD_MEMBERS)

    def add_guild(self, guild: Guild) -> None:
        """Invite the bot: it and everybody known become members."""
        bot_role = Role(self.ids.new(), self.bot.username, mentionable=False, bot_id=self.bot.id)
        guild.roles[guild.id] = Role(guild.id, "@everyone", EVERY_PERMISSION, mentionable=False)
        guild.roles[bot_role.id] = bot_role
        guild.members.update(self.users)
        guild.member_roles[self.bot.id] = [bot_role.id]
        self.guilds[guild.id] = guild
        self._tell("GUILD_CREATE", payloads.gateway_guild(guild, self.bot, with_members=False), Intent.GUILDS)

    def remove_guild(self, guild: Guild) -> None:
        """Throw the bot out."""
        del self.guilds[guild.id]
        for place in (*guild.channels, *guild.threads):
            del self.channels[place]
        self._tell("GUILD_DELETE", {"id": guild.id}, Intent.GUILDS)

    def add_role(self, guild: Guild, role: Role) -> None:
        guild.roles[role.id] = role
        position = len(guild.roles) - 1
        self._tell("GUILD_ROLE_CREATE", {"guild_id": guild.id, "role": payloads.role(role, position)}, Intent.GUILDS)

    def add_channel(self, channel: Channel) -> None:
        """Add a channel of a guild, or a direct message (of which bots are not told before the first message)."""
        self.channels[channel.id] = channel
        if channel.guild is not None:
            channel.guild.channels[channel.id] = channel
            self._tell("CHANNEL_CREATE", payloads.channel(channel, self.bot), Intent.GUILDS)

    def remove_channel(self, channel: Channel) -> None:
        """Delete a channel or thread with all that is in it."""
        guild = channel.guild
        assert guild is not None
        shape = payloads.channel(channel, self.bot)
        gone = [channel, *(thread for thread in guild.threads.values() if thread.parent is channel)]
        for place in gone:
            del self.channels[place.id]
            guild.channels.pop(place.id, None)
            guild.threads.pop(place.id, None)
        if channel.is_thread:
            data = {key: shape[key] for key in ("id", "guild_id", "parent_id", "type")}
            self._tell("THREAD_DELETE", data, Intent.GUILDS)
        else:
            self._tell("CHANNEL_DELETE", shape, Intent.GUILDS)

    def direct(self, user: User) -> Channel:
        """The direct messages between the bot and somebody; opened when there are none yet."""
        for channel in self.channels.values():
            if channel.type is ChannelType.DM and user in channel.recipients:
                return channel
        channel = Channel(self.ids.new(), ChannelType.DM, recipients=[user])
        self.add_channel(channel)
        return channel

    def deny(self, channel: Channel, permission: Permission) -> None:
        """Set what the bot may not do in a channel; `Permission.NONE` gives everything back."""
        channel.denied = permission
        if channel.guild is not None:
            self._tell("CHANNEL_UPDATE", payloads.channel(channel, self.bot), Intent.GUILDS)

    def start_thread(
        self, parent: Channel, name: str, starter: User, *, message: Message | None = None, private: bool = False
    ) -> Channel:
        """Open a thread, on a message (whose id it then bears) or on its own. The bot is a member of private ones."""
        assert parent.guild is not None
        thread = Channel(
            id=self.ids.new() if message is None else message.id,
            type=ChannelType.PRIVATE_THREAD if private else ChannelType.PUBLIC_THREAD,
            name=name,
            guild=parent.guild,
            parent=parent,
            owner=starter,
            thread_members=[starter, self.bot] if private else [starter],
        )
        self.channels[thread.id] = parent.guild.threads[thread.id] = thread
        self._tell("THREAD_CREATE", payloads.channel(thread, self.bot) | {"newly_created": True}, Intent.GUILDS)
        if message is not None:
            message.thread = thread
            message.flags |= MessageFlag.HAS_THREAD
            self.refresh(message)
            origin = Reference(parent.id, message.id, parent.guild.id)
            self.post(Message(thread, starter, type=MessageType.THREAD_STARTER, reference=origin))
        elif not private:
            origin = Reference(thread.id, guild_id=parent.guild.id)
            self.post(Message(parent, starter, name, type=MessageType.THREAD_CREATED, reference=origin))
        return thread

    def archive(self, thread: Channel, *, archived: bool) -> None:
        thread.archived = archived
        thread.archived_at = datetime.now(UTC)
        self._tell("THREAD_UPDATE", payloads.channel(thread, self.bot), Intent.GUILDS)

    # Messages

    def find_message(self, channel_id: str, message_id: str) -> Message | None:
        channel = self.channels.get(channel_id)
        return None if channel is None else channel.messages.get(message_id)

    def attach(self, files: Iterable[File]) -> list[Attachment]:
        """Take in files: an id each, and the measures of pictures."""
        taken = [Attachment(self.ids.new(), file, *_measures(file)) for file in files]
        self.attachments.update({attachment.id: attachment for attachment in taken})
        return taken

    def post(self, message: Message, allowed: AllowedMentions | None = None) -> Message:
        """Put a message into its channel. Gives it id, time, and the mentions that `allowed` lets through.

        An ephemeral one stands in no history and no event tells of it.
        """
        channel = message.channel
        if channel.is_thread:
            message.position = len(channel.messages)
            if channel.archived:
                self.archive(channel, archived=False)
        message.id = self.ids.new()
        message.timestamp = moment_of(message.id)
        self.resolve_mentions(message, allowed or AllowedMentions())
        if not message.flags & MessageFlag.EPHEMERAL:
            channel.messages[message.id] = message
            channel.last_message_id = message.id
        self._tell_message("MESSAGE_CREATE", message)
        return message

    def edit(self, message: Message, allowed: AllowedMentions | None = None) -> None:
        """A message's author has changed it in place: mark it edited, and tell."""
        message.edited_timestamp = datetime.now(UTC)
        self.resolve_mentions(message, allowed or AllowedMentions(replied_user=False), keep=True)
        self.refresh(message)

    def refresh(self, message: Message) -> None:
        """Something about a message has changed that is no edit (preview, pin, thread, flags): tell."""
        self._tell_message("MESSAGE_UPDATE", message)

    def delete(self, messages: list[Message]) -> None:
        """Delete one message, or several of one channel at once."""
        channel = messages[0].channel
        for message in messages:
            channel.messages.pop(message.id, None)
            message.deleted = True
        if messages[0].flags & MessageFlag.EPHEMERAL:
            self.changed()
            return
        place: JsonObject = {"channel_id": channel.id}
        if channel.guild is not None:
            place["guild_id"] = channel.guild.id
        if len(messages) == 1:
            self.tell_in(channel, "MESSAGE_DELETE", {"id": messages[0].id} | place)
        else:
            self.tell_in(channel, "MESSAGE_DELETE_BULK", {"ids": [message.id for message in messages]} | place)

    def pin(self, message: Message, by: User) -> Message:
        """Pin a message; returns the system message that says so."""
        channel = message.channel
        message.pinned = True
        channel.last_pin = datetime.now(UTC)
        guild_id = None if channel.guild is None else channel.guild.id
        self.refresh(message)
        data: JsonObject = {"channel_id": channel.id, "last_pin_timestamp": payloads.iso(channel.last_pin)}
        self._tell("CHANNEL_PINS_UPDATE", data | ({} if guild_id is None else {"guild_id": guild_id}), Intent.GUILDS)
        pinned = Reference(channel.id, message.id, guild_id)
        return self.post(Message(channel, by, type=MessageType.PINNED, reference=pinned))

    def react(self, message: Message, user: User, emoji: str, *, add: bool = True) -> None:
        """Add or take back a reaction; doing so twice changes nothing."""
        users = message.reactions.setdefault(emoji, [])
        if (user in users) is add:
            return
        if add:
            users.append(user)
        else:
            users.remove(user)
        if not users:
            del message.reactions[emoji]
        channel = message.channel
        data: JsonObject = {
            "user_id": user.id,
            "channel_id": channel.id,
            "message_id": message.id,
            "emoji": payloads.partial_emoji(emoji),
            "burst": False,
            "type": 0,
        }
        intents = Intent.DIRECT_MESSAGE_REACTIONS
        if channel.guild is not None:
            data["guild_id"] = channel.guild.id
            intents = Intent.GUILD_MESSAGE_REACTIONS
            if add and user.id in channel.guild.members:
                data["member"] = payloads.member(channel.guild, user)
        if add:
            data["message_author_id"] = message.author.id
        if channel.permits(Permission.VIEW_CHANNEL):
            self._tell(f"MESSAGE_REACTION_{'ADD' if add else 'REMOVE'}", data, intents)

    def resolve_mentions(self, message: Message, allowed: AllowedMentions, *, keep: bool = False) -> None:
        """Set whom a message mentions; `keep` leaves the author replied to mentioned if it was so before."""
        replied = self._replied(message)
        if replied is not None and not allowed.replied_user and not (keep and replied.author in message.mentions):
            replied = None
        mentions.resolve(message, allowed, self.users, None if replied is None else replied.author)

    # Telling

    def tell_in(self, channel: Channel, name: str, data: JsonObject, redacted: JsonObject | None = None) -> None:
        """Publish something that happened to messages of a channel, if the bot can see it."""
        if channel.permits(Permission.VIEW_CHANNEL):
            intents = Intent.DIRECT_MESSAGES if channel.guild is None else Intent.GUILD_MESSAGES
            self._tell(name, data, intents, redacted)
        else:
            self.changed()

    def changed(self) -> None:
        """Wake everybody who waits for the world to be in some state."""
        self._pulse.set()
        self._pulse = asyncio.Event()

    async def until(self, look: Callable[[], T | None], within: float) -> T:
        """The first truthy value of `look`, which is asked again whenever the world has changed.

        Raises `TimeoutError` after `within` seconds.
        """
        async with asyncio.timeout(within):
            while True:
                pulse = self._pulse
                if found := look():
                    return found
                await pulse.wait()

    def _tell_message(self, name: str, message: Message) -> None:
        if message.flags & MessageFlag.EPHEMERAL:
            self.changed()
            return
        data = self.payloads.gateway(message)
        self.tell_in(message.channel, name, data, self.payloads.redacted(message, data))

    def _tell(self, name: str, data: JsonObject, intents: Intent, redacted: JsonObject | None = None) -> None:
        self.publish(Event(name, data, intents, redacted))
        self.changed()

    def _replied(self, message: Message) -> Message | None:
        if message.type != MessageType.REPLY or message.reference is None:
            return None
        return self.find_message(message.reference.channel_id, message.reference.message_id or "")


def embody_forward(message: Message, original: Message) -> None:
    """Put what `original` holds now into a forward of it; later edits do not reach it."""
    message.snapshot = original.snapshot or replace(original)
    message.flags |= MessageFlag.HAS_SNAPSHOT


def _measures(file: File) -> tuple[int | None, int | None]:
    if file.content_type is None or not file.content_type.startswith("image/"):
        return None, None
    width, height = imagesize.get(io.BytesIO(file.data))  # pyright: ignore[reportUnknownMemberType]  # PathLike there
    return (width, height) if width > 0 and height > 0 else (None, None)
