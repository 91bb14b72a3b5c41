"""The Bot API methods that say how updates are delivered: by polling or to a webhook."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import urlsplit

from bots.sandbox.telegram.arguments import Arguments
from bots.sandbox.telegram.chats import Json
from bots.sandbox.telegram.errors import ApiError, bad_request
from bots.sandbox.telegram.world import Webhook, World


async def get_updates(world: World, arguments: Arguments) -> list[Json]:
    """`getUpdates`."""
    if world.webhook.url:
        raise ApiError(
            409,
            "Conflict: can't use getUpdates method while webhook is active;"
            " use deleteWebhook to delete the webhook first",
        )
    limit = arguments.integer("limit") or 100
    timeout = min(max(arguments.integer("timeout") or 0, 0), 50)
    world.updates.allow(cast("list[str] | None", arguments.array("allowed_updates")))
    return await world.updates.poll(arguments.integer("offset") or 0, limit if 1 <= limit <= 100 else 100, timeout)


def set_webhook(world: World, arguments: Arguments) -> bool:
    """`setWebhook`; here `http` is taken too, and loopback addresses only."""
    url, secret = arguments.text("url"), arguments.text("secret_token")
    if not url:
        return delete_webhook(world, arguments)
    if not _is_loopback(url):
        raise bad_request("bad webhook: only loopback addresses can be reached from here")
    if not re.fullmatch(r"[A-Za-z0-9_-]{0,256}", secret):
        raise bad_request("secret token contains unallowed characters")
    world.updates.allow(cast("list[str] | None", arguments.array("allowed_updates")))
    if arguments.flag("drop_pending_updates"):
        world.updates.clear()
    world.updates.interrupt("Conflict: terminated by setWebhook request")
    world.webhook = Webhook(url, secret, arguments.integer("max_connections") or 40)
    world.pulse.beat()
    return True


def delete_webhook(world: World, arguments: Arguments) -> bool:
    """`deleteWebhook`."""
    world.webhook = Webhook()
    if arguments.flag("drop_pending_updates"):
        world.updates.clear()
    return True


def get_webhook_info(world: World, _arguments: Arguments) -> Json:
    """`getWebhookInfo`."""
    webhook = world.webhook
    shown: Json = {
        "url": webhook.url,
        "has_custom_certificate": False,
        "pending_update_count": len(world.updates),
    }
    if webhook.url:
        shown |= {"max_connections": webhook.max_connections, "ip_address": "127.0.0.1"}
    if webhook.last_error_date:
        shown |= {"last_error_date": webhook.last_error_date, "last_error_message": webhook.last_error_message}
    if kinds := world.updates.allowed_updates:
        shown["allowed_updates"] = kinds
    return shown


def _is_loopback(url: str) -> bool:
    parts = urlsplit(url)
    try:
        return parts.scheme in {"http", "https"} and ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return parts.hostname == "localhost"


DELIVERY: dict[str, Callable[[World, Arguments], Any]] = {
    "getUpdates": get_updates,
    "setWebhook": set_webhook,
    "deleteWebhook": delete_webhook,
    "getWebhookInfo": get_webhook_info,
}
