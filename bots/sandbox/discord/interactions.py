"""The life of an interaction: told once, answered within three seconds, followed up for fifteen minutes.

(Interactions, Receiving and Responding.)
"""

import asyncio
import secrets
from dataclasses import dataclass, field

from bots.sandbox.discord import errors, payloads
from bots.sandbox.discord.model import (
    EVERY_PERMISSION,
    Channel,
    Event,
    JsonObject,
    Message,
    MessageFlag,
    User,
)
from bots.sandbox.discord.world import World

COMPONENT, MODAL_SUBMIT = 3, 5
"""Interaction types."""

REPLY, DEFERRED_REPLY, DEFERRED_UPDATE, UPDATE, MODAL = 4, 5, 6, 7, 9
"""Callback types."""

FIRST_ANSWER_WITHIN = 3.0
TOKEN_LIFETIME = 15 * 60.0


@dataclass(slots=True)
class Answer:
    """What the bot answered, and goes on answering: `messages` grows with follow-ups, and edits show in them.

    `type` is the callback type. `message` is the reply, or the message that was updated; `modal` the form to fill in.
    """

    type: int
    interaction: "Interaction"
    message: Message | None = None
    modal: JsonObject | None = None
    messages: list[Message] = field(default_factory=list[Message])

    @property
    def text(self) -> str:
        return "" if self.message is None else self.message.content

    @property
    def ephemeral(self) -> bool:
        """Whether only the person who pressed sees the reply."""
        return self.message is not None and bool(self.message.flags & MessageFlag.EPHEMERAL)


@dataclass(slots=True, eq=False)
class Interaction:
    """Something a person did with the bot's message. `origin` is the message, `parent` what opened the modal."""

    id: str
    type: int
    user: User
    channel: Channel
    data: JsonObject
    origin: Message | None
    parent: "Interaction | None" = None
    token: str = field(default_factory=lambda: secrets.token_urlsafe(96))
    began: float = field(default_factory=lambda: asyncio.get_running_loop().time())
    answer: Answer | None = None

    @property
    def age(self) -> float:
        return asyncio.get_running_loop().time() - self.began

    @property
    def metadata(self) -> JsonObject:
        """`interaction_metadata` of the messages that answer it."""
        guild = self.channel.guild
        payload: JsonObject = {
            "id": self.id,
            "type": self.type,
            "user": payloads.user(self.user),
            "authorizing_integration_owners": {"0": "0" if guild is None else guild.id},
        }
        if self.type == COMPONENT and self.origin is not None:
            payload["interacted_message_id"] = self.origin.id
        if self.parent is not None:
            payload["triggering_interaction_metadata"] = self.parent.metadata
        return payload


class Interactions:
    """Opens interactions for people, and finds them again for the bot."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._known: dict[str, Interaction] = {}

    def open(
        self,
        user: User,
        channel: Channel,
        data: JsonObject,
        *,
        origin: Message | None,
        parent: Interaction | None = None,
    ) -> Interaction:
        """Begin one; `data` with a `component_type` is a press or choice, any other a submitted modal."""
        kind = COMPONENT if "component_type" in data else MODAL_SUBMIT
        interaction = Interaction(self._world.ids.new(), kind, user, channel, data, origin, parent)
        self._known[interaction.token] = interaction
        return interaction

    def tell(self, interaction: Interaction) -> None:
        """Send INTERACTION_CREATE; twice for one interaction is what a client sees after a resume."""
        self._world.publish(Event("INTERACTION_CREATE", self._payload(interaction)))

    def to_answer(self, interaction_id: str, token: str) -> Interaction:
        """The interaction that a callback is for; refuses a late one and a second one."""
        interaction = self._known.get(token)
        if interaction is None or interaction.id != interaction_id:
            raise errors.unknown("interaction")
        if interaction.answer is not None:
            raise errors.already_acknowledged()
        if interaction.age > FIRST_ANSWER_WITHIN:
            raise errors.unknown("interaction")
        return interaction

    def answered(self, token: str) -> Answer:
        """The answer that follow-ups belong to."""
        interaction = self._known.get(token)
        if interaction is None or interaction.answer is None:
            raise errors.unknown("Webhook")
        if interaction.age > TOKEN_LIFETIME:
            raise errors.invalid_webhook_token()
        return interaction.answer

    def settle(self, interaction: Interaction, answer: Answer) -> None:
        interaction.answer = answer
        self._world.changed()

    def _payload(self, interaction: Interaction) -> JsonObject:
        channel, guild, bot = interaction.channel, interaction.channel.guild, self._world.bot
        shown = payloads.channel(channel, bot)
        payload: JsonObject = {
            "id": interaction.id,
            "application_id": bot.id,
            "type": interaction.type,
            "token": interaction.token,
            "version": 1,
            "data": interaction.data,
            "channel_id": channel.id,
            "channel": shown,
            "app_permissions": payloads.permissions(channel),
            "locale": "en-US",
            "entitlements": [],
            "entitlement_sku_ids": [],
            "authorizing_integration_owners": {"0": "0" if guild is None else guild.id},
            "context": 1 if guild is None else 0,
            "attachment_size_limit": 10 * 1024 * 1024,
        }
        if interaction.origin is not None:
            payload["message"] = self._world.payloads.rest(interaction.origin)
        if guild is None:
            return payload | {"user": payloads.user(interaction.user)}
        rights = str(EVERY_PERMISSION)
        return payload | {
            "guild_id": guild.id,
            "guild": {"id": guild.id, "locale": "en-US", "features": []},
            "guild_locale": "en-US",
            "channel": shown | {"permissions": rights},
            "member": payloads.member(guild, interaction.user) | {"permissions": rights},
        }
