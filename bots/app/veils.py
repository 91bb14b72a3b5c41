"""What hides platform links and tokens, wherever something is said or shown (contract section 3)."""

from typing import NamedTuple

from pydantic import SecretStr

import bots.discord.veil as discord_veil
import bots.telegram.veil as telegram_veil
from bots.settings import Settings
from core.chat.port import Veil


class Veils(NamedTuple):
    """Of Discord's messages and of Telegram's: of both platforms in either."""

    on_discord: discord_veil.Veil
    on_telegram: telegram_veil.Veil

    @property
    def over(self) -> Veil:
        """For what comes from no platform."""
        return self.on_discord.over


def veils(settings: Settings) -> Veils:
    hosts, token = settings.discord_cdn_hosts, secret(settings.telegram_token)
    return Veils(
        discord_veil.Veil(hosts, beside=telegram_veil.Veil(token).over),
        telegram_veil.Veil(token, beside=discord_veil.Veil(hosts).over),
    )


def secret(value: SecretStr | None) -> str | None:
    return value.get_secret_value() if value is not None else None
