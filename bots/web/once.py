"""A request that comes again under the same ``Idempotency-Key`` gets the first answer again (contract section 9)."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from weakref import WeakValueDictionary

import msgspec

from bots.web.errors import ApiError
from core.archive.store import Store
from core.ids import SessionId


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and body of what is answered."""

    status: int
    body: dict[str, object]


class _Kept(msgspec.Struct):
    digest: str
    status: int = 0
    body: dict[str, object] = msgspec.field(default_factory=dict[str, object])


class Once:
    """Answers kept in the outbox, where they stay seven days and over restarts."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def answer(self, session: SessionId, key: str, body: bytes, act: Callable[[], Awaitable[Answer]]) -> Answer:
        """Act, or give the answer of the first time; two at the same time are one after the other.

        What ``act`` raises is no answer and may be tried again. Raises `ApiError` 409 for another body.
        """
        name, digest = f"api:{session}:{key}", hashlib.sha256(body).hexdigest()
        lock = self._locks.setdefault(name, asyncio.Lock())  # lives while somebody holds or awaits it
        async with lock:
            before = await self._store.outbox(name)
            kept = msgspec.json.decode(before[1], type=_Kept) if before else None
            if kept is not None and kept.digest != digest:
                raise ApiError(409, "key_reused", "that Idempotency-Key was used with another body; choose a new key")
            if kept is not None and kept.status:
                return Answer(kept.status, kept.body)
            if kept is None:
                await self._put(session, name, "sending", _Kept(digest))
            answer = await act()
            await self._put(session, name, "done", _Kept(digest, answer.status, answer.body))
            return answer

    async def _put(self, session: SessionId, name: str, state: str, kept: _Kept) -> None:
        await self._store.put_outbox(name, session, state, msgspec.json.encode(kept).decode())
