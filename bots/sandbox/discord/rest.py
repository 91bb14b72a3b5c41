"""REST below `/api/v10`: authorization, limits, faults, and the routes for users, guilds and channels."""

import asyncio
from collections.abc import Callable
from datetime import datetime

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from bots.sandbox.discord import bodies, errors, payloads
from bots.sandbox.discord.bodies import BODY
from bots.sandbox.discord.faults import ApiCall, Buckets, Fault, Faults
from bots.sandbox.discord.model import Channel, ChannelType, Guild, JsonObject, Permission
from bots.sandbox.discord.world import World

OPEN_ROUTES = ("/interactions/", "/webhooks/", "/gateway")
"""Paths that need no token of the bot, or carry their own."""

UNLIMITED_ROUTES = ("/interactions/",)
"""Paths outside of rate limits: their answers carry no bucket."""


class Guard:
    """Stands before every route: what Discord does with a request before it looks at what is asked."""

    def __init__(self, token: str, prefix: str, buckets: Buckets, on_call: Callable[[ApiCall], None]) -> None:
        self.faults = Faults()
        self._token = token
        self._prefix = prefix
        self._buckets = buckets
        self._on_call = on_call

    def middleware(self) -> Middleware:
        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self._pass(request, handler)

        return guard

    async def _pass(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        path = request.path.removeprefix(self._prefix)
        try:
            body = request[BODY] = await bodies.read(request)
        except errors.Refusal as refusal:
            return bodies.answer(refusal.body, refusal.status)
        names = tuple(file.name for file in body.files.values())
        self._on_call(ApiCall(request.method, path, body.json, names))
        fault = self.faults.take(f"{request.method} {path}")
        if fault is None:
            return await self._answer(request, handler, path)
        await asyncio.sleep(fault.delay)
        if fault.retry_after is not None:
            return _limited(fault.retry_after, via=fault.via, is_global=fault.is_global)
        if fault.body is not None:
            return web.Response(body=fault.body, content_type="application/json")
        if fault.status is None or fault.acted:
            answer = await self._answer(request, handler, path)
            if fault.status is None:
                return answer
        return self._broken(request, fault)

    async def _answer(self, request: web.Request, handler: Handler, path: str) -> web.StreamResponse:
        if not path.startswith(OPEN_ROUTES) and request.headers.get("Authorization") != f"Bot {self._token}":
            refusal = errors.unauthorized()
            return bodies.answer(refusal.body, refusal.status)
        if path.startswith(UNLIMITED_ROUTES):
            return await self._carry_out(request, handler)
        resource = request.match_info.route.resource
        major = request.match_info.get("channel") or request.match_info.get("guild") or ""
        route = f"{request.method} {path if resource is None else resource.canonical}"
        passes, after, headers = self._buckets.take(route, major)
        if not passes:
            return _limited(after, headers=headers)
        answer = await self._carry_out(request, handler)
        answer.headers.update(headers)
        return answer

    async def _carry_out(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except errors.Refusal as refusal:
            return bodies.answer(refusal.body, refusal.status)
        except web.HTTPMethodNotAllowed:
            return bodies.answer({"message": "405: Method Not Allowed", "code": 0}, 405)
        except web.HTTPNotFound:
            refusal = errors.not_found()
            return bodies.answer(refusal.body, refusal.status)

    def _broken(self, request: web.Request, fault: Fault) -> web.StreamResponse:
        if fault.status:
            text = {500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable"}.get(fault.status, "")
            return bodies.answer({"message": f"{fault.status}: {text}", "code": 0}, fault.status)
        assert request.transport is not None
        request.transport.abort()
        return web.Response(status=500)


def _limited(
    after: float, *, via: bool = True, is_global: bool = False, headers: dict[str, str] | None = None
) -> web.Response:
    """429 as the API gives it; without `via` as the edge does, for a ban."""
    if not via:
        return web.Response(status=429, text="error code: 1015", headers={"Retry-After": str(int(after) + 1)})
    told = {"Via": "1.1 google", "Retry-After": str(int(after) + 1), "X-RateLimit-Scope": "user"} | (headers or {})
    if is_global:
        told |= {"X-RateLimit-Global": "true", "X-RateLimit-Scope": "global"}
    body = {"message": "You are being rate limited.", "retry_after": round(after, 3), "global": is_global}
    return bodies.answer(body, 429, told)


class RestRoutes:
    """Users, guilds and channels."""

    def __init__(self, world: World, gateway_url: Callable[[], str]) -> None:
        self._world = world
        self._gateway_url = gateway_url

    def routes(self) -> list[web.RouteDef]:
        guild, channel = r"/guilds/{guild:\d+}", r"/channels/{channel:\d+}"
        return [
            web.get("/users/@me", self.me),
            web.get(r"/users/{user:\d+}", self.user),
            web.get("/users/@me/guilds", self.my_guilds),
            web.post("/users/@me/channels", self.open_direct),
            web.get("/oauth2/applications/@me", self.application),
            web.get("/applications/@me", self.application),
            web.get("/gateway", self.gateway),
            web.get("/gateway/bot", self.gateway_bot),
            web.get(guild, self.guild),
            web.get(guild + "/channels", self.guild_channels),
            web.get(guild + "/threads/active", self.active_threads),
            web.get(guild + r"/members/{user:\d+}", self.member),
            web.get(channel, self.channel),
            web.get(channel + "/threads/archived/{kind:public|private}", self.archived_threads),
        ]

    async def me(self, _request: web.Request) -> web.Response:
        return bodies.answer(payloads.own_user(self._world.bot))

    async def user(self, request: web.Request) -> web.Response:
        user = self._world.users.get(request.match_info["user"])
        if user is None:
            raise errors.unknown("User")
        return bodies.answer(payloads.user(user) | {"banner": None, "accent_color": None})

    async def my_guilds(self, request: web.Request) -> web.Response:
        """In order of id, a page of at most 200."""
        after, before = (int(request.query.get(name, end)) for name, end in (("after", "0"), ("before", str(1 << 64))))
        found = [guild for guild in self._world.guilds.values() if after < int(guild.id) < before]
        limit = int(request.query.get("limit", "200"))
        return bodies.answer([payloads.own_guild(guild) for guild in found[:limit]])

    async def open_direct(self, request: web.Request) -> web.Response:
        body = request[BODY]
        user = self._world.users.get(str(body.json.get("recipient_id")))
        if user is None or user is self._world.bot:
            raise errors.invalid_form("recipient_id", "INVALID_RECIPIENT", "Invalid Recipient(s)")
        return bodies.answer(payloads.channel(self._world.direct(user), self._world.bot))

    async def application(self, _request: web.Request) -> web.Response:
        world = self._world
        shown = payloads.application(world.bot, world.owner, world.granted, len(world.guilds))
        return bodies.answer(shown | world.switches)

    async def gateway(self, _request: web.Request) -> web.Response:
        return bodies.answer({"url": self._gateway_url()})

    async def gateway_bot(self, request: web.Request) -> web.Response:
        if not request.headers.get("Authorization"):
            raise errors.unauthorized()
        limit = {"total": 1000, "remaining": self._world.logins_left, "reset_after": 86_400_000, "max_concurrency": 1}
        return bodies.answer({"url": self._gateway_url(), "shards": 1, "session_start_limit": limit})

    async def guild(self, request: web.Request) -> web.Response:
        guild = self._guild(request)
        counts: JsonObject = {}
        if request.query.get("with_counts", "").lower() in ("1", "true"):
            counts = {key: len(guild.members) for key in ("approximate_member_count", "approximate_presence_count")}
        return bodies.answer(payloads.guild(guild) | counts)

    async def guild_channels(self, request: web.Request) -> web.Response:
        channels = self._guild(request).channels.values()
        return bodies.answer([payloads.channel(channel, self._world.bot) for channel in channels])

    async def active_threads(self, request: web.Request) -> web.Response:
        threads = self._guild(request).threads.values()
        seen = [item for item in threads if not item.archived and item.permits(Permission.VIEW_CHANNEL)]
        return bodies.answer(self._listing(seen))

    async def member(self, request: web.Request) -> web.Response:
        guild = self._guild(request)
        user = guild.members.get(request.match_info["user"])
        if user is None:
            raise errors.unknown("Member" if request.match_info["user"] in self._world.users else "User")
        return bodies.answer(payloads.member(guild, user))

    async def channel(self, request: web.Request) -> web.Response:
        return bodies.answer(payloads.channel(self._channel(request), self._world.bot))

    async def archived_threads(self, request: web.Request) -> web.Response:
        """Newest archive first; `before` is a timestamp."""
        parent = self._channel(request)
        assert parent.guild is not None
        if not parent.permits(Permission.READ_MESSAGE_HISTORY):
            raise errors.missing_permissions()
        kind = ChannelType.PUBLIC_THREAD if request.match_info["kind"] == "public" else ChannelType.PRIVATE_THREAD
        before = datetime.fromisoformat(request.query.get("before", "9999-12-31T00:00:00+00:00"))
        dated = [
            (item.archived_at, item)
            for item in parent.guild.threads.values()
            if item.parent is parent and item.type is kind and item.archived and item.archived_at is not None
        ]
        dated.sort(key=lambda pair: pair[0], reverse=True)
        found = [item for moment, item in dated if moment < before]
        limit = int(request.query.get("limit", "50"))
        return bodies.answer(self._listing(found[:limit]) | {"has_more": len(found) > limit})

    def _listing(self, threads: list[Channel]) -> JsonObject:
        bot = self._world.bot
        joined = [thread for thread in threads if bot in thread.thread_members]
        return {
            "threads": [payloads.channel(thread, bot) for thread in threads],
            "members": [payloads.thread_member(thread, bot) for thread in joined],
        }

    def _guild(self, request: web.Request) -> Guild:
        guild = self._world.guilds.get(request.match_info["guild"])
        if guild is None:
            raise errors.unknown("Guild")
        return guild

    def _channel(self, request: web.Request) -> Channel:
        channel = self._world.channels.get(request.match_info["channel"])
        if channel is None:
            raise errors.unknown("Channel")
        if not channel.permits(Permission.VIEW_CHANNEL):
            raise errors.missing_access()
        return channel
