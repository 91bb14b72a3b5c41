"""What a command asks of the owner of the data folder, and what comes of it."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Final, Literal

import structlog
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator, model_validator

from core.archive.decisions import AllowRule, Decisions
from core.confirmations.desk import Desk
from core.confirmations.record import Answer, Choice, Person, Record
from core.errors import (
    AlreadyDecided,
    CodeRefused,
    InvalidAnswer,
    InvalidId,
    InvalidRequest,
    IshikiError,
    LogUnavailable,
    StoreUnavailable,
    UnknownSession,
    UnknownTask,
)
from core.ids import SessionId, channel_of, new_session, platform_of, session_id, task_hash
from core.pairing.book import Book
from core.runtime.redeliver import Came, Redeliver
from core.sessions.directory import Sessions
from core.sessions.facts import said_here

OPERATOR: Final = Person(platform="cli", id="operator", name="operator")
"""Whoever may use the terminal of the folder's owner (sessions.md 4.4)."""
_CODES: Final[dict[type[IshikiError], str]] = {
    InvalidId: "invalid_request",
    UnknownTask: "unknown_task",
    AlreadyDecided: "decided",
    InvalidAnswer: "invalid_answer",
    CodeRefused: "code_refused",
    InvalidRequest: "invalid_request",
    UnknownSession: "unknown_session",
}
_UNWRITTEN: Final = "the disk did not take it, so nothing was changed; free some space, then say it again"
_UNFORESEEN: Final = "something went wrong there; the gateway's own output says what"
_NOT_PAIRED: Final = (
    "that chat is not paired and has no open code; `ishiki pair` lists those that are, and what a rule lets in is kept "
    "out with !<id> in DISCORD_ALLOW or TELEGRAM_ALLOW"
)
_NO_RUNTIME: Final = "only a running `ishiki run` with an ISHIKI_RUNTIME_URL can deliver; start it, then say it again"
MOST_SAID: Final = 10_000
"""Characters of a line: with all of them escaped it is still a request that is taken."""
RETRY_WITHIN: Final = 10.0
"""Seconds."""
_UNKNOWN_RULE: Final = "there is no such rule any more; `ishiki pending --rules` lists those that hold"

logger = structlog.get_logger()


