"""REST for interactions: the first answer, and the follow-ups through the interaction's webhook."""

from typing import cast

from aiohttp import web

from bots.sandbox.discord import bodies, errors
from bots.sandbox.discord.bodies import BODY, Body
from bots.sandbox.discord.interactions import (
    COMPONENT,
    DEFERRED_REPLY,
    DEFERRED_UPDATE,
    MODAL,
    REPLY,
    UPDATE,
    Answer,
    Interaction,
    Interactions,
)
from bots.sandbox.discord.messages import compose, refuse_empty, revise
from bots.sandbox.discord.model import (
    AllowedMentions,
    JsonObject,
    Message,
    MessageFlag,
    MessageType,
    Reference,
)
from bots.sandbox.discord.world import World


class CallbackRoutes:
    """Routes below `/interactions` and `/webhooks`. The token in the path is the authorization."""

    def __init__(self, world: World, interactions: Interactions) -> None:
        self._world = world
        self._interactions = interactions

    def routes(self) -> list[web.RouteDef]:
        hook = r"/webhooks/{application:\d+}/{token}"
        one = hook + "/messages/{message}"
        return [
            web.post(r"/interactions/{interaction:\d+}/{token}/callback", self.callback),
            web.post(hook, self.follow_up),
            web.get(one, self.get),
            web.patch(one, self.edit),
            web.delete(one, self.delete),
        ]

    async def callback(self, request: web.Request) -> web.Response:
        interaction = self._interactions.to_answer(request.match_info["interaction"], request.match_info["token"])
        body = request[BODY]
        kind = body.json.get("type")
        inner = Body(cast("JsonObject", body.json.get("data") or {}), body.files)
        answer = Answer(cast("int", kind), interaction)
        if kind in (REPLY, DEFERRED_REPLY):
            self._reply(answer, inner)
        elif kind in (UPDATE, DEFERRED_UPDATE) and interaction.origin is not None:
            answer.message = interaction.origin
            if kind == UPDATE:
                revise(self._world, interaction.origin, inner, prefix="data.")
        elif kind == MODAL and interaction.type == COMPONENT:
            answer.modal = _checked_modal(inner.json)
        else:
            raise errors.invalid_form("type", "INTERACTION_INVALID_TYPE", "This callback type is not possible here.")
        self._interactions.settle(interaction, answer)
        if request.query.get("with_response", "").lower() not in ("1", "true"):
            return web.Response(status=204)
        return bodies.answer(self._result(answer))

    async def follow_up(self, request: web.Request) -> web.Response:
        answer = self._answer(request)
        body = request[BODY]
        first = answer.message
        if first is not None and first.flags & MessageFlag.LOADING:
            self._fill(first, body)
            return self._drawn(first)
        message, allowed = self._compose(answer.interaction, body)
        refuse_empty(message)
        self._world.post(message, allowed)
        answer.messages.append(message)
        return self._drawn(message)

    async def get(self, request: web.Request) -> web.Response:
        return self._drawn(self._message(request))

    async def edit(self, request: web.Request) -> web.Response:
        message = self._message(request)
        body = request[BODY]
        if message.flags & MessageFlag.LOADING:
            self._fill(message, body)
        else:
            revise(self._world, message, body)
        return self._drawn(message)

    async def delete(self, request: web.Request) -> web.Response:
        self._world.delete([self._message(request)])
        return web.Response(status=204)

    def _reply(self, answer: Answer, body: Body) -> None:
        message, allowed = self._compose(answer.interaction, body, prefix="data.")
        if answer.type == DEFERRED_REPLY:
            message.flags |= MessageFlag.LOADING
        else:
            refuse_empty(message)
        self._world.post(message, allowed)
        answer.message = message
        answer.messages.append(message)

    def _compose(
        self, interaction: Interaction, body: Body, *, prefix: str = ""
    ) -> tuple[Message, AllowedMentions | None]:
        message, allowed = compose(self._world, interaction.channel, body, prefix=prefix)
        message.flags |= int(body.json.get("flags") or 0) & MessageFlag.EPHEMERAL
        message.application_id = message.webhook_id = self._world.bot.id
        message.interaction_metadata = interaction.metadata
        origin = interaction.origin
        if origin is not None and not origin.deleted:
            guild_id = None if origin.channel.guild is None else origin.channel.guild.id
            message.type = MessageType.REPLY
            message.reference = Reference(origin.channel.id, origin.id, guild_id)
        return message, allowed

    def _fill(self, message: Message, body: Body) -> None:
        """Put the content into a deferred reply: no edit, as nobody has seen it before."""
        draft, allowed = compose(self._world, message.channel, body)
        refuse_empty(draft)
        message.flags &= ~MessageFlag.LOADING
        message.content, message.embeds = draft.content, draft.embeds
        message.components, message.attachments = draft.components, draft.attachments
        self._world.resolve_mentions(message, allowed or AllowedMentions())
        self._world.refresh(message)

    def _answer(self, request: web.Request) -> Answer:
        if request.match_info["application"] != self._world.bot.id:
            raise errors.unknown("Webhook")
        return self._interactions.answered(request.match_info["token"])

    def _message(self, request: web.Request) -> Message:
        answer = self._answer(request)
        wanted = request.match_info["message"]
        known = {message.id: message for message in answer.messages}
        message = answer.message if wanted == "@original" else known.get(wanted)
        if message is None or message.deleted:
            raise errors.unknown("Message")
        return message

    def _drawn(self, message: Message) -> web.Response:
        return bodies.answer(self._world.payloads.rest(message))

    def _result(self, answer: Answer) -> JsonObject:
        """The Interaction Callback Response object."""
        told: JsonObject = {"id": answer.interaction.id, "type": answer.interaction.type}
        resource: JsonObject = {"type": answer.type}
        if answer.message is not None:
            told["response_message_id"] = answer.message.id
            told["response_message_loading"] = bool(answer.message.flags & MessageFlag.LOADING)
            told["response_message_ephemeral"] = answer.ephemeral
            if answer.type in (REPLY, UPDATE):
                resource["message"] = self._world.payloads.rest(answer.message)
        return {"interaction": told, "resource": resource}


def _checked_modal(data: JsonObject) -> JsonObject:
    if not 1 <= len(str(data.get("custom_id") or "")) <= 100:
        raise errors.bad_length("data.custom_id", 1, 100)
    if not 1 <= len(str(data.get("title") or "")) <= 45:
        raise errors.bad_length("data.title", 1, 45)
    if not 1 <= len(bodies.objects(data.get("components"))) <= 5:
        raise errors.bad_length("data.components", 1, 5)
    return data
