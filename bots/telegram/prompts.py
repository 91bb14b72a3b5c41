"""Prompts on Telegram: inline keyboards and replies, and what comes back (InlineKeyboardMarkup, CallbackQuery).

Nothing of a prompt is kept in memory: what a button says names the task, so it works after a restart.
"""

from collections.abc import Callable, Coroutine
from typing import Any, Final

import structlog
import telegram
from telegram.error import TelegramError

from bots.telegram.media import session_of
from bots.telegram.people import NOT_PEOPLE, name_of
from bots.telegram.veil import Veil
from core.chat.prompt import Prompt
from core.confirmations.life import Given
from core.confirmations.record import Person
from core.ids import Control, MessageId, SessionId, telegram_session

DONE: Final = "done"
_TICKED: Final = {True: "✅", False: "⬜"}
_BEING_RECORDED: Final = "It is being recorded; the message will show it."
MOST_ANSWER: Final = 200
"""Characters of what a callback is answered with (answerCallbackQuery)."""

Spawn = Callable[[Coroutine[Any, Any, None], str], object]

logger = structlog.get_logger()


def markup_of(prompt: Prompt) -> telegram.InlineKeyboardMarkup | telegram.ForceReply | None:
    """What a prompt is answered by; None when it is over."""
    if prompt.outcome:
        return None
    if prompt.answering == "text":
        return telegram.ForceReply(selective=True, input_field_placeholder="Your answer")
    labels = list(prompt.labels)
    if prompt.answering == "several":
        labels = [f"{_TICKED[number in prompt.ticked]} {label}" for number, label in enumerate(labels)]
    rows = [[_button(label, prompt.control(number))] for number, label in enumerate(labels)]
    if prompt.answering == "several":
        rows.append([_button("Done", prompt.control(DONE))])
    return telegram.InlineKeyboardMarkup(rows)


def given(query: telegram.CallbackQuery, what: Control) -> Given:
    """The answer that came with a press."""
    message = query.message
    pressed = MessageId(str(message.message_id)) if message is not None else None
    option = int(what.option) if what.option.isdecimal() else None
    return Given(question=what.question, option=option, done=what.option == DONE, pressed=pressed)


def person_of(who: telegram.User | None, veil: Veil) -> Person | None:
    """Who did it; None where it was no person, or nobody can tell who."""
    if who is None or who.is_bot or who.id in NOT_PEOPLE:
        return None
    return Person(platform="telegram", id=str(who.id), name=veil.over(name_of(who)) or None)


def place_of(query: telegram.CallbackQuery) -> SessionId | None:
    """The chat in which a button was pressed; of a message that is too old to be shown only its chat is told."""
    match query.message:
        case telegram.Message() as message:
            return session_of(message)
        case telegram.InaccessibleMessage() as message:
            return telegram_session(message.chat.id)
        case _:
            return None


class Presser:
    """Whoever pressed: one answer, which only they see. A failure is no matter, as the decision stands."""

    def __init__(self, query: telegram.CallbackQuery, spawn: Spawn) -> None:
        """``spawn`` starts a task that somebody owns: the answer holds up nothing."""
        self._query = query
        self._spawn = spawn

    async def accepted(self) -> None:
        self._answer(None)

    async def waiting(self) -> None:
        self._answer(_BEING_RECORDED)

    async def refused(self, why: str, *, waited: bool) -> None:
        if not waited:  # Telegram takes one answer
            self._answer(why)

    def _answer(self, text: str | None) -> None:
        self._spawn(self._send(text), f"callback {self._query.id}")

    async def _send(self, text: str | None) -> None:
        try:
            words = text[:MOST_ANSWER] if text is not None else None
            await self._query.get_bot().answer_callback_query(self._query.id, words, show_alert=text is not None)
        except (TimeoutError, TelegramError) as error:
            logger.info("callback_not_answered", error=type(error).__name__)


def _button(label: str, says: str) -> telegram.InlineKeyboardButton:
    return telegram.InlineKeyboardButton(label, callback_data=says)
