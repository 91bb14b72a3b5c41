"""Speaking in a chat: cut, send, and write down what was said (log-format 14.2).

The agent is heard only through a ``send_message`` call. A reply of the runtime and what our API is asked to say are
recorded in the same form.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import msgspec
import structlog
from msgspec import Raw
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt

from core.backoff import as_asked
from core.chat.port import Chat, Chats, Mode, Part, Upload, Veil
from core.clock import now_ms
from core.codec import raw_json
from core.entries import AnyEntry, AssistantMessage, ToolMessage, TurnDone, TurnStart, message_entry, turn_event
from core.errors import ChatError, ChatMoved, ChatOff, ChatUnavailable, ResourceError
from core.ids import MessageId, SessionId, ThreadId, TurnId, new_turn_id, new_uuid
from core.sessions.directory import Sessions
from core.sessions.facts import Written
from core.sessions.state import SessionState

ATTEMPTS: Final = 6

_UNKNOWN: Final = ("UnknownOutcome", "it may have been sent before the gateway stopped; the platform cannot tell")

logger = structlog.get_logger()

ReadUpload = Callable[[SessionId, str], Awaitable[Upload]]
"""The bytes of an ``asset://`` or ``artifact://`` URL of a session. Raises `ResourceError`."""


Moved = Callable[[SessionId, SessionId], Awaitable[None]]
"""Told that a chat goes on as another session, from now on."""


async def _stays(_old: SessionId, _new: SessionId) -> None:
    pass


