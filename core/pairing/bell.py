"""Answers who knocks: with a code in the chat, and a word to those who may use it.

None of it is a session's speech, as there is no session, so it stands in no log. It is said once: what a crash or a
refusal keeps from being said is listed by ``ishiki pair``.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine
from typing import Any, Final

import structlog

from core.chat.port import Chat, Chats
from core.content import Element, Node, render
from core.errors import ChatRefused, ChatUnavailable, StoreUnavailable
from core.ids import MessageId, Platform, SessionId, ThreadId, UserId
from core.pairing.book import Book
from core.pairing.codes import Knock, OpenCode

ATTEMPTS: Final = 3
LONGEST_PAUSE: Final = 60.0
WELCOME: Final = "You are let in."

Direct = Callable[[Platform, UserId], Awaitable[Chat]]
"""The direct chat with a person. Raises `ChatUnavailable` and `ChatRefused`."""

logger = structlog.get_logger()


class Bell:
    """One task for each code that is being told; there are never more than the codes that may be open."""

    def __init__(self, book: Book, chats: Chats, direct: Direct, admins: Collection[tuple[str, str]]) -> None:
        """``admins`` are platforms and user ids: those of the platform are told who asks."""
        self._book = book
        self._chats = chats
        self._direct = direct
        self._admins = admins
        self._tasks: set[asyncio.Task[None]] = set()
        book.listen(self._welcome)

    def is_due(self, platform: Platform, session: SessionId) -> bool:
        """Whether a knock there would be answered; asked before anybody looks who it is."""
        return self._book.has_room(platform, session)

    def asks(self, session: SessionId) -> bool:
        """Whether a code is open for that chat."""
        return self._book.asks(session)

    def ring(self, knock: Knock) -> None:
        """Somebody knocks. Returns at once, and never raises."""
        code = self._book.offer(knock)
        if code is not None:
            self._spawn(self._answer(knock, code), f"pairing {code.session}")

    async def stop(self) -> None:
        """End what is being said; the codes stay open."""
        running = list(self._tasks)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _welcome(self, code: OpenCode) -> None:
        logger.info("chat_paired", session=code.session)
        self._spawn(self._say(code.session, [WELCOME], nonce=f"welcome:{code.code}"), f"welcome {code.session}")

    async def _answer(self, knock: Knock, code: OpenCode) -> None:
        try:
            await self._book.keep(code)
        except StoreUnavailable as error:
            logger.warning("pairing_not_kept", session=code.session, reason=str(error))
            return
        logger.info("pairing_asked", session=code.session, cure="`ishiki pair` lists who asks, and admits")
        await self._say(code.session, _to_the_chat(code), quote=knock.message, thread=knock.thread, nonce=code.code)
        for platform, user in self._admins:
            if platform == knock.platform and user != knock.user:
                await self._tell(knock.platform, UserId(user), code)

    async def _say(
        self,
        session: SessionId,
        words: list[Node],
        *,
        nonce: str,
        quote: MessageId | None = None,
        thread: ThreadId | None = None,
    ) -> None:
        async def say() -> None:
            chat = self._chats(session)
            if chat is not None:
                await _send(chat, words, quote, thread, nonce)

        await self._insist(say, session, "pairing_not_said")

    async def _tell(self, platform: Platform, user: UserId, code: OpenCode) -> None:
        async def tell() -> None:
            chat = await self._direct(platform, user)
            await _send(chat, _to_an_admin(code), None, None, f"{code.code}:{user}")

        await self._insist(tell, code.session, "admin_not_told")

    async def _insist(self, act: Callable[[], Awaitable[None]], session: SessionId, failure: str) -> None:
        pause = 1.0
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await act()
            except ChatRefused as error:
                return logger.warning(failure, session=session, reason=str(error))
            except ChatUnavailable as error:
                if attempt == ATTEMPTS:
                    return logger.warning(failure, session=session, reason=str(error))
                await asyncio.sleep(min(error.retry_after if error.retry_after is not None else pause, LONGEST_PAUSE))
                pause *= 2
            except Exception as error:  # noqa: BLE001 - whatever it trips over, the code is listed all the same
                return logger.warning(failure, session=session, error=type(error).__name__)
        return None

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _send(
    chat: Chat, words: list[Node], quote: MessageId | None, thread: ThreadId | None, nonce: str
) -> None:  # fmt: skip
    for part in chat.compose(render(words), "element"):
        await chat.send(part, (), quote=quote, thread=thread, nonce=nonce)


def _to_the_chat(code: OpenCode) -> list[Node]:
    command = Element("code", {}, (f"ishiki pair {code.code}",))
    return ["I am not set up for this chat yet. Whoever runs me can let it in within an hour, with ", command, "."]


def _to_an_admin(code: OpenCode) -> list[Node]:
    who = f"{code.user_name or 'Somebody'} ({code.user})"
    place = "a direct chat" if code.title in {"", code.user_name} else code.title
    command = Element("code", {}, (f"ishiki pair {code.code}",))
    return [f"{who} asks to let in {place} ({code.session}). This does it, within an hour: ", command]
