"""The stand-in as one thing to start, to drive and to break."""

import base64
import secrets
import time
from collections.abc import Callable
from email.utils import formatdate
from types import TracebackType
from typing import Self

from aiohttp import web

from bots.sandbox.discord.callbacks import CallbackRoutes
from bots.sandbox.discord.cdn import Cdn, CdnFault, Links
from bots.sandbox.discord.faults import ApiCall, Buckets, Fault
from bots.sandbox.discord.gateway import Gateway
from bots.sandbox.discord.interactions import Interactions
from bots.sandbox.discord.messages import MessageRoutes
from bots.sandbox.discord.model import (
    PRIVILEGED,
    Channel,
    Event,
    Guild,
    Intent,
    JsonObject,
    Message,
    Permission,
    Sticker,
    User,
)
from bots.sandbox.discord.people import Person, Webhook
from bots.sandbox.discord.places import Server
from bots.sandbox.discord.rest import Guard, RestRoutes
from bots.sandbox.discord.world import World

API_PATH = "/api/v10"


class DiscordSandbox:
    """A loopback Discord with one bot in it.

    ```python
    async with DiscordSandbox() as discord:
        channel = discord.guild("Film club").text_channel("general")
        mona = discord.user("Mona")
        await mona.say(channel, "hello")
        answer = await discord.bot_message(channel, containing="hello")
    ```

    Clients connect to `api_url`, `gateway_url` and `cdn_host` with `token`. Everybody is a member of every guild.
    `granted` are the privileged intents switched on; `heartbeat_interval` is in seconds. Beyond `requests_per_second`
    for one route and channel a client gets 429. What happens while nobody is connected is history, and is replayed to a
    session that resumes.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        bot_name: str = "Ishiki",
        token: str | None = None,
        granted: Intent = PRIVILEGED,
        heartbeat_interval: float = 41.25,
        requests_per_second: int = 50,
    ) -> None:
        self._links = Links()
        self.world = World(bot_name, self._links.sign, granted=granted)
        self.token = token or _token(self.bot)
        self.calls: list[ApiCall] = []
        self._port = port
        self._clock_shift = 0.0
        self._heard: set[str] = set()
        self._interactions = Interactions(self.world)
        self.gateway = Gateway(self.world, self.token, heartbeat_interval=heartbeat_interval)
        self.world.publish = self.gateway.publish
        self._cdn = Cdn(self._links, self.world.attachments, self._find_sticker)
        self._guard = Guard(self.token, API_PATH, Buckets(requests_per_second), self._note_call)
        self._runner = web.AppRunner(self._app(), access_log=None, shutdown_timeout=1.0)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._port = self._runner.addresses[0][1]
        self._links.host = self.cdn_host
        self.gateway.url = self.gateway_url
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for connection in tuple(self.gateway.connections):
            connection.abort()
        await self._runner.cleanup()

    @property
    def api_url(self) -> str:
        return f"http://127.0.0.1:{self._port}{API_PATH}"

    @property
    def gateway_url(self) -> str:
        return f"ws://127.0.0.1:{self._port}/"

    @property
    def cdn_host(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def bot(self) -> User:
        return self.world.bot

    # People and places

    def guild(self, name: str) -> Server:
        """Invite the bot to a new server."""
        guild = Server(self.world, name)
        self.world.add_guild(guild)
        return guild

    def user(self, name: str, *, bot: bool = False) -> Person:
        """A new account: a person, or another bot."""
        person = Person(self.world, self._interactions, name, bot=bot)
        self.world.add_user(person)
        return person

    def dm(self, user: User) -> Channel:
        """The direct messages between somebody and the bot."""
        return self.world.direct(user)

    def webhook(self, channel: Channel, name: str) -> Webhook:
        return Webhook(self.world, channel, name)

    async def archive(self, thread: Channel, *, archived: bool = True) -> None:
        self.world.archive(thread, archived=archived)

    async def deny(self, channel: Channel, permission: Permission) -> None:
        """Take rights from the bot in a channel and its threads; `Permission.NONE` gives all back."""
        self.world.deny(channel, permission)

    async def delete_channel(self, channel: Channel) -> None:
        """Delete a channel or thread with its messages."""
        self.world.remove_channel(channel)

    async def leave(self, guild: Guild) -> None:
        """Throw the bot out of a server."""
        self.world.remove_guild(guild)

    # Messages

    def history(self, channel: Channel) -> list[Message]:
        """What stands in a channel now, oldest first."""
        return list(channel.messages.values())

    def payload(self, message: Message) -> JsonObject:
        """A message as MESSAGE_CREATE brings it, to be changed and dispatched by hand."""
        return self.world.payloads.gateway(message)

    async def bulk_delete(self, channel: Channel, messages: list[Message]) -> None:
        """Have a moderation bot delete several messages of a channel at once."""
        if any(message.channel is not channel for message in messages) or len(messages) < 2:
            raise ValueError("a bulk deletion takes two or more messages of one channel")
        self.world.delete(messages)

    async def embed_preview(self, message: Message, title: str = "A page") -> Message:
        """Have Discord add the preview of a link: an update that is no edit."""
        link = next((word for word in message.content.split() if word.startswith("http")), "https://example.org/")
        message.embeds = [*message.embeds, {"type": "link", "url": link, "title": title, "description": "A preview"}]
        self.world.refresh(message)
        return message

    async def system_message(self, channel: Channel, kind: int, author: User, text: str = "") -> Message:
        """A message of any documented type, by its number."""
        return self.world.post(Message(channel, author, text, type=kind))

    async def bot_message(self, channel: Channel, *, containing: str = "", within: float = 10.0) -> Message:
        """The bot's oldest message in a channel that contains a text and was not returned before.

        Waits for it. Raises `TimeoutError` after `within` seconds.
        """

        def unheard() -> Message | None:
            said = (message for message in channel.messages.values() if message.author is self.bot)
            return next((item for item in said if item.id not in self._heard and containing in item.content), None)

        message = await self.world.until(unheard, within)
        self._heard.add(message.id)
        return message

    async def until(self, holds: Callable[[], bool], within: float = 10.0) -> None:
        """Wait for a state of the stand-in. Raises `TimeoutError` after `within` seconds."""
        await self.world.until(holds, within)

    async def connected(self, within: float = 10.0) -> None:
        """Wait until a client has identified or resumed and has been sent everything."""

        def caught_up() -> bool:
            sessions = self.gateway.sessions.values()
            return any(item.connection is not None and item.connection.sent == item.sequence for item in sessions)

        await self.world.until(caught_up, within)

    # Faults

    async def dispatch(self, name: str, data: JsonObject) -> None:
        """Send any payload as an event to every session, whatever its intents, also one that breaks parsers."""
        self.gateway.publish(Event(name, data))

    async def drop_connections(self) -> None:
        """Cut every gateway socket as a broken cable would; sessions stay resumable."""
        await self.gateway.drop()

    async def ask_to_reconnect(self) -> None:
        """Send RECONNECT (op 7)."""
        await self.gateway.ask_to_reconnect()

    async def invalidate_sessions(self, *, resumable: bool = False) -> None:
        """Send INVALID SESSION (op 9)."""
        await self.gateway.invalidate(resumable=resumable)

    async def close_connections(self, code: int) -> None:
        """Close every gateway socket with a code of Gateway Close Event Codes."""
        await self.gateway.close(code)

    def rate_limit(
        self, route: str, retry_after: float, times: int = 1, *, via: bool = True, is_global: bool = False
    ) -> None:
        """Answer 429 to requests whose "METHOD /path" contains `route`; without `via` as the edge bans."""
        self._add(Fault(route, times, retry_after=retry_after, via=via, is_global=is_global))

    def fail(self, route: str, status: int, times: int = 1) -> None:
        """Refuse requests with a status, undone; 0 cuts the connection."""
        self._add(Fault(route, times, status=status))

    def lose_answer(self, route: str, times: int = 1, *, status: int = 502) -> None:
        """Do what is asked, and answer with an error nevertheless."""
        self._add(Fault(route, times, status=status, acted=True))

    def slow(self, route: str, seconds: float, times: int = 1) -> None:
        """Let requests wait before anything happens."""
        self._add(Fault(route, times, delay=seconds))

    def garble(self, route: str, times: int = 1, *, body: bytes = b'{"id": ') -> None:
        """Answer requests with something that is no JSON."""
        self._add(Fault(route, times, body=body))

    def shift_clock(self, seconds: float) -> None:
        """Let the header `Date` of answers be ahead of the time, or behind."""
        self._clock_shift += seconds

    def recover(self) -> None:
        """Let no request fail any more."""
        self._guard.faults.pending.clear()

    def expire_links(self, status: int = 404) -> None:
        """Let all attachment links given out so far die; asked for again, a message has living ones."""
        self._cdn.dead_status = status
        self._links.expire()

    def cdn_fault(self, fault: CdnFault) -> None:
        """Let downloads misbehave."""
        self._cdn.faults.append(fault)

    @property
    def downloads(self) -> list[str]:
        """Paths asked of the CDN so far, without their signatures."""
        return self._cdn.downloads

    def _app(self) -> web.Application:
        api = web.Application(middlewares=[self._guard.middleware()], client_max_size=64 * 1024 * 1024)
        api.add_routes(RestRoutes(self.world, lambda: self.gateway_url).routes())
        api.add_routes(MessageRoutes(self.world).routes())
        api.add_routes(CallbackRoutes(self.world, self._interactions).routes())
        app = web.Application()
        app.on_response_prepare.append(self._date)
        app.add_routes([web.get("/", self.gateway.serve), *self._cdn.routes()])
        app.add_subapp(API_PATH, api)
        return app

    async def _date(self, _request: web.Request, response: web.StreamResponse) -> None:
        response.headers["Date"] = formatdate(time.time() + self._clock_shift, usegmt=True)

    def _add(self, fault: Fault) -> None:
        self._guard.faults.pending.append(fault)

    def _note_call(self, call: ApiCall) -> None:
        self.calls.append(call)
        self.world.changed()

    def _find_sticker(self, sticker_id: str) -> Sticker | None:
        known = (guild.stickers.get(sticker_id) for guild in self.world.guilds.values())
        return next((sticker for sticker in known if sticker is not None), None)


def _token(bot: User) -> str:
    """A token of the real form: the bot's id, a time and a secret."""
    return f"{base64.b64encode(bot.id.encode()).decode().rstrip('=')}.Sandbx.{secrets.token_urlsafe(28)}"
