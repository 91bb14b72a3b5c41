"""What the bot may do in the Discord channels that there are sessions of, and the servers that rules name."""

import asyncio
from collections.abc import Container, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from bots.doctor.calls import Once, Refused, Told
from bots.doctor.discord import Discord
from bots.doctor.permissions import Overwrite, Right, Role, missing, rights
from bots.doctor.verdict import Check, Verdict, fail, listed, ok, warn
from core.access import Visit
from core.ids import ChannelId, SessionId, channel_of

MOST: Final = 50
"""Channels that are asked about, those first that were written in last."""
AT_ONCE: Final = 5
"""A few requests at a time are nothing to Discord, hundreds are."""
_NEEDED: Final = (Right.VIEW_CHANNEL, Right.SEND_MESSAGES)
_NEEDED_IN_THREADS: Final = (Right.VIEW_CHANNEL, Right.SEND_MESSAGES_IN_THREADS)
_WANTED: Final = (Right.READ_MESSAGE_HISTORY, Right.ATTACH_FILES, Right.SEND_MESSAGES_IN_THREADS)
_THREADS: Final = frozenset({10, 11, 12})
_UNKNOWN_CHANNEL: Final = 10003


class Channel(Told):
    """A thread has its parent's overwrites; a direct chat has no server."""

    id: str
    type: int
    guild_id: str | None = None
    parent_id: str | None = None
    permission_overwrites: tuple[Overwrite, ...] = ()

    @property
    def is_thread(self) -> bool:
        return self.type in _THREADS


class Partial(Told):
    """A server in a list."""

    id: str


class Server(Partial):
    owner_id: str
    roles: tuple[Role, ...]


class Member(Told):
    roles: tuple[str, ...]
    communication_disabled_until: datetime | None = None

    @property
    def is_silent(self) -> bool:
        """Whether a moderator gave it a timeout that is not over."""
        until = self.communication_disabled_until
        return until is not None and until > datetime.now(UTC)


class Standing(NamedTuple):
    """A server, and what we are in it."""

    server: Server
    member: Member


class Lack(NamedTuple):
    """Which rights fail in a session's channel: those that nothing works without, and others."""

    session: SessionId
    needed: list[str]
    wanted: list[str]


class Channels:
    """``paired`` are sessions that are let in whatever the rules say, ``named`` those that a rule names."""

    def __init__(
        self,
        discord: Discord,
        sessions: Sequence[SessionId],
        *,
        servers: Sequence[str],
        named: Sequence[SessionId],
        paired: Container[str],
    ) -> None:
        self._discord = discord
        left = [it for it in sessions if it in paired or not discord.rules.excludes(Visit(channel_of(it)))]
        self._sessions = list(dict.fromkeys([*named, *left]))
        self._named = named
        self._servers = servers
        self._paired = paired
        self._standings: dict[str, Once[Standing]] = {}
        self._turnstile = asyncio.Semaphore(AT_ONCE)

    def checks(self) -> list[Check]:
        return [Check("discord.servers", self.look_at_servers), Check("discord.channels", self.look_at_channels)]

    async def look_at_servers(self) -> Verdict:
        """Whether the bot is in the servers that DISCORD_ALLOW names, and not made to be silent."""
        await self._discord.account()
        if not self._servers:
            if await self._discord.caller.get("/users/@me/guilds", list[Partial], limit=1):
                return ok("the bot is in a server; DISCORD_ALLOW names none")
            return warn("the bot is in no server", "add it to yours (OAuth2 → URL Generator in the developer portal)")
        asked = self._servers[:MOST]
        members = dict(zip(asked, await asyncio.gather(*map(self._member, asked)), strict=True))
        outside = [number for number, member in members.items() if member is None]
        silent = [number for number, member in members.items() if member is not None and member.is_silent]
        if outside:
            cure = "add it there (OAuth2 → URL Generator), or correct the guild: rules of DISCORD_ALLOW"
            return fail(f"the bot is not in the server {listed(outside)}", cure)
        if silent:
            return fail(f"the bot has a timeout in the server {listed(silent)}", "have a moderator end it")
        return ok(f"the bot is in every server that DISCORD_ALLOW names ({len(self._servers)})")

    async def look_at_channels(self) -> Verdict:
        """Whether the bot may see, write, read back and attach where it was spoken to. What is gone is left out."""
        await self._discord.account()
        asked = self._sessions[:MOST]
        lacks = [lack for lack in await asyncio.gather(*map(self._lack, asked)) if lack is not None]
        cure = "give the bot's role these rights there; or leave the channel out, with !<channel id> in DISCORD_ALLOW"
        closed = [f"{lack.session} ({', '.join(lack.needed)})" for lack in lacks if lack.needed]
        if closed:
            return fail(f"the bot lacks rights that it needs in {listed(closed)}", cure)
        poor = [f"{lack.session} ({', '.join(lack.wanted)})" for lack in lacks if lack.wanted]
        if poor:
            return warn(f"the bot lacks something in {listed(poor)}", cure)
        if not lacks:
            return ok("there are no channels to look at yet")
        newest = f"the newest {len(asked)} of {len(self._sessions)} channels"
        where = newest if len(asked) < len(self._sessions) else f"every channel ({len(lacks)})"
        return ok(f"the bot may see, write, read back and attach in {where}")

    async def _member(self, server: str) -> Member | None:
        """What we are there; None where we are not."""
        async with self._turnstile:
            try:
                return (await self._standing(server)).member
            except Refused:
                return None

    async def _lack(self, session: SessionId) -> Lack | None:
        """None where the channel is gone, or nobody is let in there any more."""
        async with self._turnstile:
            ask = self._discord.caller.get
            try:
                channel = await ask(f"/channels/{channel_of(session)}", Channel)
                if channel.guild_id is None:
                    return Lack(session, [], [])
                if not self._is_let_in(session, channel, channel.guild_id):
                    return None
                place = await ask(f"/channels/{channel.parent_id}", Channel) if channel.is_thread else channel
                standing = await self._standing(channel.guild_id)
            except Refused as refused:
                if refused.code != _UNKNOWN_CHANNEL:
                    return Lack(session, ["View Channel"], [])
                return Lack(session, [], ["there is no such channel"]) if session in self._named else None
        return await self._compare(session, channel, place, standing)

    def _is_let_in(self, session: SessionId, channel: Channel, server: str) -> bool:
        parent = ChannelId(channel.parent_id) if channel.is_thread and channel.parent_id else None
        place = Visit(ChannelId(channel.id), parent, server)
        return session in self._paired or self._discord.rules.may_admit(place)

    async def _compare(self, session: SessionId, channel: Channel, place: Channel, standing: Standing) -> Lack:
        me = (await self._discord.account()).id
        server, member = standing
        if server.owner_id == me:
            return Lack(session, [], [])
        granted = rights(server.id, server.roles, member.roles, me, place.permission_overwrites)
        needed = _NEEDED_IN_THREADS if channel.is_thread else _NEEDED
        return Lack(session, missing(granted, needed), missing(granted, [it for it in _WANTED if it not in needed]))

    async def _standing(self, server: str) -> Standing:
        """Asked once for all channels of a server."""
        return await self._standings.setdefault(server, Once(lambda: self._ask_standing(server)))()

    async def _ask_standing(self, server: str) -> Standing:
        me = (await self._discord.account()).id
        ask = self._discord.caller.get
        found = await ask(f"/guilds/{server}", Server)
        return Standing(found, await ask(f"/guilds/{server}/members/{me}", Member))
