"""From a request to a record: where it is asked, why, and who may answer (sessions.md 4.1, 4.4)."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, cast

from core.chat.port import Veil
from core.chat.prompt import shows_all
from core.clock import now_ms
from core.confirmations import life
from core.confirmations.desk import Desk
from core.confirmations.leave import args_hash
from core.confirmations.record import Approvers, Cause, Choice, Kind, Person, Question, Record
from core.entries import MessageCreated, fact_of
from core.errors import InvalidRequest, UnknownEntry
from core.ids import EntryId, SessionId, TaskHash, ThreadId, TurnId, business_connection_of, platform_of
from core.sessions.directory import Sessions
from core.sessions.state import key_of

MOST_ARGS: Final = 1024
"""Bytes of JSON that a record keeps of the arguments."""
NAMESPACE: Final = "confirmations"


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody wants to ask. ``timeout`` is in seconds; ``requester`` a user id of the chat's platform."""

    session: SessionId
    kind: Kind
    tool: str | None = None
    args: object = None
    text: str | None = None
    choices: tuple[Choice, ...] = ()
    questions: tuple[Question, ...] = ()
    approvers: Approvers | None = None
    requester: str | None = None
    thread: ThreadId | None = None
    timeout: float | None = None
    turn: TurnId | None = None


@dataclass(frozen=True, slots=True)
class Origin:
    """What made a turn: the entry, and the message in it if it is one of a chat."""

    entry: EntryId
    message: MessageCreated | None


class Causes(Protocol):
    """Who knows what turns came from."""

    def cause(self, session: SessionId, turn: TurnId) -> Origin | None: ...


class NoCauses:
    """Where no runtime is woken, nothing causes a turn."""

    def cause(self, session: SessionId, turn: TurnId) -> Origin | None:
        return None


KeepFile = Callable[[SessionId, bytes], Awaitable[str]]
"""Keep what is too long to be shown; gives its ``artifact://`` URL."""


class Asking:
    """Takes requests: fills in what follows from the session, and puts them on the desk."""

    def __init__(
        self,
        desk: Desk,
        sessions: Sessions,
        causes: Causes,
        keep: KeepFile,
        *,
        timeout: float,
        origin: Callable[[SessionId], SessionId] = lambda session: session,
        current: Callable[[SessionId], SessionId] = lambda session: session,
        veil: Veil = str,
    ) -> None:
        """``timeout`` in seconds; ``origin`` is the session that started one, ``current`` what a chat goes on as."""
        self._desk = desk
        self._sessions = sessions
        self._causes = causes
        self._keep = keep
        self._timeout = timeout
        self._origin = origin
        self._current = current
        self._veil = veil

    async def ask(self, request: Request, task: TaskHash) -> Record:
        """Open a record. Raises `InvalidRequest`, and `OSError` where the disk does not take it."""
        origin = self._origin(request.session)
        deliver_to = self._current(origin)
        turn = request.turn or await self._running_turn(request.session)
        cause = await self._cause(request.session, origin, turn)
        message = cause.message if cause is not None else None
        requester = _requester(request, deliver_to, message)
        now = now_ms()
        record = Record(
            task_hash=task,
            session_id=request.session,
            kind=request.kind,
            status="open",
            origin=origin,
            deliver_to=deliver_to,
            thread_id=request.thread or (message.thread_id if message is not None else None),
            turn_id=turn,
            cause=_cause(cause),
            tool=request.tool,
            args_hash=_hashed(request),
            choices=request.choices,
            approvers=request.approvers or _default_approvers(deliver_to, requester),
            requester=requester,
            created_at=now,
            expires_at=now + round(1000 * (self._timeout if request.timeout is None else request.timeout)),
        )
        record = record.with_(**await self._content(request))
        if await self._is_void(record):
            return await self._desk.open(life.withdrawn(record, now).with_(closed_at=now))
        record = await self._desk.open(record)
        if await self._is_void(record):  # in the meantime
            await self._desk.insist(task, life.withdrawn)
            return await self._desk.find(task)
        return record

    async def take_up(self) -> None:
        """Before anything is shown after a start: what was retracted, moved or stopped in the moment when we were."""
        for record in self._desk.records():
            later = self._current(record.deliver_to)
            if later != record.deliver_to:
                await self._desk.move(record.deliver_to, later)
            if await self._is_void(record):
                await self._desk.soon(record.task_hash, life.withdrawn)
        await self._desk.stop_again()

    async def _is_void(self, record: Record) -> bool:
        return record.is_open and record.cause is not None and await self._was_retracted(record, record.cause)

    async def _was_retracted(self, record: Record, cause: Cause) -> bool:
        for session in {record.origin, record.session_id}:
            try:
                fact = fact_of(await self._sessions.of(session).entry(cause.entry_id))
            except UnknownEntry:
                continue
            if isinstance(fact, MessageCreated):
                standing = await self._sessions.of(session).standing(key_of(fact))
                return standing is not None and standing.deleted
        return False

    async def _cause(self, session: SessionId, origin: SessionId, turn: TurnId | None) -> Origin | None:
        """What made the turn; of a helper's turn, that of the work it helps with."""
        cause = None if turn is None else self._causes.cause(session, turn)
        if origin != session and (cause is None or cause.message is None):
            parent = await self._running_turn(origin)
            cause = (None if parent is None else self._causes.cause(origin, parent)) or cause
        return cause

    async def _running_turn(self, session: SessionId) -> TurnId | None:
        """The turn that runs now; one that an earlier run left open is over, though its end is not written yet."""
        state = await self._sessions.of(session).state()
        return state.open_turn if state.inherited_turn is None else None

    async def _content(self, request: Request) -> dict[str, object]:
        """What is asked, hidden where it must not be shown, and cut to what a record holds."""
        text = self._veil(request.text) if request.text else None
        args = _veiled_json(request.args, self._veil)
        questions = tuple(_veiled(question, self._veil) for question in request.questions)
        whole = json.dumps(args, ensure_ascii=False, indent=2)
        file = None
        texts = [text or "", *(part for question in questions for part in (question.question, question.detail or ""))]
        options = [option for question in questions for option in question.options]
        code = "" if args is None else whole
        if not shows_all([request.tool or "", *texts], code, options):
            shown = {
                "tool": request.tool,
                "text": text,
                "args": args,
                "questions": [question.model_dump(exclude_defaults=True) for question in questions],
            }
            content = json.dumps({name: value for name, value in shown.items() if value}, ensure_ascii=False, indent=2)
            file = await self._keep(request.session, content.encode())
        return {"text": text, "args": _cut_args(args, whole), "questions": questions, "file": file}