class Ledger(Protocol):
    """What was sent already, kept over restarts."""

    async def outbox(self, key: str) -> tuple[str, str] | None: ...

    async def put_outbox(self, key: str, session: SessionId, state: str, record: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Speech:
    """Texts to say, each by itself, in order."""

    messages: tuple[str, ...]
    mode: Mode
    quote: MessageId | None = None
    thread: ThreadId | None = None

    def as_input(self) -> dict[str, object]:
        """The input of the ``send_message`` call."""
        said: dict[str, object] = {"messages": list(self.messages), "mode": self.mode}
        if self.quote is not None:
            said["quote"] = self.quote
        if self.thread is not None:
            said["threadId"] = self.thread
        return said


@dataclass(frozen=True, slots=True)
class Spoken:
    """What came of it: the ids of all parts that stand in the chat, and the first thing that went wrong."""

    ids: tuple[MessageId, ...] = ()
    error: tuple[str, str] | None = None
    failed_at: int = 0

    @property
    def ok(self) -> bool:
        return self.error is None

    def as_output(self) -> dict[str, object]:
        """The output of the ``send_message`` call."""
        if self.error is None:
            return {"ok": True, "ids": list(self.ids)}
        name, message = self.error
        error = {"name": name, "message": message}
        return {"ok": False, "error": error, "sent": list(self.ids), "failedAt": self.failed_at}


class _Sent(msgspec.Struct):
    """The record of a send: what was to be said, the ids of each part that was, and what is under way.

    ``index`` is the text, ``trying`` the number of the part that may or may not stand in the chat; 0: none.
    """

    speech: Speech
    index: int = 0
    trying: int = 0
    parts: list[list[MessageId]] = msgspec.field(default_factory=list[list[MessageId]])


class Speaker:
    """Says things in the chat that a session id names; never anywhere else."""

    def __init__(
        self,
        sessions: Sessions,
        chats: Chats,
        ledger: Ledger,
        upload: ReadUpload,
        veil: Veil = str,
        *,
        current: Callable[[SessionId], SessionId] = lambda session: session,
        moved: Moved = _stays,
    ) -> None:
        """``current`` is the session that a chat goes on in; ``moved`` is told when a platform says that it does."""
        self._sessions = sessions
        self._chats = chats
        self._ledger = ledger
        self._upload = upload
        self._veil = veil
        self._current = current
        self._moved = moved

    async def say(self, session: SessionId, speech: Speech, *, key: str) -> Spoken:
        """Send, and write it down: as part of the turn that runs, else as a turn of its own.

        The same ``key`` again sends only what was not sent. Speech for a chat that has migrated is said, and written
        down, where it goes on. Raises `ChatOff`.
        """
        spoken = await self.send(session, speech, key=key)

        def lines(state: SessionState) -> tuple[AnyEntry, ...]:
            if state.open_turn is not None:
                return self.lines(speech, spoken, turn=state.open_turn)
            turn, now = new_turn_id(), now_ms()
            start, done = turn_event(TurnStart(turn_id=turn), now=now), turn_event(TurnDone(turn_id=turn), now=now)
            return (start, *self.lines(speech, spoken, turn=turn), done)

        await self._sessions.of(self._current(session)).append([Written(lines)])
        return spoken

    async def send(self, session: SessionId, speech: Speech, *, key: str) -> Spoken:
        """Send without writing anything down. Raises `ChatOff`."""
        here = self._current(session)
        chat = self._chats(here)
        if chat is None:
            raise ChatOff("the platform of this session is not configured; set its token and start again")
        if here != session:
            speech = replace(speech, quote=None)  # messages of the old chat have other numbers in the new one
        sent = await self._sent(key) or _Sent(speech)
        if sent.trying and not chat.knows_nonces:
            return Spoken(_ids(sent), _UNKNOWN, sent.index)
        missing: tuple[int, str] | None = None
        number = 0
        for index, text in enumerate(speech.messages):
            sent.index = index
            # In a thread: somebody's text may be long, and made to be parsed for long.
            for part in await asyncio.to_thread(chat.compose, text, speech.mode):
                number += 1
                if number <= len(sent.parts):
                    continue
                uploads, unreadable = await self._uploads(session, part)
                if unreadable is not None and missing is None:
                    missing = (sent.index, unreadable)
                sent.trying = number
                await self._note(session, key, "sending", sent)
                try:
                    ids = await _send(chat, part, uploads, speech, first=number == 1, nonce=f"{key}:{number}")
                except ChatError as error:
                    if error.name != _UNKNOWN[0]:
                        sent.trying = 0
                        await self._note(session, key, "sending", sent)
                    if isinstance(error, ChatMoved) and await self._follow(here, error):
                        return await self.send(session, speech, key=key)
                    return Spoken(_ids(sent), (error.name, str(error)), sent.index)
                sent.parts.append(ids)
        sent.trying = 0
        await self._note(session, key, "sent", sent)
        if missing is not None:
            return Spoken(_ids(sent), ("ResourceError", missing[1]), missing[0])
        return Spoken(_ids(sent))

    async def _follow(self, session: SessionId, error: ChatMoved) -> bool:
        """Take note that a chat goes on elsewhere; whether it does."""
        await self._moved(session, SessionId(error.successor))
        return self._current(session) != session

    async def owed(self, turn: TurnId) -> tuple[AnyEntry, ...]:
        """The lines about a reply that was being sent when its turn was cut off: what stands in the chat is logged.

        Never raises: a log must need nothing but its own disk.
        """
        try:
            before = await self._ledger.outbox(f"speech:{turn}")
            sent = msgspec.json.decode(before[1], type=_Sent) if before else None
        except Exception as error:  # noqa: BLE001 - whatever the ledger raises, the turn has to end
            logger.warning("reply_unknown", turn=turn, error=type(error).__name__)
            return ()
        if before is None or sent is None:
            return ()
        cut = None if before[0] == "sent" else ("Interrupted", "the gateway stopped while this was being sent")
        return self.lines(sent.speech, Spoken(_ids(sent), cut, sent.index), turn=turn)

    def lines(self, speech: Speech, spoken: Spoken, *, turn: TurnId) -> tuple[AnyEntry, AnyEntry]:
        """The assistant message with the call, and the tool message with what came of it."""
        call, now = f"call-{new_uuid()}", now_ms()
        said = {"type": "tool-call", "toolCallId": call, "toolName": "send_message", "input": speech.as_input()}
        output = {"type": "json", "value": spoken.as_output()}
        result = {"type": "tool-result", "toolCallId": call, "toolName": "send_message", "output": output}
        content = veiled(raw_json([said]), self._veil)
        assistant = AssistantMessage(id=new_uuid(), timestamp=now, content=content, finish_reason="tool-calls")
        tool = ToolMessage(id=new_uuid(), timestamp=now, content=raw_json([result]))
        return (message_entry(assistant, now=now, turn_id=turn), message_entry(tool, now=now, turn_id=turn))

    async def _sent(self, key: str) -> _Sent | None:
        before = await self._ledger.outbox(f"speech:{key}")
        return msgspec.json.decode(before[1], type=_Sent) if before else None

    async def _note(self, session: SessionId, key: str, state: str, sent: _Sent) -> None:
        await self._ledger.put_outbox(f"speech:{key}", session, state, msgspec.json.encode(sent).decode())

    async def _uploads(self, session: SessionId, part: Part) -> tuple[list[Upload], str | None]:
        """The files of a part; one that cannot be read is left out and named."""
        uploads: list[Upload] = []
        unreadable: str | None = None
        for url in part.files:
            try:
                uploads.append(await self._upload(session, url))
            except ResourceError as error:
                unreadable = unreadable or f"{url}: {error}"
        return uploads, unreadable


async def _send(
    chat: Chat, part: Part, uploads: Sequence[Upload], speech: Speech, *, first: bool, nonce: str
) -> list[MessageId]:
    """Send one part, waiting as long as the platform asks for."""
    quote = speech.quote if first else None
    async for attempt in AsyncRetrying(
        retry=retry_if_exception_type(ChatUnavailable), stop=stop_after_attempt(ATTEMPTS), wait=as_asked, reraise=True
    ):
        with attempt:
            return await chat.send(part, uploads, quote=quote, thread=speech.thread, nonce=nonce)
    raise AssertionError("tenacity returns or raises")


def veiled(json: Raw, veil: Veil) -> Raw:
    """JSON with what the veil covers replaced."""
    return Raw(veil(bytes(json).decode()).encode())


def _ids(sent: _Sent) -> tuple[MessageId, ...]:
    return tuple(message for part in sent.parts for message in part)
