"""Which checks there are, in which order, for these settings."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Final, NamedTuple

import httpx
from pydantic import SecretStr

from bots.doctor.api import Api
from bots.doctor.calls import PATIENCE, Skew
from bots.doctor.clock import look_at_clock
from bots.doctor.database import look_at_database, look_at_parked, look_at_pending, paired
from bots.doctor.discord import Discord
from bots.doctor.discord_channels import Channels
from bots.doctor.disk import Room, look_at_room, look_at_writing, room_of
from bots.doctor.examination import blocking
from bots.doctor.house import holder, look_at_dotenv, look_at_folder, look_at_holder, sessions_of
from bots.doctor.let_in import look_at_settings
from bots.doctor.logs import look_at_journal, look_at_logs
from bots.doctor.runtime import look_at_runtime
from bots.doctor.telegram import LISTENED_FOR, Telegram
from bots.doctor.telegram_chats import Chats
from bots.doctor.verdict import Check, Verdict, ok
from bots.settings import Settings
from core.access import AllowRules, Visit
from core.errors import InvalidId
from core.ids import SessionId, business_connection_of, channel_of, discord_session, platform_of, telegram_session
from core.trust import trusted

DOTENV: Final = Path(".env")
Told = Callable[[], Awaitable[Skew | None]]


class Known(NamedTuple):
    """What the data folder says before anybody is asked."""

    held: bool = False
    sessions: tuple[SessionId, ...] = ()
    paired: frozenset[str] = frozenset()


@asynccontextmanager
async def checks(
    settings: Settings,
    *,
    dotenv: Path = DOTENV,
    room: Callable[[Path], Room] = room_of,
    patience: float = PATIENCE,
    listened_for: float = LISTENED_FOR,
) -> AsyncGenerator[list[Check]]:
    """Everything there is to look at. ``room`` measures the disk, ``patience`` is for one answer, in seconds.

    Raises `SettingsRefused` where the certificates that SSL_CERT_FILE names cannot be read.
    """
    folder = settings.ishiki_data_dir
    known = await asyncio.to_thread(_known, folder)
    await asyncio.to_thread(trusted)
    api = Api(settings.ishiki_http_host, settings.ishiki_http_port, held=known.held)
    clocks: dict[str, Told] = {}
    async with AsyncExitStack() as stack:
        platforms = [
            *await _of_discord(stack, settings, known, clocks, patience),
            *await _of_telegram(stack, settings, known, clocks, patience, api, listened_for),
        ]
        yield [
            Check("settings", partial(_settings, settings, known)),
            blocking("dotenv", partial(look_at_dotenv, dotenv)),
            blocking("folder", partial(look_at_folder, folder)),
            blocking("holder", partial(look_at_holder, folder)),
            blocking("disk.room", partial(look_at_room, folder, room)),
            blocking("disk.writing", partial(look_at_writing, folder)),
            blocking("journal", partial(look_at_journal, folder)),
            blocking("logs", partial(look_at_logs, folder)),
            blocking("database", partial(look_at_database, folder)),
            blocking("pending", partial(look_at_pending, folder)),
            blocking("parked", partial(look_at_parked, folder)),
            *platforms,
            Check("clock", partial(look_at_clock, clocks)),
            Check(
                "runtime",
                partial(look_at_runtime, settings.ishiki_runtime_url, _secret(settings.ishiki_runtime_token)),
            ),
            Check("api", api.look_at_address),
        ]


async def _of_discord(
    stack: AsyncExitStack, settings: Settings, known: Known, clocks: dict[str, Told], patience: float
) -> list[Check]:
    if (token := _secret(settings.discord_token)) is None:
        return [_off("discord", "DISCORD_TOKEN")]
    agent = f"DiscordBot (ishiki-bots, {version('ishiki-bots')})"
    headers = {b"Authorization": b"Bot " + token.encode(), b"User-Agent": agent.encode()}
    # The library goes past the environment's proxies, and so must who wants to know what it will meet.
    client = await stack.enter_async_context(
        httpx.AsyncClient(trust_env=False, verify=trusted(), timeout=patience, headers=headers)
    )
    rules = settings.discord_allow
    discord = Discord(
        client, settings.discord_api_url, settings.discord_gateway_url, rules=rules, admins=_admins(settings, "discord")
    )
    clocks["Discord"] = discord.skew
    channels = Channels(
        discord,
        [session for session in known.sessions if platform_of(session) == "discord"],
        servers=sorted(rule.removeprefix("guild:") for rule in rules.including if rule.startswith("guild:")),
        named=_named(rules, discord_session),
        paired=known.paired,
    )
    return [*discord.checks(), *channels.checks()]


async def _of_telegram(
    stack: AsyncExitStack,
    settings: Settings,
    known: Known,
    clocks: dict[str, Told],
    patience: float,
    api: Api,
    listened_for: float,
) -> list[Check]:
    if (token := _secret(settings.telegram_token)) is None:
        return [_off("telegram", "TELEGRAM_TOKEN")]
    # The library goes through the environment's proxies.
    client = await stack.enter_async_context(httpx.AsyncClient(verify=trusted(), timeout=patience))
    telegram = Telegram(
        client,
        settings.telegram_api_url,
        token,
        admins=_admins(settings, "telegram"),
        readiness=partial(api.problem_of, "telegram") if known.held else None,
        listened_for=listened_for,
    )
    clocks["Telegram"] = telegram.skew
    return [*telegram.checks(), *Chats(telegram, _of_use(settings, known)).checks()]


def _of_use(settings: Settings, known: Known) -> list[SessionId]:
    """The Telegram chats in which somebody is let in, those first that a rule names."""

    def place(session: SessionId) -> Visit:
        chat, business = channel_of(session), business_connection_of(session) is not None
        return Visit(chat, direct=not chat.startswith("-"), business=business)

    rules = settings.telegram_allow
    ours = [session for session in known.sessions if platform_of(session) == "telegram"]
    let_in = [session for session in ours if session in known.paired or rules.may_admit(place(session))]
    return list(dict.fromkeys([*_named(rules, telegram_session), *let_in]))


def _named(rules: AllowRules, session: Callable[[str], SessionId]) -> list[SessionId]:
    """The sessions of the channels or chats that rules name by their number."""
    found: list[SessionId] = []
    for rule in sorted(rules.including):
        with suppress(InvalidId):
            found.append(session(rule))
    return found


async def _settings(settings: Settings, known: Known) -> Verdict:
    given = {"discord": (settings.discord_token, settings.discord_allow)}
    given["telegram"] = (settings.telegram_token, settings.telegram_allow)
    rules = {name: allow for name, (token, allow) in given.items() if token is not None}
    return look_at_settings(rules, known.paired)


def _known(folder: Path) -> Known:
    """What cannot be read is for the checks to say. Blocks."""
    try:
        return Known(holder(folder).there, tuple(sessions_of(folder)), paired(folder))
    except OSError:
        return Known()


def _off(name: str, key: str) -> Check:
    async def look() -> Verdict:
        return ok(f"off: {key} is not set")

    return Check(name, look)


def _admins(settings: Settings, platform: str) -> list[str]:
    return [admin.user for admin in settings.ishiki_admins if admin.platform == platform]


def _secret(value: SecretStr | None) -> str | None:
    return None if value is None else value.get_secret_value()
