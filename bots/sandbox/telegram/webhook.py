"""Delivery of updates to the webhook: in order, each again until it is answered with 2xx."""

from __future__ import annotations

import asyncio

import aiohttp

from bots.sandbox.telegram.world import Webhook, World

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0


async def deliver_to_webhook(world: World) -> None:
    """Run until cancelled. The pauses between tries are shorter than the real server's."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session:
        pause = _FIRST_PAUSE
        while True:
            await _until_due(world)
            webhook, update = world.webhook, world.updates.first()
            if update is None:
                continue
            if failure := await _post(session, webhook, update):
                webhook.last_error_date, webhook.last_error_message = world.now(), failure
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                pause = _FIRST_PAUSE
                world.updates.confirm(update["update_id"] + 1)


async def _until_due(world: World) -> None:
    while True:
        try:
            await world.pulse.until(lambda: bool(world.webhook.url and len(world.updates)), 3600)
        except TimeoutError:
            continue
        return


async def _post(session: aiohttp.ClientSession, webhook: Webhook, update: object) -> str:
    """Post one update; returns what went wrong, worded for `last_error_message`."""
    headers = {"X-Telegram-Bot-Api-Secret-Token": webhook.secret_token} if webhook.secret_token else {}
    try:
        async with session.post(webhook.url, json=update, headers=headers, allow_redirects=False) as answer:
            if 200 <= answer.status < 300:
                return ""
            return f"Wrong response from the webhook: {answer.status} {answer.reason}"
    except TimeoutError:
        return "Read timeout expired"
    except aiohttp.ClientError:
        return "Connection refused"
