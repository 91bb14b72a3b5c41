"""The composition root: the only file that builds things and ties them together.

What is not configured is not imported: the client libraries are most of what a start costs.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import httpx
import structlog
from pydantic import SecretStr
from starlette.types import ASGIApp

import bots.discord.veil as discord_veil
import bots.telegram.veil as telegram_veil
from bots.commands import Hands
from bots.control import ControlServer, control_path
from bots.settings import Settings
from bots.web.front import Front
from bots.web.guard import Access
from bots.web.server import WebServer
from core.access import Admission
from core.archive.archive import Archive
from core.archive.decisions import Decisions
from core.archive.forget import forget
from core.archive.horizon import Horizon
from core.archive.lineage import Lineage
from core.archive.live import Live
from core.archive.profiles import Profiles
from core.archive.store import Store
from core.archive.titles import Titles
from core.chat.port import Chat, Chats
from core.chat.speak import Speaker
from core.confirmations.asking import NAMESPACE as CONFIRMATIONS
from core.confirmations.asking import Asking, Causes, NoCauses
from core.confirmations.desk import Desk
from core.confirmations.folder import Folder
from core.confirmations.leave import Leave
from core.confirmations.press import Answers
from core.confirmations.showing import Showing
from core.gateway import Follower, Gateway
from core.health import Health, Troubles
from core.ids import Platform, SessionId, UserId, platform_of
from core.log.journal import Journal
from core.pairing.bell import Bell
from core.pairing.book import Book
from core.pairing.reception import Reception
from core.resources.fetch import Fetch
from core.resources.store import Resources
from core.runtime.deliver import Deliver
from core.runtime.redeliver import Redeliver
from core.runtime.resolve import Resolve
from core.runtime.turns import Turns
from core.sessions.directory import FolderLock, Sessions
from core.sessions.lifecycle import Reaper
from core.sessions.removal import Removal
from core.trust import trusted

logger = structlog.get_logger()


class Door(Protocol):
    """A chat platform: what `bots.discord` and `bots.telegram` have in common for this file."""

    async def run(self) -> None:
        """Take in what happens, until `stop`. Raises `TokenRefused`."""
        ...

    async def stop(self) -> None:
        """Take nothing more in, and finish what is in hand."""
        ...

    async def caught_up(self, session: SessionId) -> bool:
        """Return when it is known what a chat told while nobody listened; whether there was a wait."""
        ...

    def chat(self, session: SessionId) -> Chat | None: ...

    async def direct(self, user: UserId) -> Chat:
        """The direct chat with a person. Raises `ChatUnavailable` and `ChatRefused`."""
        ...


@dataclass(frozen=True, slots=True)
class App:
    """What runs over one data folder, as far as anybody asks."""

    sessions: Sessions
    gateway: Gateway
    doors: dict[Platform, Door]
    web: WebServer
    preparing: asyncio.Task[None]
    """Ends only with what keeps the API from being built."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What is on disk, taken and open."""

    journal: Journal
    store: Store
    sessions: Sessions
    resources: Resources
    lineage: Lineage
    decisions: Decisions
    book: Book
    titles: Titles
    live: Live


