"""REST for messages (Message resource)."""

from datetime import UTC, datetime, timedelta

from aiohttp import web

from bots.sandbox.discord import bodies, errors
from bots.sandbox.discord.bodies import BODY, Body
from bots.sandbox.discord.model import (
    AllowedMentions,
    Channel,
    ChannelType,
    Intent,
    JsonObject,
    Message,
    MessageFlag,
    MessageType,
    Permission,
    Reference,
    User,
    moment_of,
)
from bots.sandbox.discord.world import World, embody_forward

SETTABLE_FLAGS = MessageFlag.SUPPRESS_EMBEDS | MessageFlag.SUPPRESS_NOTIFICATIONS | MessageFlag.VOICE_MESSAGE
NONCE_WINDOW = timedelta(minutes=5)
REPLYABLE = (MessageType.DEFAULT, MessageType.REPLY, MessageType.COMPONENT_REPLY, MessageType.THREAD_STARTER)


def compose(world: World, channel: Channel, body: Body, *, prefix: str = "") -> tuple[Message, AllowedMentions | None]:
    """Make a message of the bot from the fields of Create Message; refuses what is empty or beyond a limit."""
    fields = body.json
    bodies.check_message(fields, prefix=prefix)
    known = {} if channel.guild is None else channel.guild.stickers
    wanted = [str(item) for item in fields.get("sticker_ids") or ()]
    message = Message(
        channel,
        world.bot,
        fields.get("content") or "",
        tts=bool(fields.get("tts")),
        flags=int(fields.get("flags") or 0) & SETTABLE_FLAGS,
        embeds=_rich(bodies.objects(fields.get("embeds"))),
        components=_numbered(bodies.objects(fields.get("components"))),
        stickers=[known[item] for item in wanted if item in known],
        poll=bodies.poll(fields.get("poll")),
        attachments=world.attach(bodies.uploaded(body, bodies.objects(fields.get("attachments")))),
        nonce=fields.get("nonce"),
    )
    return message, bodies.allowed_mentions(fields.get("allowed_mentions"))


def refuse_empty(message: Message) -> None:
    holds = (message.content, message.embeds, message.components, message.stickers, message.poll, message.attachments)
    if not any(holds) and message.snapshot is None:
        raise errors.empty_message()


def revise(world: World, message: Message, body: Body, *, prefix: str = "") -> None:
    """Change a message by the fields of Edit Message, and tell. Flags alone are no edit."""
    fields = body.json
    bodies.check_message(fields, prefix=prefix)
    if "content" in fields:
        message.content = fields["content"] or ""
    if "embeds" in fields:
        message.embeds = _rich(bodies.objects(fields["embeds"]))
    if "components" in fields:
        message.components = _numbered(bodies.objects(fields["components"]))
    described = bodies.objects(fields.get("attachments"))
    if "attachments" in fields:
        kept = {str(item.get("id")) for item in described}
        message.attachments = [item for item in message.attachments if item.id in kept]
    message.attachments = message.attachments + world.attach(bodies.uploaded(body, described))
    if fields.get("flags") is not None:
        unset = message.flags & ~MessageFlag.SUPPRESS_EMBEDS
        message.flags = unset | (int(fields["flags"]) & MessageFlag.SUPPRESS_EMBEDS)
    refuse_empty(message)
    if body.files or fields.keys() & {"content", "embeds", "components", "attachments"}:
        world.edit(message, bodies.allowed_mentions(fields.get("allowed_mentions")))
    else:
        world.refresh(message)


def _rich(embeds: list[JsonObject]) -> list[JsonObject]:
    return [{"type": "rich"} | embed for embed in embeds]


def _numbered(rows: list[JsonObject]) -> list[JsonObject]:
    """Give each component the `id` that Discord gives it: counted from 1 through the message."""
    count = 0

    def number(part: JsonObject) -> JsonObject:
        nonlocal count
        count += 1
        numbered = {"id": count} | part
        if isinstance(part.get("components"), list):
            numbered["components"] = [number(inner) for inner in bodies.objects(part["components"])]
        return numbered

    return [number(row) for row in rows]


