"""What a command asks of the owner of the data folder, and what comes of it."""

from typing import Annotated, Final, Literal

import structlog
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from core.archive.decisions import AllowRule, Decisions
from core.confirmations.desk import Desk
from core.confirmations.record import Answer, Choice, Person, Record
from core.errors import AlreadyDecided, InvalidAnswer, InvalidId, IshikiError, StoreUnavailable, UnknownTask
from core.ids import SessionId, task_hash

OPERATOR: Final = Person(platform="cli", id="operator", name="operator")
"""Whoever may use the terminal of the folder's owner (sessions.md 4.4)."""
_CODES: Final[dict[type[IshikiError], str]] = {
    InvalidId: "invalid_request",
    UnknownTask: "unknown_task",
    AlreadyDecided: "decided",
    InvalidAnswer: "invalid_answer",
}
_UNWRITTEN: Final = "the disk did not take it, so nothing was changed; free some space, then say it again"
_UNFORESEEN: Final = "something went wrong there; the gateway's own output says what"
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


Command = AnswerIt | Revoke
_COMMANDS: Final[TypeAdapter[Command]] = TypeAdapter(
    Annotated[Command, Field(discriminator="do")], config=ConfigDict(defer_build=True)
)


class Reply(BaseModel):
    """What came of it: ``record`` after an answer; where it is not ``ok`` a word for programs, and a sentence."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    ok: bool
    record: Record | None = None
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


async def perform(wanted: Command, desk: Desk, decisions: Decisions) -> Reply:
    """Do what a command says, with the operator's right; durable when this returns. Never raises."""
    try:
        if isinstance(wanted, Revoke):
            rule = AllowRule(SessionId(wanted.session_id), wanted.tool, wanted.args_hash, wanted.granted_by, 0)
            known = await decisions.revoke(rule)
            return Reply(ok=True) if known else Reply(ok=False, code="unknown_rule", message=_UNKNOWN_RULE)
        return Reply(ok=True, record=await _answer(wanted, desk))
    except (OSError, StoreUnavailable) as error:
        logger.warning("command_not_written", error=type(error).__name__)
        return Reply(ok=False, code="disk_unavailable", message=_UNWRITTEN)
    except IshikiError as error:
        return Reply(ok=False, code=_CODES.get(type(error), "refused"), message=str(error))
    except Exception:
        logger.exception("command_failed")
        return Reply(ok=False, code="internal_error", message=_UNFORESEEN)


async def _answer(wanted: AnswerIt, desk: Desk) -> Record:
    task = task_hash(wanted.task_hash)
    if wanted.choice is not None:
        return await desk.choose(task, wanted.choice, OPERATOR)
    return await desk.answer(task, wanted.answers or (), OPERATOR)
