"""The queue of updates: what the bot asked for, kept until an offset confirms it, for at most a day."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from bots.sandbox.telegram.errors import REASONS, ApiError
from bots.sandbox.telegram.pulse import Pulse

KINDS = (
    "message",
    "edited_message",
    "channel_post",
    "edited_channel_post",
    "business_connection",
    "business_message",
    "edited_business_message",
    "deleted_business_messages",
    "guest_message",
    "message_reaction",
    "message_reaction_count",
    "inline_query",
    "chosen_inline_result",
    "callback_query",
    "shipping_query",
    "pre_checkout_query",
    "purchased_paid_media",
    "poll",
    "poll_answer",
    "my_chat_member",
    "chat_member",
    "chat_join_request",
    "chat_boost",
    "removed_chat_boost",
    "managed_bot",
)
_ON_DEMAND = frozenset({"chat_member", "message_reaction", "message_reaction_count"})
_KEPT_SECONDS = 24 * 3600
_FUTURE_SLACK = 10


class UpdateQueue:
    """Updates in the order they happened, each with a number of its own.

    `getUpdates` with a positive offset forgets everything below it; with one far above the newest number, as after
    `restart`, the real server starts at the head of the queue, and so does this one.
    """

    def __init__(self, now: Callable[[], int], pulse: Pulse, first_id: int = 734_510_001) -> None:
        self._now = now
        self._pulse = pulse
        self._next_id = first_id
        self._pending: deque[tuple[int, dict[str, Any]]] = deque()
        self._turn = 0
        self._interruption = ""
        self._allowed: frozenset[str] | None = None
        self.stalled = False

    def __len__(self) -> int:
        return len(self._pending)

    @property
    def allowed_updates(self) -> list[str]:
        """The kinds last asked for by name; empty for the default."""
        return sorted(self._allowed or ())

    def allow(self, kinds: Sequence[str] | None) -> None:
        """Remember the kinds that the bot asks for; `None` keeps the last ones, an empty list means the default."""
        if kinds is not None:
            self._allowed = frozenset(kinds) & frozenset(KINDS) or None

    def put(self, kind: str, payload: dict[str, Any]) -> None:
        """Queue an update, unless the bot did not ask for its kind."""
        wanted = kind in self._allowed if self._allowed is not None else kind not in _ON_DEMAND
        if wanted:
            self.put_raw({kind: payload})

    def put_raw(self, update: dict[str, Any]) -> None:
        """Queue an update as it is, numbered if it bears no `update_id`."""
        number = update.get("update_id")
        if not isinstance(number, int):
            number = self._next_id
        self._next_id = number + 1
        self._pending.append((self._now(), {"update_id": number} | update | {"update_id": number}))
        self._pulse.beat()

    def restart(self, at: int) -> None:
        """Number anew from `at`; what waits unconfirmed comes again under the new numbers."""
        self._next_id = at
        for moment, update in [self._pending.popleft() for _ in range(len(self._pending))]:
            self._pending.append((moment, update | {"update_id": self._next_id}))
            self._next_id += 1

    def clear(self) -> None:
        """`drop_pending_updates`."""
        self._pending.clear()

    def first(self) -> dict[str, Any] | None:
        """The oldest unconfirmed update."""
        self._expire()
        return self._pending[0][1] if self._pending else None

    def confirm(self, offset: int) -> None:
        """Forget every update below `offset`; a negative one keeps that many of the newest."""
        self._expire()
        if offset < 0:
            while len(self._pending) > -offset:
                self._pending.popleft()
        elif offset <= self._next_id + _FUTURE_SLACK:
            while self._pending and self._pending[0][1]["update_id"] < offset:
                self._pending.popleft()
        self._pulse.beat()

    async def poll(self, offset: int, limit: int, timeout: float) -> list[dict[str, Any]]:  # noqa: ASYNC109 - the API's word
        """Answer one `getUpdates`; a later one ends it with 409, as the real server does."""
        if self.stalled:
            await asyncio.Event().wait()
        self.interrupt(REASONS[409])
        turn = self._turn
        self.confirm(offset)
        with suppress(TimeoutError):
            await self._pulse.until(lambda: self._turn != turn or bool(self._pending), timeout)
        if self._turn != turn:
            raise ApiError(409, self._interruption)
        return [update for _, update in itertools.islice(self._pending, limit)]

    def interrupt(self, description: str) -> None:
        """End the `getUpdates` that waits, if any, with a 409 of this wording."""
        self._turn += 1
        self._interruption = description
        self._pulse.beat()

    def _expire(self) -> None:
        while self._pending and self._pending[0][0] < self._now() - _KEPT_SECONDS:
            self._pending.popleft()
