"""The platforms that have a token, and the way from a session to its chat.

What is not configured is not imported: the client libraries are most of what a start costs.
"""

from collections.abc import Sequence
from typing import Protocol

from bots.app.kept import Kept
from bots.app.veils import Veils
from bots.settings import Settings
from core.access import Admission
from core.archive.horizon import Horizon
from core.chat.port import Chat
from core.confirmations.press import Answers
from core.errors import ChatRefused
from core.health import Health
from core.ids import Platform, SessionId, UserId, platform_of
from core.pairing.bell import Bell
from core.pairing.reception import Reception


class Door(Protocol):
    """A chat platform: what `bots.discord` and `bots.telegram` have in common for us."""

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


class Doors:
    """All of them, by platform. They are hung one after the other, as some of what they need speaks through them."""

    def __init__(self) -> None:
        self.by_platform: dict[Platform, Door] = {}
        self._health: list[Health] = []

    @property
    def health(self) -> Sequence[Health]:
        return self._health

    def chat(self, session: SessionId) -> Chat | None:
        """The chat that a session id names; None where its platform is not configured, or it is none of a platform."""
        door = self._of(session)
        return None if door is None else door.chat(session)

    async def caught_up(self, session: SessionId) -> bool:
        """As a door's, for the one of a session."""
        door = self._of(session)
        return door is not None and await door.caught_up(session)

    async def direct(self, platform: Platform, user: UserId) -> Chat:
        """The direct chat with a person. Raises `ChatUnavailable` and `ChatRefused`."""
        if platform not in self.by_platform:
            raise ChatRefused(f"{platform} is not configured")
        return await self.by_platform[platform].direct(user)

    def hang(self, settings: Settings, kept: Kept, veils: Veils, answers: Answers, bell: Bell) -> None:
        """Build those that have a token."""
        if settings.discord_token is not None:
            import bots.discord.inbound

            discord = bots.discord.inbound.Inbound(
                settings.discord_token.get_secret_value(),
                api_url=settings.discord_api_url,
                gateway_url=settings.discord_gateway_url,
                cdn_hosts=settings.discord_cdn_hosts,
                reception=Reception(
                    Admission(settings.discord_allow, kept.book.paired_on("discord")), bell, kept.titles
                ),
                sessions=kept.sessions,
                health=self._watched("discord"),
                horizon=Horizon(kept.store, "discord"),
                limits=bots.discord.inbound.Limits(compared=settings.discord_catchup_messages),
                veil=veils.on_discord,
                answers=answers,
            )
            self.by_platform["discord"] = discord
        if settings.telegram_token is not None:
            import bots.telegram.inbound

            telegram = bots.telegram.inbound.Inbound(
                settings.telegram_token.get_secret_value(),
                api_url=settings.telegram_api_url,
                reception=Reception(
                    Admission(settings.telegram_allow, kept.book.paired_on("telegram")), bell, kept.titles
                ),
                sessions=kept.sessions,
                health=self._watched("telegram"),
                store=kept.store,
                veil=veils.on_telegram,
                answers=answers,
                lineage=kept.lineage,
            )
            self.by_platform["telegram"] = telegram

    def _watched(self, platform: Platform) -> Health:
        self._health.append(health := Health(platform))
        return health

    def _of(self, session: SessionId) -> Door | None:
        platform = platform_of(session)
        return None if platform is None else self.by_platform.get(platform)
