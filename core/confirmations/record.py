"""One confirmation or question, as its file holds it (sessions.md 1.6); what becomes of it: `life`."""

from typing import Annotated, Any, Final, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, JsonValue
from pydantic.alias_generators import to_camel

from core.ids import EntryId, MessageId, SessionId, TaskHash, ThreadId, TurnId

Kind = Literal["confirm", "ask"]
Status = Literal["open", "approved", "denied", "answered", "stopped", "expired"]
Choice = Literal["yes", "always", "turn", "no", "stop"]
Approvers = Literal["requester", "admins", "anyone"]

CHOICES: Final[tuple[Choice, ...]] = get_args(Choice)
"""In the order in which they are shown."""
OUTCOMES: Final[dict[Choice, Status]] = {
    "yes": "approved",
    "always": "approved",
    "turn": "approved",
    "no": "denied",
    "stop": "stopped",
}
OPERATORS: Final = frozenset({"cli", "http"})
"""The ``platform`` of whoever answers from the terminal or over our API, with the operator's right."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class _CamelPart(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        alias_generator=to_camel,
        populate_by_name=True,
        serialize_by_alias=True,
        defer_build=True,
    )


def _whole(text: str) -> str:
    """Half of a surrogate pair, which no file can hold, becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


Text = Annotated[str, AfterValidator(_whole)]


class Person(_Part):
    """Who somebody is: the platform and the numeric id count, never the name."""

    platform: str
    id: str
    name: Text | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.platform, self.id

    @property
    def is_operator(self) -> bool:
        return self.platform in OPERATORS


class Cause(_CamelPart):
    """The message that made the turn; the prompt quotes it, and its retraction withdraws the request."""

    entry_id: EntryId
    message_id: MessageId | None = None


class Question(_Part):
    """One question: with ``options`` a choice of one, or with ``multi_select`` of several; else free text."""

    question: str
    detail: str | None = None
    options: tuple[str, ...] = ()
    multi_select: bool = False


class Answer(_Part):
    """One choice: a string; several: a list; free text: a string."""

    question: str
    answer: Text | tuple[Text, ...]


class Shown(_CamelPart):
    """Where a prompt stands. ``question`` is the index of what it shows, ``ticked`` what is ticked in it so far.

    ``closed``: that question is answered and the prompt says so, while the next one is not posted yet.
    """

    platform: str
    channel_id: str
    thread_id: ThreadId | None = None
    message_ids: tuple[MessageId, ...]
    question: int
    posted_at: int
    ticked: tuple[int, ...] = ()
    closed: bool = False


class Trouble(_Part):
    """Why a prompt could not be shown."""

    message: str
    at: int


class Record(BaseModel):
    """One open or decided confirmation, as in its file. Times are in Unix milliseconds.

    Beyond sessions.md 1.6: ``args_hash`` is the hash of the whole arguments, ``file`` an ``artifact://`` URL with all
    that was too long to show, ``replies`` the ids of messages that were taken as answers, ``withdrawn`` says that the
    cause was retracted. Members of others are kept.
    """

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    task_hash: TaskHash
    session_id: SessionId
    kind: Kind
    status: Status
    origin: SessionId
    deliver_to: SessionId
    thread_id: ThreadId | None = None
    turn_id: TurnId | None = None
    cause: Cause | None = None
    tool: str | None = None
    args: JsonValue = None
    args_hash: str | None = None
    text: str | None = None
    file: str | None = None
    choices: tuple[Choice, ...] = ()
    questions: tuple[Question, ...] = ()
    answers: tuple[Answer, ...] = ()
    approvers: Approvers
    requester: Person | None = None
    prompt: Shown | None = None
    replies: tuple[MessageId, ...] = ()
    created_at: int
    expires_at: int
    choice: Choice | None = None
    by: Person | None = None
    decided_at: int | None = None
    withdrawn: bool = False
    resolved_at: int | None = None
    closed_at: int | None = None
    error: Trouble | None = None

    @property
    def is_open(self) -> bool:
        return self.status == "open"

    @property
    def current(self) -> int:
        """The index of the question that is next; 0 for a confirmation."""
        return len(self.answers)

    def with_(self, **changes: Any) -> "Record":  # noqa: ANN401 - as pydantic's own
        return self.model_copy(update=changes)

    def document(self) -> dict[str, Any]:
        """The record as JSON values; empty members are left out."""
        return self.model_dump(mode="json", exclude_defaults=True)