@asynccontextmanager
async def assemble(settings: Settings) -> AsyncGenerator[App]:
    """Take the data folder and build everything; on the way out stop it all in order, and leave the folder whole.

    Raises `FolderHeld`, `FolderUnusable`, and `AddressTaken` where our HTTP API cannot listen.
    """
    async with AsyncExitStack() as stack:
        trust = asyncio.create_task(asyncio.to_thread(trusted), name="trust")
        stack.push_async_callback(asyncio.gather, trust, return_exceptions=True)  # though nobody may come to ask for it
        kept = await stack.enter_async_context(_kept(settings))
        store, sessions, resources, lineage = kept.store, kept.sessions, kept.resources, kept.lineage
        desk = _desk(settings, kept)
        doors: dict[Platform, tuple[Door, Health]] = {}

        def chats(session: SessionId) -> Chat | None:
            platform = platform_of(session)
            return doors[platform][0].chat(session) if platform in doors else None

        async def caught_up(session: SessionId) -> bool:
            platform = platform_of(session)
            return platform in doors and await doors[platform][0].caught_up(session)

        veil = _veils(settings)[0].over
        showing = Showing(desk, chats, resources.upload, lineage.succeed)
        bell = await stack.enter_async_context(_bell(settings, kept.book, chats, doors))
        doors |= _doors(settings, kept, Answers(desk, showing), bell)
        speaker = Speaker(
            sessions, chats, store, resources.upload, veil, current=lineage.current, moved=lineage.succeed
        )
        # Turns finish the replies that were cut off; without them it is only written down what stands in the chat.
        sessions.settle_cut_off_turns(partial(speaker.owed, unfinished=settings.ishiki_runtime_url is None))
        health = [kept.journal.health, *(state for _, state in doors.values())]
        # Whatever the environment says of proxies is for other programs: this talks to hosts that we were told.
        files = await stack.enter_async_context(httpx.AsyncClient(trust_env=False, verify=await trust))
        fetch = Fetch(resources, files, chats, store, most=settings.ishiki_asset_max_bytes)
        sessions.listen(fetch.drop_retracted)
        followers: list[Follower] = [fetch]
        runtime, turns, redeliver = None, None, None
        if settings.ishiki_runtime_url is not None:
            from core.runtime.http import HttpRuntime, client

            runtime = HttpRuntime(
                await stack.enter_async_context(client()),
                settings.ishiki_runtime_url,
                _secret(settings.ishiki_runtime_token),
            )
            health.append(taken := Health("runtime", problem=None))
            deliver = Deliver(runtime, store, store, taken)
            redeliver = Redeliver(runtime, sessions, store)
            stack.push_async_callback(redeliver.stop)
            rules = settings.wake_rules
            turns = Turns(
                runtime, deliver, speaker, store, rules, veil=veil, is_answer=desk.is_answer, caught_up=caught_up,
                live=kept.live,
            )  # fmt: skip
            desk.stop_turn = turns.stop
            followers += [deliver, turns]

        asking = _asking(settings, desk, kept, turns or NoCauses())
        gateway = Gateway(sessions, followers, store)
        removal = await _removal(settings, kept, gateway, desk, turns)
        await stack.enter_async_context(desk.at_work(await asyncio.to_thread(lambda: list(sessions.ids()))))
        sessions.listen(desk.on_append)
        await asking.take_up()
        health.append(told := Health("decisions", problem=None))
        for worker in (showing, Resolve(desk, runtime, Troubles(told))):
            worker.start()
            stack.push_async_callback(worker.stop)
        archive = Archive(store, sessions)
        stack.push_async_callback(archive.stop)
        await archive.start()
        await stack.enter_async_context(_tended(gateway, kept, removal, desk))
        await stack.enter_async_context(
            _commanded(settings, Hands(desk, kept.decisions, kept.book, sessions, redeliver))
        )

        def api(access: Access) -> ASGIApp:
            from bots.web.app import build_app

            return build_app(
                sessions=sessions,
                resources=resources,
                speaker=speaker,
                store=store,
                health=health,
                data=settings.ishiki_data_dir,
                desk=desk,
                asking=asking,
                lineage=lineage,
                turns=turns,
                access=access,
            )

        web, preparing = await stack.enter_async_context(_served(settings, health, api))
        yield App(sessions, gateway, {name: door for name, (door, _) in doors.items()}, web, preparing)


@asynccontextmanager
async def _kept(settings: Settings) -> AsyncGenerator[Kept]:
    """Take the data folder; on the way out leave it whole."""
    folder = settings.ishiki_data_dir
    async with AsyncExitStack() as stack:
        lock = await asyncio.to_thread(FolderLock, folder)
        stack.callback(lock.release)
        journal = Journal(folder)
        await asyncio.to_thread(journal.start)
        stack.push_async_callback(asyncio.to_thread, journal.stop)
        store = await asyncio.to_thread(Store.open, folder / ".store" / "history.db")
        stack.push_async_callback(store.close)
        live = Live(store)
        stack.push_async_callback(asyncio.to_thread, live.stop)
        await live.start()
        sessions = Sessions(folder, journal)
        stack.push_async_callback(sessions.close)
        lineage = await Lineage.load(store)
        book = await Book.load(store)
        lineage.listen(book.move)
        titles = Titles(Profiles(store), _veils(settings)[0].over)
        stack.push_async_callback(titles.close)
        resources, decisions = Resources(folder / "runtimes"), Decisions(store)
        yield Kept(journal, store, sessions, resources, lineage, decisions, book, titles, live)


@asynccontextmanager
async def _bell(
    settings: Settings, book: Book, chats: Chats, doors: Mapping[Platform, tuple[Door, Health]]
) -> AsyncGenerator[Bell]:
    """Who tells codes to chats that are not let in, and to admins."""

    async def direct(platform: Platform, user: UserId) -> Chat:
        return await doors[platform][0].direct(user)

    bell = Bell(book, chats, direct, settings.ishiki_admins)
    try:
        yield bell
    finally:
        await bell.stop()


@asynccontextmanager
async def _commanded(settings: Settings, hands: Hands) -> AsyncGenerator[None]:
    """Commands of the terminal are taken."""
    control = ControlServer(control_path(settings.ishiki_data_dir), hands)
    try:
        await control.start()
        yield
    finally:
        await control.stop()


async def _removal(settings: Settings, kept: Kept, gateway: Gateway, desk: Desk, turns: Turns | None) -> Removal:
    """Who removes sessions, after what a kill cut short of it is finished."""
    leave = [desk.leave] if turns is None else [desk.leave, turns.leave]
    removal = Removal(settings.ishiki_data_dir, kept.sessions, gateway, leave, partial(forget, kept.store))
    await removal.finish()
    return removal


