"""Who is who at Discord: ourselves, and people."""

from dataclasses import dataclass
from functools import lru_cache

import discord

from bots.discord.veil import Veil
from core.entries import Author
from core.ids import UserId


@dataclass(frozen=True, slots=True)
class Me:
    """Who we are at Discord, from READY."""

    id: UserId


@lru_cache(maxsize=8)
def me_of(number: int) -> Me:
    """Us, by the number that READY tells: asked for with everything that happens."""
    return Me(id=UserId(str(number)))


def author_of(who: discord.User | discord.Member, veil: Veil) -> Author:
    """A person or bot as an author."""
    return Author(id=UserId(str(who.id)), name=veil.over(name_of(who)) or None)


def name_of(who: discord.User | discord.Member) -> str:
    """Nickname on the server, else display name, else username; empty if it has nothing to read."""
    return who.display_name.strip()
