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
FINISHED_WITHIN_MS: Final = 600_000
"""How long after it was cut off a reply is still finished: nothing older is answered either (log-format 14.1)."""

_UNKNOWN: Final = ("UnknownOutcome", "it may have been sent before the gateway stopped; the platform cannot tell")
_CUT_OFF: Final = ("Interrupted", "the gateway stopped while this was being sent")

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

    ``index`` is the text, ``trying`` the number of the part that may or may not stand in the chat; 0: none. ``at`` is
    when that was noted, in ms; ``error`` what the end was, where it was none.
    """

    speech: Speech
    index: int = 0
    trying: int = 0
    parts: list[list[MessageId]] = msgspec.field(default_factory=list[list[MessageId]])
    at: int = 0
    error: tuple[str, str] | None = None

    def spoken(self, error: tuple[str, str] | None, index: int) -> Spoken:
        """What came of it."""
        return Spoken(tuple(message for part in self.parts for message in part), error, index)


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
        await self._write_down(session, speech, spoken, own=new_turn_id())
        return spoken

    async def finish(self, session: SessionId, turn: TurnId, *, own: TurnId) -> None:
        """Say what is left of a reply that was cut off with its turn, and write it down as a turn of its ``own``.

        Nothing is left of most. What was cut off too long ago is only written down.
        """
        state, sent = await self._sent(turn)
        if sent is None or state not in {"sending", "resumed"}:
            return
        try:
            late = now_ms() - sent.at > FINISHED_WITHIN_MS
            spoken = None if late else await self.send(session, sent.speech, key=turn, over="resumed")
        except ChatOff:
            spoken = None
        await self._write_down(session, sent.speech, spoken or sent.spoken(_CUT_OFF, sent.index), own=own)
        await self._note(session, turn, "sent", (await self._sent(turn))[1] or sent)

    async def _write_down(self, session: SessionId, speech: Speech, spoken: Spoken, *, own: TurnId) -> None:
        """As part of the turn that runs, else as a turn of its own."""

        def lines(state: SessionState) -> tuple[AnyEntry, ...]:
            if state.open_turn is not None:
                return self.lines(speech, spoken, turn=state.open_turn)
            now = now_ms()
            start, done = turn_event(TurnStart(turn_id=own), now=now), turn_event(TurnDone(turn_id=own), now=now)
            return (start, *self.lines(speech, spoken, turn=own), done)

        await self._sessions.of(self._current(session)).append([Written(lines)])

    async def send(self, session: SessionId, speech: Speech, *, key: str, over: str = "sent") -> Spoken:
        """Send without writing anything down. In the end the ledger says that it is ``over``. Raises `ChatOff`."""
        here = self._current(session)
        chat = self._chats(here)
        if chat is None:
            raise ChatOff("the platform of this session is not configured; set its token and start again")
        sent = (await self._sent(key))[1] or _Sent(speech)
        if here != session:
            # Messages of the old chat have other numbers in the new one.
            sent.speech = replace(sent.speech, quote=None)
        if sent.trying and not chat.knows_nonces:
            return await self._end(session, key, over, sent, _UNKNOWN, sent.index)
        # In a thread: somebody's text may be long, and made to be parsed for long.
        parts = [
            (index, part)
            for index, text in enumerate(speech.messages)
            for part in await asyncio.to_thread(chat.compose, text, speech.mode)
        ]
        missing: tuple[int, str] | None = None
        for number, (index, part) in enumerate(parts, 1):
            sent.index = index
            if number <= len(sent.parts):
                continue
            uploads, unreadable = await self._uploads(session, part)
            if unreadable is not None and missing is None:
                missing = (index, unreadable)
            try:
                sent.parts.append(await self._send(session, chat, part, uploads, sent, key=key, number=number))
            except ChatError as error:
                if isinstance(error, ChatMoved) and await self._follow(here, error):
                    return await self.send(session, speech, key=key, over=over)
                return await self._end(session, key, over, sent, (error.name, str(error)), index)
            sent.trying = 0
            if number < len(parts):
                await self._note(session, key, "sending", sent)
        error = ("ResourceError", missing[1]) if missing is not None else None
        return await self._end(session, key, over, sent, error, missing[0] if missing is not None else 0)

    async def _send(
        self,
        session: SessionId,
        chat: Chat,
        part: Part,
        uploads: Sequence[Upload],
        sent: _Sent,
        *,
        key: str,
        number: int,
    ) -> list[MessageId]:
        """Send one part, waiting as long as the platform asks for; the ledger knows while it may stand in the chat."""
        quote = sent.speech.quote if number == 1 else None
        async for attempt in AsyncRetrying(
            retry=retry_if_exception_type(ChatUnavailable),
            stop=stop_after_attempt(ATTEMPTS),
            wait=as_asked,
            reraise=True,
        ):
            with attempt:
                sent.trying = number
                await self._note(session, key, "sending", sent)
                try:
                    return await chat.send(
                        part, uploads, quote=quote, thread=sent.speech.thread, nonce=f"{key}:{number}"
                    )
                except ChatError as error:
                    if error.name != _UNKNOWN[0]:
                        sent.trying = 0
                        await self._note(session, key, "sending", sent)
                    raise
        raise AssertionError("tenacity returns or raises")

    async def _end(
        self, session: SessionId, key: str, over: str, sent: _Sent, error: tuple[str, str] | None, index: int
    ) -> Spoken:
        sent.error, sent.index = error, index
        await self._note(session, key, over, sent)
        return sent.spoken(error, index)

    async def _follow(self, session: SessionId, error: ChatMoved) -> bool:
        """Take note that a chat goes on elsewhere; whether it does."""
        await self._moved(session, SessionId(error.successor))
        return self._current(session) != session

    async def owed(self, turn: TurnId, *, unfinished: bool = False) -> tuple[AnyEntry, ...]:
        """The lines about a reply whose turn was cut off before they were written: what stands in the chat is logged.

        None about one that was not said to its end, which `finish` does and writes down, unless ``unfinished`` ones are
        wanted too. Never raises: a log must need nothing but its own disk.
        """
        try:
            state, sent = await self._sent(turn)
        except Exception as error:  # noqa: BLE001 - whatever the ledger raises, the turn has to end
            logger.warning("reply_unknown", turn=turn, error=type(error).__name__)
            return ()
        if sent is not None and state == "sent":
            return self.lines(sent.speech, sent.spoken(sent.error, sent.index), turn=turn)
        if sent is not None and unfinished:
            return self.lines(sent.speech, sent.spoken(_CUT_OFF, sent.index), turn=turn)
        return ()

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

    async def _sent(self, key: str) -> tuple[str, _Sent | None]:
        """How far a send has come: ``sending``, ``resumed`` when `finish` has still to write it down, or ``sent``."""
        state, record = await self._ledger.outbox(f"speech:{key}") or ("", None)
        return state, msgspec.json.decode(record, type=_Sent) if record is not None else None

    async def _note(self, session: SessionId, key: str, state: str, sent: _Sent) -> None:
        sent.at = now_ms()
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


def veiled(json: Raw, veil: Veil) -> Raw:
    """JSON with what the veil covers replaced."""
    return Raw(veil(bytes(json).decode()).encode())