def _requester(request: Request, deliver_to: SessionId, message: MessageCreated | None) -> Person | None:
    if request.requester is not None:
        platform = platform_of(deliver_to)
        if platform is None:
            raise InvalidRequest("a requester is a user of a chat; that session is none, so leave it out")
        name = message.user.name if message is not None and message.user.id == request.requester else None
        return Person(platform=platform, id=request.requester, name=name)
    if message is None or message.via is not None:
        return None
    return Person(platform=message.platform, id=message.user.id, name=message.user.name)


def _default_approvers(deliver_to: SessionId, requester: Person | None) -> Approvers:
    """In a business chat the requester is a stranger who writes to the owner (contract section 9)."""
    is_business = platform_of(deliver_to) == "telegram" and business_connection_of(deliver_to) is not None
    return "admins" if requester is None or is_business else "requester"


def _cause(cause: Origin | None) -> Cause | None:
    if cause is None:
        return None
    return Cause(entry_id=cause.entry, message_id=cause.message.message_id if cause.message is not None else None)


def _hashed(request: Request) -> str | None:
    return args_hash(request.args) if request.kind == "confirm" else None


def _veiled_json(value: object, veil: Veil) -> object:
    """The same with its strings veiled: over its text the veil could take what belongs to the JSON."""
    if isinstance(value, str):
        return veil(value)
    if isinstance(value, list):
        return [_veiled_json(item, veil) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        return {veil(name): _veiled_json(item, veil) for name, item in cast("dict[str, object]", value).items()}
    return value


def _veiled(question: Question, veil: Veil) -> Question:
    return Question(
        question=veil(question.question),
        detail=veil(question.detail) if question.detail else None,
        options=_distinct([veil(option) for option in question.options]),
        multi_select=question.multi_select,
    )


def _distinct(options: Sequence[str]) -> tuple[str, ...]:
    """Options that became equal when something was hidden in them are told apart by their number."""
    seen: set[str] = set()
    told: list[str] = []
    for number, option in enumerate(options, 1):
        told.append(f"{option} ({number})" if option in seen else option)
        seen.add(told[-1])
    return tuple(told)


def _cut_args(args: object, whole: str) -> object:
    """Arguments of at most 1 KiB as they are; larger ones as the beginning of their JSON, the cut marked."""
    if len(json.dumps(args, ensure_ascii=False).encode()) <= MOST_ARGS:
        return args
    mark = f"… (cut, {len(whole)} characters in all)"
    kept = whole[:MOST_ARGS]
    while len(json.dumps(kept + mark, ensure_ascii=False).encode()) > MOST_ARGS:
        kept = kept[: len(kept) * 15 // 16]
    return kept + mark
