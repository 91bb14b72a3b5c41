"""What people answer on Discord, with buttons, menus and forms: each once, and each answered in time."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import discord

from bots.discord import convert, prompts
from bots.discord.veil import Veil
from core.access import Visit
from core.confirmations.press import NOT_ALLOWED_HERE, NOTHING_KNOWN, UNREADABLE, Answers

MOST_HEARD: Final = 4096
"""Interactions that are remembered, so that none is answered twice."""


class Presses:
    """Interactions on their way to the desk, each with a task of its own, as Discord waits three seconds."""

    def __init__(
        self,
        answers: Answers,
        excludes: Callable[[Visit], bool],
        veil: Veil,
        on_unread: Callable[[str, Exception], None],
    ) -> None:
        """``excludes``: whether a rule keeps somebody out; ``on_unread`` is told of what cannot be read."""
        self._answers = answers
        self._excludes = excludes
        self._veil = veil
        self._on_unread = on_unread
        self._heard: OrderedDict[int, None] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, interaction: discord.Interaction) -> None:
        """Take an interaction; one that was told before is left alone."""
        if interaction.id in self._heard:
            return
        self._heard[interaction.id] = None
        if len(self._heard) > MOST_HEARD:
            self._heard.popitem(last=False)
        task = asyncio.create_task(self._answer(interaction), name=f"interaction {interaction.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settle(self) -> None:
        """Wait until all that was taken is recorded and answered."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _answer(self, interaction: discord.Interaction) -> None:
        try:
            await self._press(interaction)
        except Exception as error:  # noqa: BLE001 - whatever it trips over, whoever pressed gets an answer
            self._on_unread("INTERACTION_CREATE", error)
            await prompts.Presser(interaction).refused(UNREADABLE, waited=False)

    async def _press(self, interaction: discord.Interaction) -> None:
        """Whatever was used is answered, ours or not."""
        presser = prompts.Presser(interaction)
        what, place = prompts.control_of(interaction), prompts.place_of(interaction)
        if what is None or place is None:
            await presser.refused(NOTHING_KNOWN, waited=False)
            return
        by, visit = prompts.person_of(interaction, self._veil), convert.visit_of_press(interaction)
        if by is not None and not self._answers.is_admin(by) and self._excludes(visit):
            await presser.refused(NOT_ALLOWED_HERE, waited=False)
        elif prompts.opens_form(interaction, what):
            why = await self._answers.check(what, by, place)
            if why is None:
                await presser.fill_in(prompts.form_of(what, self._answers.title(what)))
            else:
                await presser.refused(why, waited=False)
        else:
            await self._answers.press(what, prompts.given(interaction, what, self._veil), by, place, presser)
