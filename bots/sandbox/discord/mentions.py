"""Whom a message pings (Message, Allowed Mentions Object)."""

import re
from collections.abc import Mapping

from bots.sandbox.discord.model import AllowedMentions, Message, User

_USER = re.compile(r"<@!?(\d+)>")
_ROLE = re.compile(r"<@&(\d+)>")
_EVERYONE = re.compile(r"@(?:everyone|here)\b")


def resolve(message: Message, allowed: AllowedMentions, users: Mapping[str, User], replied: User | None) -> None:
    """Set the mentions of a message: those its content names and `allowed` lets through, and the author replied to."""
    guild = message.channel.guild
    named = [users[found] for found in _USER.findall(message.content) if found in users]
    pinged = [user for user in named if "users" in allowed.parse or user.id in allowed.users]
    message.mentions = list(dict.fromkeys(pinged if replied is None else [replied, *pinged]))
    known = {} if guild is None else guild.roles
    roles = [found for found in _ROLE.findall(message.content) if found in known]
    message.mention_roles = [found for found in roles if "roles" in allowed.parse or found in allowed.roles]
    everyone = guild is not None and "everyone" in allowed.parse
    message.mention_everyone = everyone and bool(_EVERYONE.search(message.content))
