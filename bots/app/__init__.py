"""The composition root: the only place that builds things and ties them together.

Each file here builds one part of the house; `assemble` says in which order they stand, and ends them in the other.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

import httpx
from starlette.types import ASGIApp

from bots.app.agent import agent_of
from bots.app.asked import asking_of, desk_of
from bots.app.doors import Door, Doors
from bots.app.kept import Kept, kept_in
from bots.app.veils import secret, veils
from bots.commands import Hands
from bots.control import ControlServer, control_path
from bots.settings import Settings
from bots.web.front import Front
from bots.web.guard import Access
from bots.web.server import WebServer
from core.actionlog.follow import ActionLog
from core.archive.file_history import FileHistory
from core.archive.forget import forget
from core.archive.upkeep import Upkeep
from core.archive.watcher import Watcher
from core.chat.speak import Speaker
from core.confirmations.asking import NoCauses
from core.confirmations.desk import Desk
from core.confirmations.press import Answers
from core.confirmations.showing import Showing
from core.gateway import Follower, Gateway
from core.health import Health, Troubles
from core.ids import Platform
from core.pairing.bell import Bell
from core.resources.fetch import Fetch
from core.runtime.resolve import Resolve
from core.sessions.directory import Sessions
from core.sessions.lifecycle import Reaper
from core.sessions.removal import Removal
from core.trust import trusted


@dataclass(frozen=True, slots=True)
class App:
    """What runs over one data folder, as far as anybody asks."""

    sessions: Sessions
    gateway: Gateway
    doors: dict[Platform, Door]
    web: WebServer
    preparing: asyncio.Task[None]
    """Ends only with what keeps the API from being built."""


@asynccontextmanager
async def assemble(settings: Settings) -> AsyncGenerator[App]:
    """Take the data folder and build everything; on the way out stop it all in order, and leave the folder whole.

    Raises `FolderHeld`, `FolderUnusable`, and `AddressTaken` where our HTTP API cannot listen.
    """
    async with AsyncExitStack() as stack:
        trust = asyncio.create_task(asyncio.to_thread(trusted), name="trust")
        stack.push_async_callback(asyncio.gather, trust, return_exceptions=True)  # though nobody may come to ask for it
        hidden, doors = veils(settings), Doors()
        kept = await stack.enter_async_context(kept_in(settings.ishiki_data_dir, hidden.over))
        sessions, resources, lineage = kept.sessions, kept.resources, kept.lineage
        desk = desk_of(settings, kept)
        showing = Showing(desk, doors.chat, resources.upload, lineage.succeed)
        bell = Bell(kept.book, doors.chat, doors.direct, settings.ishiki_admins)
        stack.push_async_callback(bell.stop)
        doors.hang(settings, kept, hidden, Answers(desk, showing), bell)
        speaker = Speaker(
            sessions, doors.chat, kept.store, resources.upload, hidden.over,
            current=lineage.current, moved=lineage.succeed,
        )  # fmt: skip
        # Turns finish the replies that were cut off; without them it is only written down what stands in the chat.
        sessions.settle_cut_off_turns(partial(speaker.owed, unfinished=settings.ishiki_runtime_url is None))
        # Whatever the environment says of proxies is for other programs: this talks to hosts that we were told.
        files = await stack.enter_async_context(httpx.AsyncClient(trust_env=False, verify=await trust))
        fetch = Fetch(resources, files, doors.chat, kept.store, most=settings.ishiki_asset_max_bytes)
        sessions.listen(fetch.drop_retracted)
        agent = await stack.enter_async_context(agent_of(settings, kept, desk, doors, speaker, hidden.over))
        turns = agent.turns if agent is not None else None
        actions = ActionLog(sessions.folder, kept.store)
        followers: list[Follower] = [fetch, *(agent.followers if agent is not None else ()), actions]
        gateway = Gateway(sessions, followers, kept.store)
        leave = [desk.leave, actions.leave, *([turns.leave] if turns is not None else ()), kept.archive.leave]
        removal = Removal(kept.folder, sessions, gateway, leave, partial(forget, kept.store))
        await removal.finish()
        asking = asking_of(settings, kept, desk, turns or NoCauses(), hidden.over)
        await stack.enter_async_context(desk.at_work(await asyncio.to_thread(lambda: list(sessions.ids()))))
        sessions.listen(desk.on_append)
        await asking.take_up()
        told = Health("decisions", problem=None)
        for worker in (showing, Resolve(desk, agent.runtime if agent is not None else None, Troubles(told))):
            worker.start()
            stack.push_async_callback(worker.stop)
        await stack.enter_async_context(_tended(kept, gateway, removal, desk, actions))
        redeliver = agent.redeliver if agent is not None else None
        control = ControlServer(control_path(kept.folder), Hands(desk, kept.decisions, kept.book, sessions, redeliver))
        stack.push_async_callback(control.stop)
        await control.start()
        health = [kept.journal.health, *doors.health, *([agent.health] if agent is not None else ()), told]

        def api(access: Access) -> ASGIApp:
            from bots.web.app import build_app

            return build_app(
                sessions=sessions,
                resources=resources,
                speaker=speaker,
                store=kept.store,
                health=health,
                data=kept.folder,
                desk=desk,
                asking=asking,
                lineage=lineage,
                turns=turns,
                remove=removal.remove,
                access=access,
            )

        web, preparing = await stack.enter_async_context(_served(settings, health, api))
        yield App(sessions, gateway, doors.by_platform, web, preparing)


@asynccontextmanager
async def _tended(
    kept: Kept, gateway: Gateway, removal: Removal, desk: Desk, actions: ActionLog
) -> AsyncGenerator[None]:
    """As long as this is open logs are followed and archived, new sessions are told of, and what had its time goes."""
    upkeep = Upkeep(kept.store, FileHistory(kept.store, kept.folder / ".store" / "temp"))
    reaper = Reaper(kept.sessions, removal, kept.live.active, desk.concerns)
    watcher = Watcher(kept.folder / "runtimes", kept.profiles)
    beside = [asyncio.create_task(one.run(), name=type(one).__name__.lower()) for one in (reaper, watcher)]
    desk.listen(actions.on_record)
    try:
        kept.archive.start()
        upkeep.start()
        await gateway.start()
        yield
    finally:
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        await removal.stop()
        await gateway.stop()
        await actions.stop()
        await upkeep.stop()
        await kept.archive.stop()


@asynccontextmanager
async def _served(
    settings: Settings, health: Sequence[Health], build: Callable[[Access], ASGIApp]
) -> AsyncGenerator[tuple[WebServer, asyncio.Task[None]]]:
    """Our HTTP API, as ``build`` makes it, and who sees to it that it does. Raises `AddressTaken`."""
    access = Access(
        host=settings.ishiki_http_host,
        token=secret(settings.ishiki_http_token),
        runtime_token=secret(settings.ishiki_runtime_token),
        origins=settings.ishiki_http_origins,
        rate=settings.ishiki_http_rate,
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
