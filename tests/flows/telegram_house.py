"""A loopback Telegram, the adapter on it, and the log of a house behind it."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bots.sandbox.telegram import Chat, TelegramSandbox
from bots.telegram.inbound import Inbound
from core.access import Admission, AllowRules
from core.archive.profiles import Profiles
from core.archive.titles import Titles
from core.chat import port
from core.confirmations.folder import Folder
from core.entries import Attachment, CustomMessage, MessageCreated, MessageDeleted
from core.health import Health
from core.ids import Platform, SessionId, UserId, telegram_session
from core.pairing.bell import Bell
from core.pairing.book import Book
from core.pairing.reception import Reception
from core.runtime.port import Runtime
from tests.conftest import House
from tests.flows.asked import Asked

Fact = MessageCreated | MessageDeleted | Attachment


def session_of(chat: Chat) -> SessionId:
    return telegram_session(chat.id, None if chat.business is None else chat.business.id)


@dataclass(frozen=True)
class Door:
    """The adapter as it runs; ``task`` ends with what ended it."""

    inbound: Inbound
    health: Health
    house: House
    task: asyncio.Task[None]
    asked: Asked
    book: Book
    profiles: Profiles

    def facts(self, chat: Chat) -> list[Fact]:
        """What the log of a chat holds."""
        session = session_of(chat)
        if not self.house.sessions.exists(session):
            return []
        facts: list[Fact] = []
        for recorded in self.house.sessions.of(session).read():
            match recorded.entry.data:
                case CustomMessage(data=MessageCreated() | MessageDeleted() | Attachment() as fact):
                    facts.append(fact)
                case _:
                    pass
        return facts

    def created(self, chat: Chat) -> list[MessageCreated]:
        return [fact for fact in self.facts(chat) if isinstance(fact, MessageCreated)]

    def texts(self, chat: Chat) -> list[str]:
        return [fact.content for fact in self.created(chat)]

    def chat(self, chat: Chat) -> port.Chat:
        found = self.inbound.chat(session_of(chat))
        assert found is not None
        return found


@asynccontextmanager
async def door_on(
    sandbox: TelegramSandbox,
    house: House,
    *,
    allow: str = "*",
    token: str | None = None,
    api_url: str | None = None,
    poll_seconds: int = 5,
    patience: float = 30.0,
    ready: bool = True,
    runtime: Runtime | None = None,
    admins: Sequence[int] = (),
    folder: Folder | None = None,
) -> AsyncGenerator[Door]:
    """Run the adapter against the stand-in; stop it in order in the end."""
    health = Health("telegram")
    inbound: Inbound | None = None
    who = [("telegram", str(admin)) for admin in admins]
    asked = await Asked.over(
        house, lambda session: inbound and inbound.chat(session), runtime=runtime, admins=who, folder=folder
    )
    book, profiles = await Book.load(house.store), Profiles(house.store)
    titles = Titles(profiles)
    asked.lineage.listen(book.move)

    async def direct(_platform: Platform, user: UserId) -> port.Chat:
        assert inbound is not None
        return await inbound.direct(user)

    bell = Bell(book, lambda session: inbound and inbound.chat(session), direct, who)
    inbound = Inbound(
        token or sandbox.token,
        api_url=api_url or sandbox.api_url,
        reception=Reception(Admission(AllowRules.parse(allow), book.paired_on("telegram")), bell, titles),
        sessions=house.sessions,
        health=health,
        store=house.store,
        answers=asked.answers,
        lineage=asked.lineage,
        poll_seconds=poll_seconds,
        patience=patience,
    )
    task = asyncio.create_task(inbound.run(), name="telegram")
    try:
        async with asked.at_work():
            if ready:
                async with asyncio.timeout(10):
                    while not health.ready:  # noqa: ASYNC110 - a plain value
                        await asyncio.sleep(0.005)
            yield Door(inbound, health, house, task, asked, book, profiles)
    finally:
        async with asyncio.timeout(8):
            await inbound.stop()
            await bell.stop()
            await titles.close()
            await asyncio.gather(task, return_exceptions=True)
