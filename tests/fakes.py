"""The other side of our seams, for tests: a chat that takes what it is told, a runtime in the same process."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from core.chat.port import Link, Mode, Part, Upload
from core.chat.prompt import Prompt
from core.confirmations.record import Record
from core.errors import ChatError, ChatRefused
from core.ids import EntryId, MessageId, SessionId, ThreadId, TurnId
from core.runtime.port import Answer, Cause
from core.sidecars import FileRef


@dataclass
class Sent:
    """One part as a chat got it."""

    text: str
    quote: MessageId | None
    thread: ThreadId | None
    nonce: str
    files: tuple[str, ...] = ()


@dataclass
class Asked:
    """One prompt as a chat got it first."""

    message: MessageId
    prompt: Prompt
    quote: MessageId | None
    thread: ThreadId | None
    nonce: str
    files: tuple[str, ...] = ()


@dataclass
class FakeChat:
    """A platform that takes everything. ``refusals`` are raised in turn before anything is taken.

    ``prompts`` has, for each message that `ask` made, all that it has shown. Messages in ``gone`` were deleted by
    somebody. ``slow`` is what a prompt takes, in seconds.
    """

    limit: int = 2000
    knows_nonces: bool = True
    refusals: list[ChatError] = field(default_factory=list[ChatError])
    sent: list[Sent] = field(default_factory=list[Sent])
    links: dict[str, Link] = field(default_factory=dict[str, Link])
    asked: list[Asked] = field(default_factory=list[Asked])
    prompts: dict[MessageId, list[Prompt]] = field(default_factory=dict[MessageId, list[Prompt]])
    gone: set[MessageId] = field(default_factory=set[MessageId])
    slow: float = 0.0

    def compose(self, text: str, mode: Mode) -> list[Part]:
        pieces = [text[start : start + self.limit] for start in range(0, len(text), self.limit)]
        return [Part(piece, piece) for piece in pieces if piece.strip()]

    async def send(
        self, part: Part, uploads: Sequence[Upload], *, quote: MessageId | None, thread: ThreadId | None, nonce: str
    ) -> list[MessageId]:
        if self.refusals:
            raise self.refusals.pop(0)
        self.sent.append(Sent(part.text, quote, thread, nonce, tuple(upload.name for upload in uploads)))
        return [MessageId(str(9000 + len(self.sent)))]

    async def ask(
        self,
        prompt: Prompt,
        uploads: Sequence[Upload],
        *,
        quote: MessageId | None,
        thread: ThreadId | None,
        nonce: str,
    ) -> MessageId:
        await asyncio.sleep(self.slow)
        if self.refusals:
            raise self.refusals.pop(0)
        known = next((asked.message for asked in self.asked if asked.nonce == nonce and self.knows_nonces), None)
        if known is not None:
            return known
        message = MessageId(str(7001 + len(self.asked)))
        files = tuple(upload.name for upload in uploads)
        self.asked.append(Asked(message, prompt, quote, thread, nonce, files))
        self.prompts[message] = [prompt]
        return message

    async def revise(self, message: MessageId, prompt: Prompt, *, thread: ThreadId | None) -> None:
        await asyncio.sleep(self.slow)
        if self.refusals:
            raise self.refusals.pop(0)
        if message in self.gone:
            raise ChatRefused("there is no such message", name="NotFound")
        self.prompts.setdefault(message, []).append(prompt)

    def usable(self) -> list[MessageId]:
        """The messages that can be pressed now."""
        return [
            message for message, shown in self.prompts.items() if message not in self.gone and not shown[-1].outcome
        ]

    async def link(self, ref: FileRef, *, fresh: bool) -> Link:
        return self.links[ref.attachment_id or ref.file_id or ""]


@dataclass
class FakeRuntime:
    """An agent in the same process: `deliver` raises ``errors`` in turn, `wake` gives ``answers`` in turn.

    `resolve` raises ``deaf`` in turn, and keeps what it took in ``resolved``.
    """

    errors: list[Exception] = field(default_factory=list[Exception])
    answers: list[Answer | Exception] = field(default_factory=list[Answer | Exception])
    delivered: list[tuple[SessionId, tuple[bytes, ...], EntryId]] = field(
        default_factory=list[tuple[SessionId, tuple[bytes, ...], EntryId]]
    )
    woken: list[tuple[SessionId, TurnId, Cause]] = field(default_factory=list[tuple[SessionId, TurnId, Cause]])
    holding: asyncio.Event | None = None
    deaf: list[Exception] = field(default_factory=list[Exception])
    resolved: list[Record] = field(default_factory=list[Record])

    async def deliver(self, session: SessionId, lines: Sequence[bytes], *, key: EntryId) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.delivered.append((session, tuple(lines), key))

    async def wake(self, session: SessionId, turn: TurnId, cause: Cause) -> Answer:
        self.woken.append((session, turn, cause))
        if self.holding is not None:
            await self.holding.wait()
        answer = self.answers.pop(0) if self.answers else Answer()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def resolve(self, record: Record) -> None:
        await asyncio.sleep(0)
        if self.deaf:
            raise self.deaf.pop(0)
        self.resolved.append(record)
