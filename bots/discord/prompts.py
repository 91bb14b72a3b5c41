"""Prompts on Discord: buttons, menus and forms, and what comes back when one is used (Components; Interactions).

Nothing of a prompt is kept in memory: what a control says names the task, so it works after a restart.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

import aiohttp
import discord
import structlog

from bots.discord.people import name_of
from bots.discord.veil import Veil
from core.chat.prompt import Prompt
from core.confirmations.life import Given
from core.confirmations.record import Person
from core.ids import Control, MessageId, SessionId, control, discord_session

MENU: Final = "m"
FORM: Final = "f"
"""The options that stand for a menu, whose choices come with it, and for the form that a button opens or sends."""
MOST_TITLE: Final = 45
MOST_ANSWER: Final = 4000
_FAILURES: Final = (discord.DiscordException, OSError, aiohttp.ClientError, TimeoutError, RuntimeError)

logger = structlog.get_logger()


def view_of(prompt: Prompt) -> discord.ui.View | None:
    """What a prompt is answered by; None when it is over.

    It is finished before it is sent, or the library would keep it in memory and wait for presses itself.
    """
    if prompt.outcome:
        return None
    view = discord.ui.View(timeout=None)
    match prompt.answering:
        case "buttons":
            for number, label in enumerate(prompt.labels):
                style = discord.ButtonStyle.success if number == 0 else discord.ButtonStyle.secondary
                view.add_item(discord.ui.Button(label=label, style=style, custom_id=prompt.control(number)))
        case "one" | "several":
            most = len(prompt.options) if prompt.answering == "several" else 1
            options = [
                discord.SelectOption(label=label, value=str(number)) for number, label in enumerate(prompt.labels)
            ]
            view.add_item(
                discord.ui.Select(custom_id=prompt.control(MENU), min_values=1, max_values=most, options=options)
            )
        case "text":
            style = discord.ButtonStyle.primary
            view.add_item(discord.ui.Button(label="Answer", style=style, custom_id=prompt.control(FORM)))
    view.stop()
    return view


def form_of(what: Control, title: str) -> discord.ui.Modal:
    """The form for an answer in one's own words."""
    form = discord.ui.Modal(title=" ".join(title.split())[:MOST_TITLE] or "Answer", custom_id=str(what))
    field = discord.ui.TextInput[discord.ui.View](
        label="Your answer", style=discord.TextStyle.paragraph, max_length=MOST_ANSWER, custom_id="answer"
    )
    form.add_item(field)
    form.stop()
    return form


def control_of(interaction: discord.Interaction) -> Control | None:
    """Which of our controls was used; None for anything else."""
    if interaction.type not in {discord.InteractionType.component, discord.InteractionType.modal_submit}:
        return None
    return control(str(_data(interaction).get("custom_id", "")))


def opens_form(interaction: discord.Interaction, what: Control) -> bool:
    """Whether a press asks for the form, which then brings the answer."""
    return what.option == FORM and interaction.type is discord.InteractionType.component


def given(interaction: discord.Interaction, what: Control, veil: Veil) -> Given:
    """The answer that came with it."""
    message = interaction.message
    pressed = MessageId(str(message.id)) if message is not None else None
    if what.option == FORM:
        return Given(question=what.question, text=veil.over(_typed(_data(interaction))), pressed=pressed)
    if what.option == MENU:
        values = tuple(int(value) for value in _data(interaction).get("values", ()) if str(value).isdecimal())
        return Given(question=what.question, options=values, pressed=pressed)
    option = int(what.option) if what.option.isdecimal() else None
    return Given(question=what.question, option=option, pressed=pressed)


def person_of(interaction: discord.Interaction, veil: Veil) -> Person | None:
    """Who did it; None where it was no person."""
    who = cast("object", interaction.user)  # the library leaves a mark of its own where nobody is named
    if not isinstance(who, discord.User | discord.Member) or who.bot or who.system:
        return None
    return Person(platform="discord", id=str(who.id), name=veil.over(name_of(who)) or None)


def place_of(interaction: discord.Interaction) -> SessionId | None:
    """The chat in which it was done."""
    return None if interaction.channel_id is None else discord_session(interaction.channel_id)


class Presser:
    """Whoever used a control: one answer, which only they see. A failure is no matter, as the decision stands."""

    def __init__(self, interaction: discord.Interaction) -> None:
        self._interaction = interaction

    async def accepted(self) -> None:
        try:
            await self._interaction.response.defer()
        except _FAILURES as error:
            _unanswered(error)

    async def waiting(self) -> None:
        await self.accepted()

    async def refused(self, why: str, *, waited: bool) -> None:
        try:
            if waited:
                await self._interaction.followup.send(why, ephemeral=True)
            else:
                await self._interaction.response.send_message(why, ephemeral=True)
        except _FAILURES as error:
            _unanswered(error)

    async def fill_in(self, form: discord.ui.Modal) -> None:
        """Open a form."""
        try:
            await self._interaction.response.send_modal(form)
        except _FAILURES as error:
            _unanswered(error)


def _data(interaction: discord.Interaction) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", interaction.data or {})


def _typed(part: Mapping[str, Any]) -> str:
    """The text in a form as it was sent: the first field that has one, in rows or labels."""
    if isinstance(part.get("value"), str):
        return str(part["value"])
    inner = [*(part.get("components") or ()), part.get("component")]
    return next((text for piece in inner if isinstance(piece, dict) and (text := _typed(piece))), "")  # pyright: ignore[reportUnknownArgumentType] - JSON from outside


def _unanswered(error: Exception) -> None:
    logger.info("interaction_not_answered", error=type(error).__name__)
