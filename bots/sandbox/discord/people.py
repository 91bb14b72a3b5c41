"""What a person does with a Discord app."""

from collections.abc import Sequence
from typing import TypedDict, Unpack, cast

from bots.sandbox.discord.bodies import objects
from bots.sandbox.discord.interactions import Answer, Interaction, Interactions
from bots.sandbox.discord.model import (
    AllowedMentions,
    Channel,
    File,
    Guild,
    JsonObject,
    Message,
    MessageFlag,
    MessageType,
    Poll,
    Reference,
    Sticker,
    User,
)
from bots.sandbox.discord.world import World, embody_forward

BUTTON, TEXT_SELECT, TEXT_INPUT = 2, 3, 4
"""Component types."""


class Saying(TypedDict, total=False):
    """What a message may hold besides its text. `embeds` and `components` are for bots and webhooks."""

    reply_to: Message
    ping: bool
    forward: Message
    files: Sequence[File]
    sticker: Sticker
    poll: Poll
    embeds: list[JsonObject]
    components: list[JsonObject]
    flags: int
    tts: bool


def speak(world: World, author: User, channel: Channel, text: str, said: Saying) -> Message:
    """Make a message of an account that is not the bot under test; it is not posted yet."""
    files = said.get("files", ())
    message = Message(
        channel,
        author,
        text,
        flags=said.get("flags", 0),
        tts=said.get("tts", False),
        attachments=world.attach(files),
        stickers=[said["sticker"]] if "sticker" in said else [],
        poll=said.get("poll"),
        embeds=said.get("embeds", []),
        components=said.get("components", []),
    )
    if any(file.waveform is not None for file in files):
        message.flags |= MessageFlag.VOICE_MESSAGE
    if "reply_to" in said:
        message.type = MessageType.REPLY
        message.reference = refer(said["reply_to"])
    elif "forward" in said:
        message.reference = refer(said["forward"], kind=1)
        embody_forward(message, said["forward"])
    return message


def refer(original: Message, kind: int = 0) -> Reference:
    guild = original.channel.guild
    return Reference(original.channel.id, original.id, None if guild is None else guild.id, kind)


