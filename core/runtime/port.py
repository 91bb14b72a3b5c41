"""What the core asks of an agent runtime (contract section 6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from msgspec import Raw

from core.confirmations.record import Record
from core.ids import EntryId, SessionId, TurnId


@dataclass(frozen=True, slots=True)
class Cause:
    """The entry that a turn answers, and the wake rule that it met."""

    entry_id: EntryId
    rule: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a turn came to. ``seen``: the last entry that the runtime took into account; None: the cause."""

    reply: str | None = None
    entries: tuple[Raw, ...] = ()
    seen: EntryId | None = None


class Liveness(Protocol):
    """Where it is kept which turns are alive. Raises nothing: a turn does not wait for it."""

    async def begin(self, session: SessionId, turn: TurnId) -> None:
        """A turn is queued."""
        ...

    async def end(self, session: SessionId, turn: TurnId) -> None:
        """It is over."""
        ...


class Runtime(Protocol):
    """An agent that is told what happens, and that may be woken.

    Raises `RuntimeUnavailable` when asking again may help and `RuntimeRefused` when this body never will be taken.
    """

    async def deliver(self, session: SessionId, lines: Sequence[bytes], *, key: EntryId) -> None:
        """Hand over log lines, ``trigger`` false. A repeat bears the same key and the same lines."""
        ...

    async def wake(self, session: SessionId, turn: TurnId, cause: Cause) -> Answer:
        """Run a turn; the call is the turn. Not repeated."""
        ...

    async def resolve(self, record: Record) -> None:
        """Tell a decision. A repeat says the same. Returns when it is taken, or nobody waits for it any more (410).

        Raises `RuntimeUnavailable` for everything else: an answer that gets lost would hold up somebody's work.
        """
        ...
