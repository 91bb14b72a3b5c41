"""Leave that was given before: ``always`` for exactly these arguments, ``turn`` for a turn's rest (sessions.md 4.3).

Nothing is ever approved by an error: what cannot be looked up is asked.
"""

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Sequence, Set
from typing import Final, Protocol

import structlog

from core.clock import now_ms
from core.confirmations.life import may_answer, stopped
from core.confirmations.record import OUTCOMES, Choice, Person, Record
from core.errors import StoreUnavailable
from core.ids import SessionId, TurnId

MOST_TURNS: Final = 10_000
_FOR_ALL: Final = "admin "
"""In front of who granted a rule, where it holds for everybody's requests and not for theirs only."""

logger = structlog.get_logger()


class Rules(Protocol):
    """Leave for one tool with exactly these arguments, kept for ever. Raises `StoreUnavailable`."""

    async def grant(self, session: SessionId, tool: str, args_hash: str, by: str, at: int) -> None: ...

    async def granted(self, sessions: Sequence[SessionId], tool: str, args_hash: str) -> list[str]:
        """Who granted it, in these sessions, oldest first."""
        ...


class Leave:
    """Remembers leave and applies it to what is asked later."""

    def __init__(
        self,
        rules: Rules,
        *,
        admins: Set[tuple[str, str]] = frozenset(),
        earlier: Callable[[SessionId], Sequence[SessionId]] = lambda _session: (),
    ) -> None:
        """``earlier`` are the sessions that one goes on from, whose rules hold in it."""
        self._rules = rules
        self._admins = admins
        self._earlier = earlier
        self._since = now_ms()
        self._turns: OrderedDict[tuple[SessionId, TurnId], Record] = OrderedDict()

    async def remember(self, record: Record) -> None:
        """Take note of a decision that was just made."""
        of_this_run = record.created_at >= self._since  # no turn goes on after a restart (contract section 9)
        is_of_turn = record.turn_id is not None and of_this_run and record.choice in {"turn", "stop"}
        if record.turn_id is not None and is_of_turn and self.stopped_by(record) is None:
            self._turns[record.session_id, record.turn_id] = record
            if len(self._turns) > MOST_TURNS:
                self._turns.popitem(last=False)
        if record.choice == "always" and record.by is not None and record.tool and record.args_hash:
            granted_by = self._scope(record, record.by)
            try:
                await self._rules.grant(
                    record.session_id, record.tool, record.args_hash, granted_by, record.decided_at or 0
                )
            except StoreUnavailable as error:
                # It will be asked again.
                logger.warning("rule_not_kept", session=record.session_id, reason=type(error).__name__)

    async def applied(self, record: Record, now: int) -> Record:
        """A new record, decided already where leave holds for it or its turn was stopped."""
        if (stop := self.stopped_by(record)) is not None:
            return stopped(record, stop.by, now).with_(closed_at=now)
        before = self._before(record)
        granter = before.by if before is not None and "turn" in record.choices else None
        if granter is not None and may_answer(record, granter, self._admins):
            return _approved(record, "turn", granter, now)
        if "always" in record.choices and (granter := await self._granter(record)) is not None:
            return _approved(record, "always", granter, now)
        return record

    def stopped_by(self, record: Record) -> Record | None:
        """What stopped the turn of a record."""
        before = self._before(record)
        return before if before is not None and before.choice == "stop" else None

    def _before(self, record: Record) -> Record | None:
        return None if record.turn_id is None else self._turns.get((record.session_id, record.turn_id))

    async def _granter(self, record: Record) -> Person | None:
        """Who gave leave for this for ever; None where nobody did."""
        if not record.tool or not record.args_hash:
            return None
        sessions = [record.session_id, *self._earlier(record.session_id)]
        try:
            granted = await self._rules.granted(sessions, record.tool, record.args_hash)
        except StoreUnavailable as error:
            logger.warning("rules_not_read", session=record.session_id, reason=type(error).__name__)
            return None
        return next((person for by in granted if (person := self._holds(by, record)) is not None), None)

    def _holds(self, granted_by: str, record: Record) -> Person | None:
        for_all = granted_by.startswith(_FOR_ALL)
        platform, _, number = granted_by.removeprefix(_FOR_ALL).partition(":")
        person = Person(platform=platform, id=number)
        if for_all:
            holds = person.is_operator or person.key in self._admins
        else:
            is_theirs = record.requester is not None and record.requester.key == person.key
            holds = is_theirs and may_answer(record, person, self._admins)
        return person if holds else None

    def _scope(self, record: Record, by: Person) -> str:
        """What a requester grants holds for that requester only, also where it is an admin (contract section 9)."""
        own = record.requester is not None and record.requester.key == by.key
        for_all = by.is_operator or (by.key in self._admins and not own)
        return f"{_FOR_ALL if for_all else ''}{by.platform}:{by.id}"


def args_hash(args: object) -> str:
    """SHA-256 in hex over canonical JSON. Raises `ValueError` for what is no JSON."""
    text = json.dumps(args, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _approved(record: Record, choice: Choice, by: Person, now: int) -> Record:
    """Decided without being asked, so there is no prompt to close."""
    return record.with_(status=OUTCOMES[choice], choice=choice, by=by, decided_at=now, closed_at=now)