class Person(User):
    """An account other than the bot under test; with `bot` another bot. Made by `DiscordSandbox.user`."""

    def __init__(self, world: World, interactions: Interactions, name: str, *, bot: bool = False) -> None:
        handle = name if bot else name.lower().replace(" ", "_")
        super().__init__(world.ids.new(), handle, None if bot else name, bot=bot)
        self._world = world
        self._interactions = interactions

    async def say(self, channel: Channel, text: str = "", **said: Unpack[Saying]) -> Message:
        """Send a message. A reply pings its author unless `ping=False`; a forward has no text of its own."""
        message = speak(self._world, self, channel, text, said)
        return self._world.post(message, AllowedMentions(replied_user=said.get("ping", True)))

    async def edit(self, message: Message, text: str) -> Message:
        """Change the text of one's own message."""
        if message.author is not self:
            raise ValueError("a person can edit only what they wrote")
        message.content = text
        self._world.edit(message)
        return message

    async def delete(self, message: Message) -> None:
        """Delete a message: one's own, or as a moderator anybody's."""
        self._world.delete([message])

    async def react(self, message: Message, emoji: str, *, add: bool = True) -> None:
        """Add a reaction, or take it back."""
        self._world.react(message, self, emoji, add=add)

    async def pin(self, message: Message) -> Message:
        """Pin a message. Returns the system message that says so; the pinned one is updated, but not edited."""
        return self._world.pin(message, self)

    async def start_thread(
        self, channel: Channel, name: str, *, message: Message | None = None, private: bool = False
    ) -> Channel:
        """Open a thread, on a message or on its own."""
        return self._world.start_thread(channel, name, self, message=message, private=private)

    async def join(self, guild: Guild) -> Message:
        """Have the server's first channel greet this person with the system message for newcomers (type 7)."""
        self._world.add_member(guild, self)
        channel = next(iter(guild.channels.values()))
        return self._world.post(Message(channel, self, type=MessageType.JOINED))

    async def press(self, message: Message, button: str, within: float = 3.0) -> Answer | None:
        """Press a button named by its custom id or label.

        Returns what the bot answered, or None ("This interaction failed") if it was silent for `within` seconds.
        """
        return await self._answer(await self.press_unanswered(message, button), within)

    async def press_unanswered(self, message: Message, button: str, *, told: int = 1) -> Interaction:
        """The same without waiting: the interaction's `answer` comes later. `told` is how often it is dispatched."""
        parts = [part for part in _components(message) if part.get("type") == BUTTON]
        found = next((part for part in parts if button in (part.get("custom_id"), part.get("label"))), None)
        if found is None or found.get("disabled") or found.get("custom_id") is None:
            raise ValueError(f"the message has no button {button!r} to press, only {_names(parts)}")
        data: JsonObject = {"custom_id": found["custom_id"], "component_type": BUTTON, "id": found.get("id", 1)}
        interaction = self._interactions.open(self, message.channel, data, origin=message)
        for _ in range(told):
            self._interactions.tell(interaction)
        return interaction

    async def choose(
        self, message: Message, custom_id: str, values: Sequence[str], within: float = 3.0
    ) -> Answer | None:
        """Choose values (or labels) in a select menu."""
        menus = [part for part in _components(message) if part.get("type") == TEXT_SELECT]
        menu = next((part for part in menus if part.get("custom_id") == custom_id), None)
        if menu is None or menu.get("disabled"):
            raise ValueError(f"the message has no menu {custom_id!r}, only {_names(menus)}")
        offered = {str(option[key]): str(option["value"]) for option in menu["options"] for key in ("label", "value")}
        unknown = [value for value in values if value not in offered]
        if unknown:
            raise ValueError(f"the menu does not offer {unknown}, only {sorted(offered)}")
        data: JsonObject = {
            "custom_id": custom_id,
            "component_type": TEXT_SELECT,
            "id": menu.get("id", 1),
            "values": [offered[value] for value in values],
        }
        interaction = self._interactions.open(self, message.channel, data, origin=message)
        self._interactions.tell(interaction)
        return await self._answer(interaction, within)

    async def submit_modal(self, opened: Answer, values: dict[str, str], within: float = 3.0) -> Answer | None:
        """Fill in the form that a press opened, by custom id, and send it."""
        if opened.modal is None:
            raise ValueError("the bot has opened no form")
        rows = [_filled(row, values) for row in objects(opened.modal["components"])]
        data: JsonObject = {"custom_id": opened.modal["custom_id"], "components": rows}
        before = opened.interaction
        interaction = self._interactions.open(self, before.channel, data, origin=before.origin, parent=before)
        self._interactions.tell(interaction)
        return await self._answer(interaction, within)

    async def _answer(self, interaction: Interaction, within: float) -> Answer | None:
        try:
            await self._world.until(lambda: interaction.answer is not None, within)
        except TimeoutError:
            return None
        return interaction.answer


class Webhook(User):
    """An incoming webhook, as whoever holds its URL uses it. Made by `DiscordSandbox.webhook`."""

    def __init__(self, world: World, channel: Channel, name: str) -> None:
        super().__init__(world.ids.new(), name, bot=True, discriminator="0000")
        self._world = world
        self._channel = channel

    async def say(self, text: str = "", *, username: str | None = None, **said: Unpack[Saying]) -> Message:
        """Post under the webhook's name, or any other."""
        author = User(self.id, username or self.username, bot=True, discriminator="0000")
        message = speak(self._world, author, self._channel, text, said)
        message.webhook_id = self.id
        return self._world.post(message)


def _components(message: Message) -> list[JsonObject]:
    return [part for row in message.components for part in objects(row.get("components"))]


def _names(parts: list[JsonObject]) -> list[str]:
    return [str(part.get("label") or part.get("custom_id")) for part in parts]


def _filled(part: JsonObject, values: dict[str, str]) -> JsonObject:
    """The part of a modal as its submission mirrors it: action rows and labels around text inputs."""
    kept = {key: part[key] for key in ("type", "id", "custom_id") if key in part}
    if "components" in part:
        return kept | {"components": [_filled(inner, values) for inner in objects(part["components"])]}
    if "component" in part:
        return kept | {"component": _filled(cast("JsonObject", part["component"]), values)}
    if part.get("type") == TEXT_INPUT:
        return kept | {"value": values.get(str(part["custom_id"]), str(part.get("value") or ""))}
    return kept