class _Command(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class AnswerIt(_Command):
    """Decide a confirmation, or answer all questions of one."""

    do: Literal["answer"] = "answer"
    task_hash: str
    choice: Choice | None = None
    answers: tuple[Answer, ...] | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "AnswerIt":
        if (self.choice is None) == (self.answers is None):
            raise ValueError("either choice or answers is wanted")
        return self


class Revoke(_Command):
    """End a rule that ``always`` made."""

    do: Literal["revoke"] = "revoke"
    session_id: str
    tool: str
    args_hash: str
    granted_by: str


class Pair(_Command):
    """Let the chat in whose code that is."""

    do: Literal["pair"] = "pair"
    code: str


class Unpair(_Command):
    """Let a paired chat in no longer, or forget its open code."""

    do: Literal["unpair"] = "unpair"
    session_id: str


class RetryDeliveries(_Command):
    """Take up again what the runtime would not take, in one session or in all."""

    do: Literal["deliver-retry"] = "deliver-retry"
    session_id: str | None = None


class Say(_Command):
    """Write down what a person says in a session without a platform; the runtime is woken as by ``POST /v1/send``."""

    do: Literal["say"] = "say"
    session_id: str
    content: str = Field(max_length=MOST_SAID)

    @field_validator("content")
    @classmethod
    def _has_words(cls, content: str) -> str:
        if not content.strip():
            raise ValueError("a line without words was said")
        return content


class NewSession(_Command):
    """Make a session of a terminal."""

    do: Literal["new"] = "new"


Command = AnswerIt | Revoke | Pair | Unpair | RetryDeliveries | Say | NewSession
_COMMANDS: Final[TypeAdapter[Command]] = TypeAdapter(
    Annotated[Command, Field(discriminator="do")], config=ConfigDict(defer_build=True)
)


class Reply(BaseModel):
    """What came of it.

    ``record`` after an answer, ``session_id`` after a pairing, of a new session and of one in which something was said,
    ``came`` after a round of deliveries; where it is not ``ok`` a word for programs, and a sentence.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    ok: bool
    record: Record | None = None
    session_id: str | None = None
    came: Came | None = None
    code: str = ""
    message: str = ""

    def line(self) -> bytes:
        """As it goes over the socket."""
        return self.model_dump_json(exclude_defaults=True).encode() + b"\n"


def command(line: bytes) -> Command | Reply:
    """Read a command; where it is none, what is told of it."""
    try:
        return _COMMANDS.validate_json(line)
    except ValidationError as error:
        # What was given is not repeated: it may be anything.
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    place = ".".join(str(step) for step in first["loc"])[:200]
    return no_command(f"{place}{': ' if place else ''}{first['msg'].removeprefix('Value error, ')}")


def no_command(why: str) -> Reply:
    """What is told of something that is no command."""
    return Reply(ok=False, code="invalid_request", message=f"that is no command ({why})")


@dataclass(frozen=True, slots=True)
class Hands:
    """What commands are done with. ``redeliver`` None: there is no runtime to deliver to."""

    desk: Desk
    decisions: Decisions
    book: Book
    sessions: Sessions
    redeliver: Redeliver | None = None


async def perform(wanted: Command, hands: Hands) -> Reply:
    """Do what a command says, with the operator's right; durable when this returns. Never raises."""
    try:
        return await _perform(wanted, hands)
    except (OSError, StoreUnavailable, LogUnavailable) as error:
        logger.warning("command_not_written", error=type(error).__name__)
        return Reply(ok=False, code="disk_unavailable", message=_UNWRITTEN)
    except IshikiError as error:
        return Reply(ok=False, code=_CODES.get(type(error), "refused"), message=str(error))
    except Exception:
        logger.exception("command_failed")
        return Reply(ok=False, code="internal_error", message=_UNFORESEEN)


async def _perform(wanted: Command, hands: Hands) -> Reply:  # noqa: PLR0911 - one arm for each command
    match wanted:
        case AnswerIt():
            return Reply(ok=True, record=await _answer(wanted, hands.desk))
        case Revoke():
            rule = AllowRule(SessionId(wanted.session_id), wanted.tool, wanted.args_hash, wanted.granted_by, 0)
            known = await hands.decisions.revoke(rule)
            return Reply(ok=True) if known else Reply(ok=False, code="unknown_rule", message=_UNKNOWN_RULE)
        case Pair():
            return Reply(ok=True, session_id=(await hands.book.admit(wanted.code)).session)
        case Unpair():
            known = await hands.book.revoke(_chat(wanted.session_id))
            return Reply(ok=True) if known else Reply(ok=False, code="not_paired", message=_NOT_PAIRED)
        case RetryDeliveries():
            session = None if wanted.session_id is None else session_id(wanted.session_id)
            return await _retry(session, hands.redeliver)
        case Say():
            return Reply(ok=True, session_id=await _say(wanted, hands.sessions))
        case NewSession():
            session = new_session("cli")
            await hands.sessions.create(session)
            return Reply(ok=True, session_id=session)


async def _say(wanted: Say, sessions: Sessions) -> SessionId:
    session = session_id(wanted.session_id)
    if platform_of(session) is not None:
        raise InvalidRequest("that session is a chat of a platform; people write to it there")
    await sessions.existing(session).append([said_here(wanted.content)])
    return session


def _chat(text: str) -> SessionId:
    """The session of a chat on a platform. Raises `InvalidId`."""
    session = session_id(text)
    channel_of(session)
    return session


async def _retry(session: SessionId | None, redeliver: Redeliver | None) -> Reply:
    """Whoever asks waits for a while; the round goes on without them."""
    if redeliver is None:
        return Reply(ok=False, code="no_runtime", message=_NO_RUNTIME)
    going = redeliver.begin(session)
    await asyncio.wait({going}, timeout=RETRY_WITHIN)
    return Reply(ok=True, came=await going) if going.done() else Reply(ok=True)


async def _answer(wanted: AnswerIt, desk: Desk) -> Record:
    task = task_hash(wanted.task_hash)
    if wanted.choice is not None:
        return await desk.choose(task, wanted.choice, OPERATOR)
    return await desk.answer(task, wanted.answers or (), OPERATOR)
