"""Keeps each chat showing what is open there: one prompt at a time, in order, closed when it is over (sessions.md 4.1).

What stands in a chat is compared with what should, so the same few steps serve a new record, an answer, an expiry and a
restart. Each step leaves its mark in the file, and is repeated until it has.
"""

import asyncio
from collections.abc import Collection
from functools import partial
from typing import Final

import structlog

from core.chat.port import Chat, Chats, Upload
from core.chat.prompt import Prompt
from core.chat.speak import Moved, ReadUpload
from core.clock import now_ms
from core.confirmations import life
from core.confirmations.desk import Desk
from core.confirmations.record import Record, Shown, Trouble
from core.confirmations.words import closed_prompt, prompt_of
from core.errors import ChatMoved, ChatRefused, ChatUnavailable, ResourceError, StoreUnavailable, UnknownTask
from core.ids import MessageId, SessionId, TaskHash, channel_of, platform_of

LONGEST_PAUSE: Final = 60.0
GONE: Final = "NotFound"
"""The name of the refusal that says: that message is not there any more."""

logger = structlog.get_logger()


class Showing:
    """One task for each chat in which there is something to do; none for the others."""

    def __init__(self, desk: Desk, chats: Chats, upload: ReadUpload, moved: Moved) -> None:
        """``moved`` is told when a platform says that a chat goes on as another one."""
        self._desk = desk
        self._chats = chats
        self._upload = upload
        self._moved = moved
        self._tending: dict[SessionId, asyncio.Task[None]] = {}
        self._news: dict[SessionId, asyncio.Event] = {}
        self._displayed: dict[TaskHash, Prompt] = {}
        self._refused: set[tuple[TaskHash, SessionId]] = set()
        self._strays: set[asyncio.Task[None]] = set()
        self._stopped = False

    def start(self) -> None:
        """Take up what an earlier run left, and follow the desk from now on."""
        self._desk.listen(self._changed)
        for record in self._desk.records():
            self._changed(record)

    async def stop(self) -> None:
        """End where it stands; the files say where that is."""
        self._stopped = True
        running = [*self._tending.values(), *self._strays]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def close_stray(self, task: TaskHash, place: SessionId, message: MessageId) -> None:
        """Close, soon, a prompt that was pressed after the decision: one that a crash left behind unnoted."""
        closing = asyncio.create_task(self._close_stray(task, place, message), name=f"stray {task}")
        self._strays.add(closing)
        closing.add_done_callback(self._strays.discard)

    async def _close_stray(self, task: TaskHash, place: SessionId, message: MessageId) -> None:
        try:
            chat, record = self._chats(place), await self._desk.find(task)
            if chat is not None and not record.is_open:
                await chat.revise(message, closed_prompt(record), thread=record.thread_id)
        except (ChatRefused, ChatUnavailable, UnknownTask, StoreUnavailable) as error:
            logger.info("stray_prompt_stays", session=place, task=task, reason=type(error).__name__)

    def look_again(self, place: SessionId, messages: Collection[MessageId]) -> None:
        """Messages of a chat are gone; a prompt among them is posted again."""
        for record in self._desk.records(chat=place):
            if record.is_open and record.prompt is not None and not set(messages).isdisjoint(record.prompt.message_ids):
                self._displayed.pop(record.task_hash, None)
                self._changed(record)

    def _changed(self, record: Record) -> None:
        session = record.deliver_to
        if self._stopped or (platform_of(session) is None and record.is_open):
            return  # what is asked on the web or in the terminal is listed there
        self._news.setdefault(session, asyncio.Event()).set()
        if session not in self._tending:
            self._tending[session] = asyncio.create_task(self._tend(session), name=f"prompts {session}")

    async def _tend(self, session: SessionId) -> None:
        """Do what there is to do, and end when there is nothing."""
        news, pause = self._news[session], 1.0
        try:
            while news.is_set():
                news.clear()
                try:
                    await self._step(session)
                    pause = 1.0
                except ChatUnavailable as error:
                    seconds = pause if error.retry_after is None else error.retry_after
                    logger.warning("prompt_waits", session=session, reason=str(error), again_in=seconds)
                    await self._rest(news, seconds)
                    pause = min(pause * 2, LONGEST_PAUSE)
                except Exception as error:
                    logger.exception("prompts_failed", session=session, exc_info=error)
                    await self._rest(news, pause)
                    pause = min(pause * 2, LONGEST_PAUSE)
        finally:
            del self._tending[session], self._news[session]

    async def _rest(self, news: asyncio.Event, seconds: float) -> None:
        """A pause that nothing cuts short, as what is new would not make the platform answer sooner."""
        await asyncio.sleep(seconds)
        news.set()

    async def _step(self, session: SessionId) -> None:
        """Close what is over; then show the first of what is open. Raises `ChatUnavailable`."""
        trouble: ChatUnavailable | None = None
        for record in self._desk.records(chat=session):
            if not record.is_open and record.closed_at is None:
                try:
                    await self._close(session, record)
                except ChatUnavailable as error:
                    trouble = error  # which must not hold up those that wait
        if platform_of(session) is not None:
            await self._show_first(session)
        if trouble is not None:
            raise trouble

    async def _show_first(self, session: SessionId) -> None:
        for record in self._desk.records(chat=session):
            is_due = record.is_open and now_ms() < record.expires_at
            if is_due and (record.task_hash, session) not in self._refused and await self._show(session, record):
                return

    async def _close(self, session: SessionId, record: Record) -> None:
        await self._close_messages(session, record)
        self._displayed.pop(record.task_hash, None)
        self._refused.discard((record.task_hash, session))
        await self._desk.insist(record.task_hash, life.closed)

    async def _close_messages(self, session: SessionId, record: Record) -> None:
        chat = self._chats(session)
        if chat is None or record.prompt is None:
            return
        for message in record.prompt.message_ids:
            try:
                await chat.revise(message, closed_prompt(record), thread=record.thread_id)
            except ChatRefused as error:
                logger.info("prompt_not_closed", session=session, task=record.task_hash, reason=str(error))

    async def _show(self, session: SessionId, record: Record) -> bool:
        """Make the chat show it; whether it does, so that others wait."""
        chat = self._chats(session)
        if chat is None:
            await self._note_trouble(record, "the platform of this chat is not configured; set its token")
            return True
        wanted, shown = prompt_of(record), record.prompt
        if shown is not None and shown.question != wanted.question:
            if not shown.closed:
                await self._close_messages(session, record)
                await self._desk.insist(record.task_hash, life.question_closed)
        elif shown is not None and (
            self._displayed.get(record.task_hash) == wanted
            or await self._stands(chat, shown.message_ids[-1], wanted, record)
        ):
            self._displayed[record.task_hash] = wanted
            return True
        return await self._post(session, chat, wanted, record)

    async def _stands(self, chat: Chat, message: MessageId, wanted: Prompt, record: Record) -> bool:
        """Bring a prompt that was shown up to date; False where it is gone."""
        try:
            await chat.revise(message, wanted, thread=record.thread_id)
        except ChatMoved as error:
            await self._moved(record.deliver_to, SessionId(error.successor))
        except ChatRefused as error:
            return error.name != GONE
        return True

    async def _post(self, session: SessionId, chat: Chat, wanted: Prompt, record: Record) -> bool:
        before = record.prompt.posted_at if record.prompt is not None else 0
        try:
            message = await chat.ask(
                wanted,
                await self._files(record),
                quote=record.cause.message_id if record.cause is not None and session == record.origin else None,
                thread=record.thread_id,
                nonce=f"{record.task_hash}:{wanted.question}:{before}",
            )
        except ChatMoved as error:
            await self._moved(session, SessionId(error.successor))
            return True
        except ChatRefused as error:
            await self._note_trouble(record, str(error))
            if error.name == "UnknownOutcome":  # two prompts of one record do no harm, none does
                raise ChatUnavailable(str(error), name=error.name) from error
            self._refused.add((record.task_hash, session))
            return False
        shown = Shown(
            platform=platform_of(session) or "",
            channel_id=channel_of(session),
            thread_id=record.thread_id,
            message_ids=(message,),
            question=wanted.question,
            posted_at=now_ms(),
        )
        self._displayed[record.task_hash] = wanted
        self._desk.note_posted(record.task_hash, message, wanted.question)
        await self._desk.insist(record.task_hash, partial(life.shown_in, session=session, shown=shown))
        return True

    async def _files(self, record: Record) -> list[Upload]:
        """What was too long to be shown; once, with the first prompt."""
        if record.file is None or record.prompt is not None:
            return []
        try:
            return [await self._upload(record.session_id, record.file)]
        except ResourceError as error:
            logger.warning("prompt_without_file", task=record.task_hash, reason=str(error))
            return []

    async def _note_trouble(self, record: Record, message: str) -> None:
        if record.error is None or record.error.message != message:
            logger.warning("prompt_not_shown", session=record.deliver_to, task=record.task_hash, reason=message)
            trouble = Trouble(message=message, at=now_ms())
            await self._desk.insist(record.task_hash, partial(life.troubled, trouble=trouble))
