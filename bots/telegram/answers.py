"""What people answer on Telegram, with buttons and replies: each once, and each answered in time."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any, Final

import structlog
import telegram

from bots.telegram import convert, prompts
from bots.telegram.media import session_of
from bots.telegram.veil import Veil
from core.access import Visit
from core.confirmations.life import Given
from core.confirmations.press import NOT_ALLOWED_HERE, NOTHING_KNOWN, UNREADABLE, Answers
from core.errors import LogUnavailable
from core.ids import MessageId, control

MOST_HEARD: Final = 4096
"""Presses that are remembered: what only marks an option would be undone by a repeat."""

logger = structlog.get_logger()


class Presses:
    """Presses on their way to the desk, each with a task of its own, so that its answer holds up nothing."""

    def __init__(self, answers: Answers, excludes: Callable[[Visit], bool], veil: Veil, unread: Counter[str]) -> None:
        """``excludes``: whether a rule keeps somebody out; ``unread`` counts what cannot be read."""
        self._answers = answers
        self._excludes = excludes
        self._veil = veil
        self._unread = unread
        self._heard: OrderedDict[str, None] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, query: telegram.CallbackQuery) -> asyncio.Task[None] | None:
        """Take a press; the task ends when it is recorded or refused. None for one that was told before."""
        if query.id in self._heard:
            return None
        self._heard[query.id] = None
        if len(self._heard) > MOST_HEARD:
            self._heard.popitem(last=False)
        return self._spawn(self._answer(query), f"press {query.id}")

    async def reply(self, message: telegram.Message) -> None:
        """Take a message as the answer to a question, if it replies to the one that asks it, by who may answer.

        Raises `LogUnavailable`: nothing was decided, and the same may be handed in again.
        """
        quoted, place = message.reply_to_message, session_of(message)
        by = None if message.sender_chat is not None else prompts.person_of(message.from_user, self._veil)
        if by is None or quoted is None:
            return
        record = self._answers.awaits_reply(place, MessageId(str(quoted.message_id)), by)
        if record is None:
            return
        text = self._veil.over(message.text or "")
        what = Given(question=record.current, text=text, reply=MessageId(str(message.message_id)))
        try:
            await self._answers.reply(record, what, by, place)
        except OSError as error:
            raise LogUnavailable(f"an answer cannot be written ({error.strerror}); free the disk") from None
        except Exception as error:  # noqa: BLE001 - one answer that trips must not hold up what came after it
            self._unread["answer"] += 1
            logger.warning("telegram_answer_not_taken", error=type(error).__name__)

    async def settle(self) -> None:
        """Wait until all that was taken is recorded and answered."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _answer(self, query: telegram.CallbackQuery) -> None:
        try:
            await self._press(query)
        except Exception as error:  # noqa: BLE001 - whatever it trips over, whoever pressed gets an answer
            self._unread["callback_query"] += 1
            logger.warning("telegram_press_not_taken", error=type(error).__name__)
            await prompts.Presser(query, self._spawn).refused(UNREADABLE, waited=False)

    async def _press(self, query: telegram.CallbackQuery) -> None:
        """Whatever was pressed is answered, ours or not."""
        presser = prompts.Presser(query, self._spawn)
        what, place, visit = control(query.data or ""), prompts.place_of(query), convert.visit_of_press(query)
        if what is None or place is None or visit is None:
            await presser.refused(NOTHING_KNOWN, waited=False)
            return
        by = prompts.person_of(query.from_user, self._veil)
        if by is not None and not self._answers.is_admin(by) and self._excludes(visit):
            await presser.refused(NOT_ALLOWED_HERE, waited=False)
        else:
            await self._answers.press(what, prompts.given(query, what), by, place, presser)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
