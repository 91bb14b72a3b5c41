"""The runtime over HTTP (contract sections 6 and 9)."""

import json
from collections.abc import Sequence
from typing import Final

import aiohttp
import msgspec
from msgspec import Raw

from core.backoff import retry_after
from core.codec import raw_json
from core.confirmations.record import Record
from core.errors import InvalidEntry, RuntimeCallError, RuntimeRefused, RuntimeUnavailable
from core.ids import EntryId, SessionId, TurnId
from core.runtime.port import Answer, Cause

REFUSED: Final = frozenset({400, 409, 410, 413, 422})
"""Answers that say: this body, never. Every other that is not 2xx may change, so it is asked again."""
DELIVER_PATIENCE: Final = aiohttp.ClientTimeout(sock_connect=5.0, sock_read=30.0)
WAKE_PATIENCE: Final = aiohttp.ClientTimeout(sock_connect=5.0)
"""The call is the turn, and whoever runs the turn ends it when it has lasted too long."""


class _WakeBody(msgspec.Struct):
    reply: str | None = None
    entries: list[Raw] | None = None
    seen: str | None = None


class _LooseWakeBody(msgspec.Struct):
    reply: str | None = None
    entries: list[object] | None = None
    seen: str | None = None


_wake_body = msgspec.json.Decoder(_WakeBody)


def client() -> aiohttp.ClientSession:
    """What an `HttpRuntime` calls through: no cookies, and as many calls at once as there are turns.

    aiohttp and not httpx, which costs nine times as much a call, and there is one for nearly each message.
    """
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), cookie_jar=aiohttp.DummyCookieJar())


class HttpRuntime:
    """An agent runtime behind a base URL. ``client`` is closed by whoever made it."""

    def __init__(self, client: aiohttp.ClientSession, base: str, token: str | None) -> None:
        self._client = client
        self._base = base.rstrip("/")
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    async def deliver(self, session: SessionId, lines: Sequence[bytes], *, key: EntryId) -> None:
        head = b'{"sessionId":' + bytes(raw_json(session)) + b',"trigger":false,"entries":['
        await self._post("/deliver", head + b",".join(lines) + b"]}", key=key, patience=DELIVER_PATIENCE)

    async def wake(self, session: SessionId, turn: TurnId, cause: Cause) -> Answer:
        body = {
            "sessionId": session,
            "turnId": turn,
            "trigger": True,
            "cause": {"entryId": cause.entry_id, "rule": cause.rule},
        }
        content = await self._post("/wake", bytes(raw_json(body)), key=turn, patience=WAKE_PATIENCE)
        return read_answer(content)

    async def resolve(self, record: Record) -> None:
        body = bytes(raw_json(resolution(record)))
        try:
            await self._post("/resolve", body, key=record.task_hash, patience=DELIVER_PATIENCE)
        except RuntimeRefused as error:
            if not error.gone:
                raise RuntimeUnavailable(str(error)) from error

    async def _post(self, path: str, body: bytes, *, key: str, patience: aiohttp.ClientTimeout) -> bytes:
        headers = {**self._headers, "Idempotency-Key": key}
        try:
            async with self._client.post(
                self._base + path, data=body, headers=headers, timeout=patience, allow_redirects=False
            ) as response:
                content = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            # The class says enough; the text may hold the URL.
            raise RuntimeUnavailable(f"the runtime did not answer {path} ({type(error).__name__})") from error
        if 200 <= response.status < 300:
            return content
        said = f"the runtime answered {path} with {response.status}"
        if response.status in REFUSED:
            raise RuntimeRefused(said, too_large=response.status == 413, gone=response.status == 410)
        raise RuntimeUnavailable(said, retry_after=retry_after(response.headers))


def resolution(record: Record) -> dict[str, object]:
    """The body of ``/resolve``."""
    body: dict[str, object] = {
        "sessionId": record.session_id,
        "taskHash": record.task_hash,
        "status": record.status,
        "at": record.decided_at,
    }
    if record.choice is not None:
        body["choice"] = record.choice
    if record.answers:
        body["answers"] = [answer.model_dump(mode="json") for answer in record.answers]
    if record.by is not None:
        body["by"] = record.by.model_dump(mode="json", exclude_none=True)
    return body


def read_answer(content: bytes) -> Answer:
    """What ``/wake`` was answered. Raises `RuntimeCallError` where it is not of the agreed shape."""
    if not content.strip():
        return Answer()
    try:
        try:
            body = _wake_body.decode(content)
        except (msgspec.DecodeError, RecursionError):
            # Only the standard library takes half a surrogate pair, which is how some runtimes cut an emoji.
            body = _convert_loosely(json.loads(content.decode("utf-8-sig")))
    except (msgspec.ValidationError, ValueError, RecursionError, InvalidEntry) as error:
        raise RuntimeCallError(f"the runtime's answer to /wake cannot be read ({type(error).__name__})") from error
    seen = EntryId(body.seen) if body.seen is not None else None
    return Answer(body.reply, tuple(body.entries or ()), seen)


def _convert_loosely(loaded: object) -> _WakeBody:
    loose = msgspec.convert(loaded, _LooseWakeBody)
    reply = loose.reply.encode("utf-8", "replace").decode() if loose.reply is not None else None
    return _WakeBody(reply, [raw_json(entry) for entry in loose.entries or ()], loose.seen)