@asynccontextmanager
async def _tended(gateway: Gateway, kept: Kept, removal: Removal, desk: Desk) -> AsyncGenerator[None]:
    """As long as this is open the logs are followed, and idle ``temp-`` sessions go."""
    reaping = asyncio.create_task(Reaper(kept.sessions, removal, kept.live.active, desk.concerns).run(), name="reaper")
    try:
        await gateway.start()
        yield
    finally:
        reaping.cancel()
        await asyncio.gather(reaping, return_exceptions=True)
        await removal.stop()
        await gateway.stop()


@asynccontextmanager
async def _served(
    settings: Settings, health: Sequence[Health], build: Callable[[Access], ASGIApp]
) -> AsyncGenerator[tuple[WebServer, asyncio.Task[None]]]:
    """Our HTTP API, as ``build`` makes it, and who sees to it that it does. Raises `AddressTaken`."""
    access = Access(
        host=settings.ishiki_http_host,
        token=_secret(settings.ishiki_http_token),
        runtime_token=_secret(settings.ishiki_runtime_token),
        origins=settings.ishiki_http_origins,
    )
    front = Front(partial(build, access), health, settings.ishiki_data_dir, access)
    web = WebServer(front, settings.ishiki_http_host, settings.ishiki_http_port)
    await web.start()
    preparing = asyncio.create_task(front.prepare(), name="api soon")
    try:
        yield web, preparing
    finally:
        preparing.cancel()
        await web.stop()


def _desk(settings: Settings, kept: Kept) -> Desk:
    """What is asked and not yet filed."""
    admins = frozenset((admin.platform, admin.user) for admin in settings.ishiki_admins)
    leave = Leave(kept.decisions, admins=admins, earlier=kept.lineage.earlier)
    folder = Folder(kept.sessions.folder)
    desk = Desk(folder, kept.decisions, leave, admins=admins, current=kept.lineage.current)

    async def goes_on(old: SessionId, new: SessionId) -> None:
        if kept.sessions.exists(old):
            await kept.sessions.create(new)
        await desk.move(old, new)

    kept.lineage.listen(goes_on)
    return desk


def _asking(settings: Settings, desk: Desk, kept: Kept, causes: Causes) -> Asking:
    """The way from a request to the desk."""

    async def keep(session: SessionId, content: bytes) -> str:
        put = partial(kept.resources.put_artifact, session, CONFIRMATIONS, content, filename="request.json")
        return await asyncio.to_thread(put)

    return Asking(
        desk,
        kept.sessions,
        causes,
        keep,
        timeout=settings.ishiki_confirm_timeout,
        origin=kept.lineage.origin,
        current=kept.lineage.current,
        veil=_veils(settings)[0].over,
    )


def _doors(settings: Settings, kept: Kept, answers: Answers, bell: Bell) -> dict[Platform, tuple[Door, Health]]:
    """The platforms that have a token."""
    book, titles, sessions, store, lineage = kept.book, kept.titles, kept.sessions, kept.store, kept.lineage
    doors: dict[Platform, tuple[Door, Health]] = {}
    on_discord, on_telegram = _veils(settings)
    if settings.discord_token is not None:
        import bots.discord.inbound

        health = Health("discord")
        discord = bots.discord.inbound.Inbound(
            settings.discord_token.get_secret_value(),
            api_url=settings.discord_api_url,
            gateway_url=settings.discord_gateway_url,
            cdn_hosts=settings.discord_cdn_hosts,
            reception=Reception(Admission(settings.discord_allow, book.paired_on("discord")), bell, titles),
            sessions=sessions,
            health=health,
            horizon=Horizon(store, "discord"),
            limits=bots.discord.inbound.Limits(compared=settings.discord_catchup_messages),
            veil=on_discord,
            answers=answers,
        )
        doors["discord"] = (discord, health)
    if settings.telegram_token is not None:
        import bots.telegram.inbound

        health = Health("telegram")
        telegram = bots.telegram.inbound.Inbound(
            settings.telegram_token.get_secret_value(),
            api_url=settings.telegram_api_url,
            reception=Reception(Admission(settings.telegram_allow, book.paired_on("telegram")), bell, titles),
            sessions=sessions,
            health=health,
            store=store,
            veil=on_telegram,
            answers=answers,
            lineage=lineage,
        )
        doors["telegram"] = (telegram, health)
    return doors


def _veils(settings: Settings) -> tuple[discord_veil.Veil, telegram_veil.Veil]:
    """What hides links and tokens, of Discord's messages and of Telegram's: of both platforms in either."""
    hosts, token = settings.discord_cdn_hosts, _secret(settings.telegram_token)
    return (
        discord_veil.Veil(hosts, beside=telegram_veil.Veil(token).over),
        telegram_veil.Veil(token, beside=discord_veil.Veil(hosts).over),
    )


def _secret(value: SecretStr | None) -> str | None:
    return value.get_secret_value() if value is not None else None
