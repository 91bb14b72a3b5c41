"""Discord's objects as the library makes them, of ordinary messages in a fraction of its time.

Of every author the library makes a user twice and a member, and of each message it asks for the two dozen things that
it might hold. A message in a known channel of a server, with text, files and mentions or as a reply to such a one, is
filled in here, attribute for attribute. Whatever else comes is left to the library, which also says what is wrong with
it.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import discord
from discord.enums import MessageType
from discord.presences import ClientStatus
from discord.state import ConnectionState
from discord.utils import SnowflakeList, parse_time

Spoken: TypeAlias = discord.TextChannel | discord.VoiceChannel | discord.StageChannel | discord.Thread
"""What holds messages on a server."""
State: TypeAlias = ConnectionState[discord.Client]
Json: TypeAlias = Mapping[str, Any]

MADE_FOR: Final = "2.7.1"
"""The version of the library whose attributes these are; to another one all is left."""

_TYPES: Final = {type_.value: type_ for type_ in (MessageType.default, MessageType.reply)}
_ORDINARY: Final = frozenset(
    {
        *("id", "channel_id", "guild_id", "channel_type", "type", "flags", "position", "nonce", "tts", "pinned"),
        *("author", "member", "content", "timestamp", "edited_timestamp", "attachments", "embeds", "components"),
        *("mention_everyone", "mentions", "mention_roles", "message_reference", "referenced_message"),
    }
)


def ordinary(payload: Json, server: Callable[[int], discord.Guild | None], state: State) -> discord.Message | None:
    """The message that a payload tells of; None for one that the library has to read. Changes nothing in it."""
    if discord.__version__ != MADE_FOR:
        return None
    try:
        guild = server(int(payload["guild_id"]))
        channel = guild and guild.get_channel_or_thread(int(payload["channel_id"]))
        if not isinstance(channel, Spoken):
            return None
        return _Message(state=state, channel=channel, data=payload)
    except Exception:  # noqa: BLE001 - not judged here: the library reads it again and says what is wrong
        return None


class _Extraordinary(Exception):
    """Something that only the library reads."""


class _Message(discord.Message):
    __slots__ = ()

    def __init__(self, *, state: State, channel: Spoken, data: Any) -> None:  # noqa: ANN401 - JSON from outside
        """Raises whatever it trips over, and `_Extraordinary`."""
        if not (
            data.keys() <= _ORDINARY and data["embeds"] == data["mention_roles"] == data.get("components", []) == []
        ):
            raise _Extraordinary
        guild = channel.guild
        self._state = state
        self.channel, self.guild = channel, guild
        self.id = int(data["id"])
        self.type = _TYPES[data["type"]]
        self.content = data["content"]
        self.author = _author(data, guild, state)
        self.mentions = [_mentioned(user, guild, state) for user in data["mentions"]]
        self.mention_everyone = data.get("mention_everyone", False)
        self.attachments = [discord.Attachment(data=_whole_file(file), state=state) for file in data["attachments"]]
        self.reference = _reference(data, channel, state)
        self.flags = discord.MessageFlags._from_value(data.get("flags", 0))  # pyright: ignore[reportPrivateUsage] - as the library does
        self._edited_timestamp = parse_time(data.get("edited_timestamp"))
        self.pinned = data.get("pinned", False)
        self.tts = data.get("tts", False)
        self.nonce = data.get("nonce")
        self.position = data.get("position")
        if "components" in data:
            self.components = []
        self.embeds, self.role_mentions = [], []
        self.reactions, self.stickers, self.message_snapshots = [], [], []
        self.webhook_id = self.application_id = self.application = self.activity = self.poll = self.call = None
        self.interaction_metadata = self.role_subscription = self.purchase_notification = None
        self._thread = self._interaction = self._pinned_at = None


class _Member(discord.Member):
    __slots__ = ()

    def __init__(self, *, data: Any, user: discord.User, guild: discord.Guild, state: State) -> None:  # noqa: ANN401 - JSON from outside
        self._state, self._user, self.guild = state, user, guild
        self.nick = data.get("nick")
        self.joined_at = parse_time(data.get("joined_at"))
        self.premium_since = parse_time(data.get("premium_since"))
        self.timed_out_until = parse_time(data.get("communication_disabled_until"))
        self.pending = data.get("pending", False)
        self.client_status, self.activities = ClientStatus(), ()
        self._roles = SnowflakeList(map(int, data["roles"]))
        self._permissions = int(data["permissions"]) if "permissions" in data else None
        self._flags = data["flags"]
        self._avatar, self._banner = data.get("avatar"), data.get("banner")
        self._avatar_decoration_data = data.get("avatar_decoration_data")


def _author(data: Any, guild: discord.Guild, state: State) -> discord.User | discord.Member:  # noqa: ANN401 - JSON from outside
    user = _user(data["author"], state)
    # Those it keeps it brings up to date; of one that speaks for Discord itself it forgets that, once a member.
    if user.system or guild.get_member(user.id) is not None:
        raise _Extraordinary
    return _Member(data=data["member"], user=user, guild=guild, state=state) if "member" in data else user


def _mentioned(data: Any, guild: discord.Guild, state: State) -> discord.User | discord.Member:  # noqa: ANN401 - JSON from outside
    user = _user(data, state)
    known = guild.get_member(user.id)
    if known is not None:
        return known
    return _Member(data=data["member"], user=user, guild=guild, state=state) if "member" in data else user


def _user(data: Any, state: State) -> discord.User:  # noqa: ANN401 - JSON from outside
    if not data["id"].isdecimal():
        raise _Extraordinary
    return state.store_user(data)


def _whole_file(file: Any) -> Any:  # noqa: ANN401 - JSON from outside
    """A file that lacks nothing which the library needs."""
    if not ({"filename", "size", "proxy_url"} <= file.keys()):
        raise _Extraordinary
    return file


def _reference(data: Any, channel: Spoken, state: State) -> discord.MessageReference | None:  # noqa: ANN401 - JSON from outside
    if "message_reference" not in data:
        return None
    reference = discord.MessageReference.with_state(state, data["message_reference"])
    if "referenced_message" in data:
        original = data["referenced_message"]
        if reference.channel_id != channel.id:
            raise _Extraordinary
        reference.resolved = (
            discord.DeletedReferencedMessage(reference)
            if original is None
            else _Message(state=state, channel=channel, data=original)
        )
    return reference
