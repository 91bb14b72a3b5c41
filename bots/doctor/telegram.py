"""Telegram: the token, who gets the updates, what the bot is told. No update is confirmed, no webhook changed."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, Generic, TypeVar
from urllib.parse import urlsplit

import httpx

from bots.doctor.calls import Caller, Once, Refused, Skew, Told
from bots.doctor.verdict import Check, NotLookedAt, Unanswered, Verdict, counted, fail, listed, ok, warn

TOKEN: Final = "telegram.token"  # noqa: S105 - a check's name
LISTENED_FOR: Final = 4.0
"""Seconds in which another program that polls comes back: its own poll was ended by ours."""
MANY: Final = 1000
"""Updates that wait; Telegram keeps them for a day."""
_CURE: Final = "check the network and TELEGRAM_API_URL"

T = TypeVar("T")


class Me(Told):
    id: int
    username: str = ""
    can_join_groups: bool = True
    can_read_all_group_messages: bool = False


class Webhook(Told):
    url: str = ""
    pending_update_count: int = 0
    last_error_date: int | None = None
    last_error_message: str = ""
    last_synchronization_error_date: int | None = None


class Update(Told):
    update_id: int


class Result(Told, Generic[T]):
    """What the Bot API wraps each answer in."""

    result: T


class Telegram:
    """One bot's account. ``readiness`` is what the process that polls for it says of it, None where none does."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        api_url: str,
        token: str,
        *,
        admins: Sequence[str],
        readiness: Callable[[], Awaitable[str | None]] | None,
        listened_for: float = LISTENED_FOR,
    ) -> None:
        self._caller = Caller(client, f"{api_url.rstrip('/')}/bot{token}", named="Telegram", cure=_CURE)
        self._me = Once(lambda: self.ask("getMe", Me))
        self._webhook = Once(lambda: self.ask("getWebhookInfo", Webhook))
        self._admins = admins
        self._readiness = readiness
        self._listened_for = listened_for

    def checks(self) -> list[Check]:
        return [
            Check(TOKEN, self.look_at_token),
            Check("telegram.webhook", self.look_at_webhook),
            Check("telegram.poller", self.look_at_poller),
            Check("telegram.updates", self.look_at_updates),
            Check("telegram.privacy", self.look_at_privacy),
            Check("telegram.deletions", self.tell_of_deletions),
            Check("telegram.admins", self.look_at_admins),
        ]

    async def ask(self, method: str, model: type[T], *, patience: float | None = None, **query: str | int) -> T:
        """One call. Raises `Refused` and `Unanswered`."""
        answer = await self._caller.get(f"/{method}", Result[model], patience=patience, **query)
        return answer.result

    async def account(self) -> Me:
        """Who we are. Raises `NotLookedAt` where the check of the token tells why that is not known."""
        try:
            return await self._me()
        except (Refused, Unanswered):
            raise NotLookedAt(TOKEN) from None

    async def skew(self) -> Skew | None:
        """How far Telegram's clock is from ours, where it answered at all."""
        with suppress(Refused, Unanswered):
            await self._me()
        return self._caller.skew

    async def look_at_token(self) -> Verdict:
        """Whether Telegram knows it. What is not shaped like one is not found instead of refused."""
        try:
            me = await self._me()
        except Unanswered as error:
            return fail(str(error), error.cure)
        except Refused as refused:
            if refused.code is not None and refused.status in {401, 404}:
                cure = "set TELEGRAM_TOKEN to the one that @BotFather gives with /token"
                return fail(f"Telegram does not know this token ({refused.status})", cure)
            told = f"what answers at TELEGRAM_API_URL is no Telegram Bot API ({refused.status})"
            return fail(told, "correct the address, or leave it out")
        return ok(f"Telegram knows the token: bot {me.id}")

    async def look_at_webhook(self) -> Verdict:
        """Whether the updates go elsewhere."""
        await self.account()
        found = await self._webhook()
        if not found.url:
            return ok("no webhook is set, so the bot can poll")
        host = urlsplit(found.url).hostname or "another address"
        return fail(
            f"a webhook is set to {host}, so Telegram gives the updates there and polling is refused (409)",
            "remove it with the method deleteWebhook, or take another bot",
        )

    async def look_at_poller(self) -> Verdict:
        """Whether another program takes the updates."""
        await self.account()
        if self._readiness is not None:
            if (problem := await self._readiness()) is not None:
                return fail(f"`ishiki run` says: {problem}", "then it goes on by itself")
            return ok("`ishiki run` polls, and nobody takes the updates from it")
        if (await self._webhook()).url:
            raise NotLookedAt("telegram.webhook")
        if await self._meets_another():
            return fail(
                "another program asks for the updates of this bot (409), and each takes them from the other",
                "stop it, or give this one a bot and token of its own",
            )
        return ok(f"no other program asked for the updates of this bot within {self._listened_for:g} s")

    async def look_at_updates(self) -> Verdict:
        """Whether what happened reaches somebody."""
        await self.account()
        found = await self._webhook()
        if found.url and found.last_error_date is not None:
            return warn("Telegram's last call of the webhook failed", "see what answers there, or remove the webhook")
        if found.pending_update_count > MANY:
            return warn(
                f"{found.pending_update_count} updates wait at Telegram, which keeps them for a day",
                "start `ishiki run`, or see why it takes none",
            )
        return ok(f"{counted(found.pending_update_count, 'update')} waiting at Telegram")

    async def look_at_privacy(self) -> Verdict:
        """Whether the bot hears what is said in groups."""
        me = await self.account()
        if not me.can_read_all_group_messages:
            return warn(
                "privacy mode is on: in groups the bot hears commands, mentions and replies only",
                "send /setprivacy and Disable to @BotFather, then remove the bot from its groups and add it again",
            )
        if not me.can_join_groups:
            return warn("the bot can be added to no group", "send /setjoingroups and Enable to @BotFather")
        return ok("privacy mode is off: the bot hears all of what is said in groups that it joined since")

    async def tell_of_deletions(self) -> Verdict:
        """What nobody can mend."""
        return ok("Telegram does not tell bots about ordinary deletions, only about those in business chats")

    async def look_at_admins(self) -> Verdict:
        """Whether the bot may write to them."""
        if not self._admins:
            return ok("no admins on Telegram; the terminal answers for them")
        await self.account()
        unknown: list[str] = []
        for admin in self._admins:
            try:
                await self.ask("getChat", Told, chat_id=admin)
            except Refused:
                unknown.append(admin)
        if unknown:
            cure = "have them write to the bot once, or correct ISHIKI_ADMINS"
            return warn(f"the bot cannot write to the admin {listed(unknown)}", cure)
        return ok(f"the bot may write to every admin of ISHIKI_ADMINS ({len(self._admins)})")

    async def _meets_another(self) -> bool:
        """Ask for updates without an offset, which confirms none, until somebody else's asking ends ours.

        Ours ends theirs first, once, and they come back. An update that waits answers us at once, and keeps on doing so
        if nobody takes it.
        """
        ends = time.monotonic() + self._listened_for
        while (left := ends - time.monotonic()) > 0:
            wait = max(int(left), 1)
            try:
                waiting = await self.ask("getUpdates", list[Update], patience=wait + 3.0, limit=1, timeout=wait)
            except Refused as refused:
                if refused.status == 409:
                    return True
                raise Unanswered(f"Telegram refuses to be polled ({refused.status})", _CURE) from None
            if waiting:
                await asyncio.sleep(min(1.0, left))
        return False
