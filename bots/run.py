"""``ishiki run``: what was built serves until somebody ends it, or a part of it cannot go on."""

import asyncio
import gc
import signal
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import structlog
from pydantic import SecretStr

from bots.app import App, assemble
from bots.diagnostics import configure
from bots.settings import Settings
from bots.supervisor import tell, watched

TURNS_WITHIN: Final = 2.0
STOP_WITHIN: Final = 5.0
"""Seconds until the doors are shut; the rest of the ten that the contract gives is for the web server and the disk."""

logger = structlog.get_logger()


async def serve(settings: Settings, stop: asyncio.Event, ready: Callable[[App], None] | None = None) -> None:
    """Run until ``stop`` is set or a door cannot go on. ``ready`` is called when everything was started.

    Raises `TokenRefused`, and what `assemble` raises.
    """
    async with assemble(settings) as app:
        doors = [asyncio.create_task(door.run(), name=name) for name, door in app.doors.items()]
        stopped = asyncio.create_task(stop.wait(), name="stop")
        if ready is not None:
            ready(app)
        try:
            ended, _ = await asyncio.wait({*doors, stopped, app.preparing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            tell("STOPPING=1")
            stopped.cancel()
            await _wind_down(app, doors)
        for task in ended - {stopped}:
            task.result()


async def _wind_down(app: App, doors: Sequence[asyncio.Task[None]]) -> None:
    """Let running turns come to their end while we still can speak, take nothing more in, hang up."""
    try:
        async with asyncio.timeout(STOP_WITHIN):
            await app.gateway.finish(TURNS_WITHIN)
            await asyncio.gather(*(door.stop() for door in app.doors.values()))
    except TimeoutError:
        logger.warning("stopped_late", cure="what the disk or a platform did not take is told again after the start")
    for task in doors:
        task.cancel()
    await asyncio.gather(*doors, return_exceptions=True)


async def run_until_signal(settings: Settings) -> None:
    """``ishiki run``: serve until SIGINT or SIGTERM. Garbage is looked for from when everything was started."""
    secrets = [value.get_secret_value() for _, value in settings if isinstance(value, SecretStr)]
    configure(settings.ishiki_log_level, settings.ishiki_log_format, secrets)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        async with watched():
            await serve(settings, stop, ready=partial(_started, settings))
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)  # told once more while it ends, it ends with the same code


def _started(settings: Settings, app: App) -> None:
    if not app.doors:
        logger.warning("no_platform", cure="set DISCORD_TOKEN or TELEGRAM_TOKEN; .env.example lists all settings")
    for name, rules in (("discord", settings.discord_allow), ("telegram", settings.telegram_allow)):
        if name in app.doors and not rules.including:
            logger.warning(
                "nobody_let_in",
                platform=name,
                cure=f"say who may use the bot with {name.upper()}_ALLOW; `ishiki pair` lets in chats that ask",
            )
    if settings.ishiki_runtime_url is None:
        logger.info(
            "no_runtime", cure="ISHIKI_RUNTIME_URL names one; without it everything is recorded and nobody woken"
        )
    tell("READY=1")
    logger.info("started", platforms=sorted(app.doors), api=app.web.address)
    gc.freeze()  # what the start made stays, and need not be looked through
    gc.enable()
