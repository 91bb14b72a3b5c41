"""A loopback Discord: REST, gateway and CDN of API v10, driven as a person drives the app."""

from bots.sandbox.discord.cdn import CdnFault
from bots.sandbox.discord.model import AllowedMentions, File, Intent, Message, Permission, Poll
from bots.sandbox.discord.server import DiscordSandbox

__all__ = ["AllowedMentions", "CdnFault", "DiscordSandbox", "File", "Intent", "Message", "Permission", "Poll"]
