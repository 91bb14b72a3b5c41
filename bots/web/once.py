"""A request that comes again under the same ``Idempotency-Key`` gets the first answer again (contract section 9)."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from weakref import WeakValueDictionary

import msgspec

from bots.web.errors import ApiError
from core.archive.store import Store
from core.ids import SessionId, new_uuid


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and body of what is answered."""

    status: int
    body: dict[str, object]


Act = Callable[[str], Awaitable[Answer]]
"""Does what was asked for. The UUID it is given is that of the first attempt, also after a crash in the midst of it."""


class _Kept(msgspec.Struct):
    digest: str
    attempt: str = msgspec.field(default_factory=new_uuid)
    status: int = 0
    body: dict[str, object] = msgspec.field(default_factory=dict[str, object])


class Once:
    """Answers kept in the outbox, where they stay seven days and over restarts."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def answer(self, session: SessionId, key: str, route: str, body: bytes, act: Act) -> Answer:
        """Act, or give the answer of the first time; two at the same time are one after the other.

        What ``act`` raises is no answer and may be tried again. Raises `ApiError` 409 for another body or ``route``.
        """
        name, digest = f"api:{session}:{key}", hashlib.sha256(route.encode() + b"\n" + body).hexdigest()
        lock = self._locks.setdefault(name, asyncio.Lock())  # lives while somebody holds or awaits it
        async with lock:
            before = await self._store.outbox(name)
            kept = msgspec.json.decode(before[1], type=_Kept) if before else _Kept(digest)
            if kept.digest != digest:
                raise ApiError(409, "key_reused", "that Idempotency-Key was used for something else; choose a new key")
            if kept.status:
                return Answer(kept.status, kept.body)
            if before is None:
                await self._put(session, name, "sending", kept)
            answer = await act(kept.attempt)
            kept = msgspec.structs.replace(kept, status=answer.status, body=answer.body)
            await self._put(session, name, "done", kept)
            return answer

    async def _put(self, session: SessionId, name: str, state: str, kept: _Kept) -> None:
        await self._store.put_outbox(name, session, state, msgspec.json.encode(kept).decode())
