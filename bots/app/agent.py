"""The agent runtime, where one is configured: who tells it, who wakes it."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from bots.app.doors import Doors
from bots.app.kept import Kept
from bots.app.veils import secret
from bots.settings import Settings
from core.chat.port import Veil
from core.chat.speak import Speaker
from core.confirmations.desk import Desk
from core.gateway import Follower
from core.health import Health
from core.runtime.deliver import Deliver
from core.runtime.port import Runtime
from core.runtime.redeliver import Redeliver
from core.runtime.turns import Turns


@dataclass(frozen=True, slots=True)
class Agent:
    """``followers`` tell it and wake it, in that order."""

    runtime: Runtime
    turns: Turns
    redeliver: Redeliver
    followers: tuple[Follower, ...]
    health: Health


@asynccontextmanager
async def agent_of(
    settings: Settings, kept: Kept, desk: Desk, doors: Doors, speaker: Speaker, veil: Veil
) -> AsyncGenerator[Agent | None]:
    """None where there is none: everything is recorded then, and nobody woken."""
    if settings.ishiki_runtime_url is None:
        yield None
        return
    from core.runtime.http import HttpRuntime, client

    async with AsyncExitStack() as stack:
        token = secret(settings.ishiki_runtime_token)
        runtime = HttpRuntime(await stack.enter_async_context(client()), settings.ishiki_runtime_url, token)
        health = Health("runtime", problem=None)
        deliver = Deliver(runtime, kept.store, kept.store, health)
        redeliver = Redeliver(runtime, kept.sessions, kept.store)
        stack.push_async_callback(redeliver.stop)
        turns = Turns(
            runtime,
            deliver,
            speaker,
            kept.store,
            settings.wake_rules,
            veil=veil,
            is_answer=desk.is_answer,
            caught_up=doors.caught_up,
            live=kept.live,
        )
        desk.stop_turn = turns.stop
        yield Agent(runtime, turns, redeliver, (deliver, turns), health)