class MessageRoutes:
    """Routes below `/channels/{channel}/messages`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._nonces: dict[tuple[User, str], Message] = {}

    def routes(self) -> list[web.RouteDef]:
        messages = r"/channels/{channel:\d+}/messages"
        one = messages + r"/{message:\d+}"
        mine = one + "/reactions/{emoji}/@me"
        return [
            web.get(messages, self.history),
            web.post(messages, self.create),
            web.post(messages + "/bulk-delete", self.bulk_delete),
            web.get(one, self.get),
            web.patch(one, self.edit),
            web.delete(one, self.delete),
            web.put(mine, self.react),
            web.delete(mine, self.unreact),
            web.post(r"/channels/{channel:\d+}/typing", self.typing),
        ]

    async def history(self, request: web.Request) -> web.Response:
        channel = self._channel(request)
        limit = _limit(request)
        if not channel.permits(Permission.READ_MESSAGE_HISTORY):
            return bodies.answer([])
        found = list(channel.messages.values())
        query = request.query
        if (before := query.get("before")) is not None:
            found = [message for message in found if int(message.id) < int(before)][-limit:]
        elif (after := query.get("after")) is not None:
            found = [message for message in found if int(message.id) > int(after)][:limit]
        elif (around := query.get("around")) is not None:
            older = [message for message in found if int(message.id) < int(around)][-(limit // 2) :]
            found = older + [message for message in found if int(message.id) >= int(around)][: limit - len(older)]
        else:
            found = found[-limit:]
        return bodies.answer([self._draw(message) for message in reversed(found)])

    async def get(self, request: web.Request) -> web.Response:
        channel = self._channel(request)
        _require(channel, Permission.READ_MESSAGE_HISTORY)
        return bodies.answer(self._draw(self._message(request)))

    async def create(self, request: web.Request) -> web.Response:
        channel = self._channel(request)
        speaking = Permission.SEND_MESSAGES_IN_THREADS if channel.is_thread else Permission.SEND_MESSAGES
        _require(channel, speaking)
        if channel.type is ChannelType.DM and not all(user.accepts_dms for user in channel.recipients):
            raise errors.cannot_message_user()
        body = request[BODY]
        message, allowed = compose(self._world, channel, body)
        if body.files:
            _require(channel, Permission.ATTACH_FILES)
        self._refer(message, body.json.get("message_reference"))
        refuse_empty(message)
        if body.json.get("enforce_nonce") and message.nonce is not None:
            key = (self._world.bot, str(message.nonce))
            earlier = self._nonces.get(key)
            if earlier is not None and datetime.now(UTC) - earlier.timestamp < NONCE_WINDOW:
                return bodies.answer(self._draw(earlier))
            self._nonces[key] = message
        return bodies.answer(self._draw(self._world.post(message, allowed)))

    async def edit(self, request: web.Request) -> web.Response:
        message = self._message(request)
        body = request[BODY]
        if message.author is not self._world.bot:
            if body.json.keys() - {"flags"}:
                raise errors.not_the_author()
            _require(message.channel, Permission.MANAGE_MESSAGES)
        revise(self._world, message, body)
        return bodies.answer(self._draw(message))

    async def delete(self, request: web.Request) -> web.Response:
        message = self._message(request)
        if message.author is not self._world.bot:
            if message.channel.guild is None:
                raise errors.not_in_direct_messages()
            _require(message.channel, Permission.MANAGE_MESSAGES)
        self._world.delete([message])
        return web.Response(status=204)

    async def bulk_delete(self, request: web.Request) -> web.Response:
        channel = self._channel(request)
        _require(channel, Permission.MANAGE_MESSAGES)
        body = request[BODY]
        ids = {str(item) for item in body.json.get("messages") or ()}
        if not 2 <= len(ids) <= 100:
            raise errors.bulk_delete_count()
        if any(datetime.now(UTC) - moment_of(item) > timedelta(weeks=2) for item in ids):
            raise errors.bulk_delete_age()
        found = [message for message in channel.messages.values() if message.id in ids]
        if found:
            self._world.delete(found)
        return web.Response(status=204)

    async def react(self, request: web.Request) -> web.Response:
        message = self._message(request)
        _require(message.channel, Permission.ADD_REACTIONS | Permission.READ_MESSAGE_HISTORY)
        self._world.react(message, self._world.bot, request.match_info["emoji"])
        return web.Response(status=204)

    async def unreact(self, request: web.Request) -> web.Response:
        self._world.react(self._message(request), self._world.bot, request.match_info["emoji"], add=False)
        return web.Response(status=204)

    async def typing(self, request: web.Request) -> web.Response:
        _require(self._channel(request), Permission.SEND_MESSAGES)
        return web.Response(status=204)

    def _refer(self, message: Message, value: JsonObject | None) -> None:
        """Resolve `message_reference`: a reply, or a forward with its snapshot."""
        if not value:
            return
        kind = int(value.get("type") or 0)
        channel_id = str(value.get("channel_id") or message.channel.id)
        original = self._world.find_message(channel_id, str(value.get("message_id")))
        if original is None:
            if kind == 0 and value.get("fail_if_not_exists") is False:
                return
            raise errors.invalid_form("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
        guild_id = None if original.channel.guild is None else original.channel.guild.id
        message.reference = Reference(channel_id, original.id, guild_id, kind)
        if kind == 1:
            embody_forward(message, original)
        elif original.type not in REPLYABLE:
            text = "Cannot reply to a system message"
            raise errors.invalid_form("message_reference", "REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE", text)
        else:
            message.type = MessageType.REPLY

    def _channel(self, request: web.Request) -> Channel:
        channel = self._world.channels.get(request.match_info["channel"])
        if channel is None:
            raise errors.unknown("Channel")
        if not channel.permits(Permission.VIEW_CHANNEL):
            raise errors.missing_access()
        return channel

    def _message(self, request: web.Request) -> Message:
        message = self._channel(request).messages.get(request.match_info["message"])
        if message is None:
            raise errors.unknown("Message")
        return message

    def _draw(self, message: Message) -> JsonObject:
        payload = self._world.payloads.rest(message)
        if Intent.MESSAGE_CONTENT in self._world.granted:
            return payload
        return self._world.payloads.redacted(message, payload) or payload


def _require(channel: Channel, permission: Permission) -> None:
    if not channel.permits(permission):
        raise errors.missing_permissions()


def _limit(request: web.Request) -> int:
    given = request.query.get("limit", "50")
    if not given.isdecimal():
        raise errors.invalid_form("limit", "NUMBER_TYPE_COERCE", f'Value "{given}" is not int.')
    if int(given) < 1:
        raise errors.invalid_form("limit", "NUMBER_TYPE_MIN", "int value should be greater than or equal to 1.")
    if int(given) > 100:
        raise errors.invalid_form("limit", "NUMBER_TYPE_MAX", "int value should be less than or equal to 100.")
    return int(given)
