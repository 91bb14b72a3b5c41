"""Discord: the token, the application's switches, the gateway. Nothing is identified, so no session is disturbed."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import aiohttp
import httpx

from bots.doctor.calls import PATIENCE, Caller, Once, Refused, Skew, Told, reason_of
from bots.doctor.verdict import Check, NotLookedAt, Unanswered, Verdict, fail, listed, ok, warn
from core.access import AllowRules

TOKEN: Final = "discord.token"  # noqa: S105 - a check's name
HELLO: Final = 10
"""What the gateway says first."""
_CONTENT: Final = 1 << 18 | 1 << 19
"""Application flags of the Message Content intent: in full, and of a bot in fewer than 100 servers."""
_ASKED: Final = {"v": "10", "encoding": "json"}
_FAREWELL: Final = aiohttp.ClientWSTimeout(ws_close=1.0)  # pyright: ignore[reportCallIssue] - a dataclass, made by a decorator
_FEW_STARTS: Final = 20
_PORTAL: Final = "https://discord.com/developers/applications"
_CURE: Final = "check the network and DISCORD_API_URL"


class Me(Told):
    id: str


class Application(Told):
    flags: int = 0
    bot_public: bool = False
    bot_require_code_grant: bool = False
    interactions_endpoint_url: str | None = None


class Starts(Told):
    remaining: int
    reset_after: int


class Gateway(Told):
    session_start_limit: Starts


class Discord:
    """One bot's account, asked about over ``client``, which sends its token."""

    def __init__(
        self, client: httpx.AsyncClient, api_url: str, gateway_url: str, *, rules: AllowRules, admins: Sequence[str]
    ) -> None:
        self.caller = Caller(client, api_url, named="Discord", cure=_CURE)
        self.me = Once(lambda: self.caller.get("/users/@me", Me))
        self._application = Once(lambda: self.caller.get("/applications/@me", Application))
        self._gateway_url = gateway_url
        self.rules = rules
        self._admins = admins

    def checks(self) -> list[Check]:
        return [
            Check(TOKEN, self.look_at_token),
            Check("discord.gateway", self.look_at_gateway),
            Check("discord.logins", self.look_at_logins),
            Check("discord.intents", self.look_at_intents),
            Check("discord.application", self.look_at_application),
            Check("discord.admins", self.look_at_admins),
        ]

    async def look_at_token(self) -> Verdict:
        """Whether Discord knows it."""
        try:
            me = await self.me()
        except Unanswered as error:
            return fail(str(error), error.cure)
        except Refused as refused:
            if refused.status == 401 and refused.reason:
                cure = f"set DISCORD_TOKEN to the one under your application → Bot → Reset Token in {_PORTAL}"
                return fail("Discord does not know this token (401)", cure)
            told = f"what answers at DISCORD_API_URL is no Discord API ({refused.status})"
            return fail(told, "correct the address, or leave it out")
        return ok(f"Discord knows the token: bot {me.id}")

    async def account(self) -> Me:
        """Who we are. Raises `NotLookedAt` where the check of the token tells why that is not known."""
        try:
            return await self.me()
        except (Refused, Unanswered):
            raise NotLookedAt(TOKEN) from None

    async def skew(self) -> Skew | None:
        """How far Discord's clock is from ours, where it answered at all."""
        with suppress(Refused, Unanswered):
            await self.me()
        return self.caller.skew

    async def look_at_gateway(self) -> Verdict:
        """Whether it says hello. Nothing is said to it, so no login is used up."""
        cure = "check the network and DISCORD_GATEWAY_URL"
        try:
            async with (
                asyncio.timeout(PATIENCE),
                aiohttp.ClientSession() as client,  # as the library does it: without the environment's proxies
                client.ws_connect(self._gateway_url, params=_ASKED, timeout=_FAREWELL) as socket,
            ):
                hello: object = json.loads(await socket.receive_str())
        except TimeoutError:
            return fail("Discord's gateway does not say hello", cure)
        except (aiohttp.ClientError, OSError, TypeError, ValueError) as error:
            return fail(f"Discord's gateway cannot be reached ({reason_of(error)})", cure)
        if not isinstance(hello, dict) or hello.get("op") != HELLO:  # pyright: ignore[reportUnknownMemberType] - JSON from outside
            return fail("what answers at DISCORD_GATEWAY_URL is no Discord gateway", cure)
        return ok("Discord's gateway says hello")

    async def look_at_logins(self) -> Verdict:
        """How many more there are today: Discord resets the token of a bot that uses them all up."""
        await self.account()
        found = (await self.caller.get("/gateway/bot", Gateway)).session_start_limit
        hours = f"{found.reset_after / 3_600_000:.0f} h"
        cure = f"see what starts the bot over and over; there are more in {hours}"
        if found.remaining <= 0:
            return fail("Discord allows no more logins", cure)
        if found.remaining < _FEW_STARTS:
            return warn(f"Discord allows only {found.remaining} more logins", cure)
        return ok(f"{found.remaining} more logins in the next {hours}")

    async def look_at_intents(self) -> Verdict:
        """Whether a login would be refused with 4014: told by the application's flags, without one."""
        await self.account()
        if not (await self._application()).flags & _CONTENT:
            return fail(
                "the Message Content intent is off, so Discord refuses the login (4014)",
                f"switch on Message Content Intent under your application → Bot in {_PORTAL}",
            )
        return ok("the Message Content intent is on, by the application's flags; no other privileged one is used")

    async def look_at_application(self) -> Verdict:
        """Switches of the developer portal that get in the way."""
        await self.account()
        found = await self._application()
        if found.interactions_endpoint_url:
            return fail(
                "Discord sends presses of buttons to an Interactions Endpoint URL and not to us, so nobody can answer",
                f"empty that field under your application → General Information in {_PORTAL}",
            )
        if found.bot_require_code_grant:
            cure = f"switch it off under your application → Bot in {_PORTAL}"
            return warn("Requires OAuth2 Code Grant is on, so the usual link adds the bot to no server", cure)
        if found.bot_public and "*" in self.rules.including:
            return warn(
                "anybody can add the bot to a server of theirs, and DISCORD_ALLOW=* lets everybody in",
                f"switch off Public Bot under your application → Bot in {_PORTAL}, or allow by guild:<id>",
            )
        return ok("the application's switches are as they should be")

    async def look_at_admins(self) -> Verdict:
        """Whether there are such people."""
        if not self._admins:
            return ok("no admins on Discord; the terminal answers for them")
        await self.account()
        unknown: list[str] = []
        for admin in self._admins:
            try:
                await self.caller.get(f"/users/{admin}", Me)
            except Refused:
                unknown.append(admin)
        if unknown:
            cure = "correct ISHIKI_ADMINS; Copy User ID gives the number (developer mode)"
            return warn(f"Discord knows no user {listed(unknown)}", cure)
        return ok(f"Discord knows every admin of ISHIKI_ADMINS ({len(self._admins)})")
