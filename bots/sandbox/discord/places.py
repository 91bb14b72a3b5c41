"""Servers, as those who own them work them."""

from bots.sandbox.discord.model import Channel, ChannelType, Guild, Role, Sticker
from bots.sandbox.discord.world import World


class Server(Guild):
    """A guild as its owner works it."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world.ids.new(), name, world.owner.id)
        self._world = world

    def text_channel(self, name: str) -> Channel:
        channel = Channel(self._world.ids.new(), ChannelType.TEXT, name, self)
        self._world.add_channel(channel)
        return channel

    def role(self, name: str) -> Role:
        role = Role(self._world.ids.new(), name)
        self._world.add_role(self, role)
        return role

    def sticker(self, name: str, data: bytes) -> Sticker:
        """Add a PNG sticker."""
        sticker = Sticker(self._world.ids.new(), name, data, self.id)
        self.stickers[sticker.id] = sticker
        return sticker
