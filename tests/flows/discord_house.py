"""A loopback Discord, the adapter on it, and the log of a house behind it."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bots.discord.inbound import USUAL_LIMITS, Inbound, Limits
from bots.sandbox.discord import DiscordSandbox
from bots.sandbox.discord.model import Channel
from core.access import Admission, AllowRules
from core.archive.horizon import Heard, Horizon
from core.archive.profiles import Profiles
from core.archive.titles import Titles
from core.chat import port
from core.chat.port import Chat
from core.confirmations.folder import Folder
from core.entries import Attachment, CustomMessage, MessageCreated, MessageDeleted
from core.health import Health
from core.ids import Platform, SessionId, UserId, discord_session
from core.pairing.bell import Bell
from core.pairing.book import Book
from core.pairing.reception import Reception
from core.runtime.port import Runtime
from core.sessions.directory import Sessions
from tests.conftest import House
from tests.flows.asked import Asked

Fact = MessageCreated | MessageDeleted | Attachment


class Watched(Horizon):
    """Tells when everything that was missed has been asked for."""

    def __init__(self, house: House) -> None:
        super().__init__(house.store, "discord")
        self.complete = asyncio.Event()

    async def put(self, heard: Heard) -> None:
        await super().put(heard)
        if heard.complete:
            self.complete.set()


@dataclass(frozen=True)
class Door:
    """The adapter as it runs; ``task`` ends with what ended it."""

    inbound: Inbound
    health: Health
    sessions: Sessions
    task: asyncio.Task[None]
    asked: Asked
    book: Book
    profiles: Profiles
    horizon: Watched

    async def caught_up(self) -> None:
        async with asyncio.timeout(20):
            await self.horizon.complete.wait()

    def facts(self, channel: Channel) -> list[Fact]:
        """What the log of a channel holds."""
        return self.facts_of(discord_session(channel.id))

    def facts_of(self, session: SessionId) -> list[Fact]:
        if not self.sessions.exists(session):
            return []
        facts: list[Fact] = []
        for recorded in self.sessions.of(session).read():
            match recorded.entry.data:
                case CustomMessage(data=MessageCreated() | MessageDeleted() | Attachment() as fact):
                    facts.append(fact)
                case _:
                    pass
        return facts

    def created(self, channel: Channel) -> list[MessageCreated]:
        return [fact for fact in self.facts(channel) if isinstance(fact, MessageCreated)]

    def deleted(self, channel: Channel) -> list[MessageDeleted]:
        return [fact for fact in self.facts(channel) if isinstance(fact, MessageDeleted)]

    def texts(self, channel: Channel) -> list[str]:
        return [fact.content for fact in self.created(channel)]

    def chat(self, channel: Channel) -> Chat:
        chat = self.inbound.chat(discord_session(channel.id))
        assert chat is not None
        return chat


@asynccontextmanager
async def door_on(
    sandbox: DiscordSandbox,
    house: House,
    *,
    allow: str = "*",
    token: str | None = None,
    limits: Limits = USUAL_LIMITS,
    ready: bool = True,
    runtime: Runtime | None = None,
    admins: Sequence[str] = (),
    folder: Folder | None = None,
) -> AsyncGenerator[Door]:
    """Run the adapter against the stand-in; stop it in order in the end, or cut it off where the disk refuses."""
    health = Health("discord")
    inbound: Inbound | None = None
    who = [("discord", admin) for admin in admins]
    asked = await Asked.over(
        house, lambda session: inbound and inbound.chat(session), runtime=runtime, admins=who, folder=folder
    )
    horizon = Watched(house)
    book, profiles = await Book.load(house.store), Profiles(house.store)
    titles = Titles(profiles)
    asked.lineage.listen(book.move)

    async def direct(_platform: Platform, user: UserId) -> port.Chat:
        assert inbound is not None
        return await inbound.direct(user)

    bell = Bell(book, lambda session: inbound and inbound.chat(session), direct, who)
    inbound = Inbound(
        token or sandbox.token,
        api_url=sandbox.api_url,
        gateway_url=sandbox.gateway_url,
        cdn_hosts=(sandbox.cdn_host,),
        reception=Reception(Admission(AllowRules.parse(allow), book.paired_on("discord")), bell, titles),
        sessions=house.sessions,
        health=health,
        horizon=horizon,
        answers=asked.answers,
        limits=limits,
    )
    task = asyncio.create_task(inbound.run(), name="discord")
    try:
        async with asked.at_work():
            if ready:
                await sandbox.connected()
            yield Door(inbound, health, house.sessions, task, asked, book, profiles, horizon)
    finally:
        async with asyncio.timeout(8):
            await inbound.stop()
            await bell.stop()
            await titles.close()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
