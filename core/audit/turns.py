"""Turns are balanced, each line bears the id that it must (log-format 2.1), each tool call has its result."""

from collections.abc import Iterator
from typing import Literal

from core.audit.finding import Finding, Seen, short
from core.codec import parts_of
from core.entries import (
    AnyEntry,
    AssistantMessage,
    Attachment,
    ChatCompact,
    ChatShake,
    CodemodeStore,
    Compact,
    CustomMessage,
    Images,
    Narrative,
    State,
    ToolCallPart,
    ToolMessage,
    ToolResultPart,
    TurnAborted,
    TurnDone,
    TurnEvent,
    TurnFailed,
    TurnStart,
    UserMessage,
    fact_of,
)
from core.errors import InvalidEntry

Bearing = Literal["running", "always", "late", "never", "free"]


def bearing_of(entry: AnyEntry) -> Bearing:
    """Whether a line bears a turn's id: that of the running turn if any, always, also after its end, never."""
    match entry.data:
        case AssistantMessage() | ToolMessage() | Images() | CodemodeStore():
            return "always"
        case Narrative():
            return "late"
        case State() | ChatShake() | ChatCompact() | Compact():
            return "never"
        case UserMessage():
            return "running"
        case CustomMessage():
            fact = fact_of(entry)
            return "always" if isinstance(fact, Attachment) and fact.source != "platform" else "running"
        case _:
            return "free"


class Turns:
    """One turn at a time; one may be open at the end of a live file."""

    def __init__(self) -> None:
        self._open: dict[str, int] = {}
        self._ended: set[str] = set()
        self._newest: str | None = None
        self._sure = True

    def look(self, seen: Seen) -> Iterator[Finding]:
        match seen.entry.data:
            case TurnStart() | TurnDone() | TurnFailed() | TurnAborted() as event:
                yield from self._event(seen, event)
            case _:
                yield from self._line(seen)

    def lost(self, number: int) -> None:
        self._sure = False  # the line may have been the start or the end of a turn

    def end(self) -> Iterator[Finding]:
        for turn, number in self._open.items():
            if turn != self._newest:
                yield Finding(number, "turn", f"turn {short(turn)} has no end, though another came after it")

    def _event(self, seen: Seen, event: TurnEvent) -> Iterator[Finding]:
        turn = event.turn_id
        if seen.entry.turn_id != turn:
            yield Finding(seen.number, "turn-id", f"the event is of turn {short(turn)}, the line bears another turnId")
        known = turn in self._open or turn in self._ended
        if isinstance(event, TurnStart):
            if known:
                yield Finding(seen.number, "turn", f"turn {short(turn)} starts a second time")
            elif self._open:
                other = next(reversed(self._open))
                yield Finding(seen.number, "turn", f"turn {short(turn)} starts while turn {short(other)} is open")
            self._open[turn] = seen.number
            self._newest = turn
        elif self._open.pop(turn, None) is None:
            what = "ends a second time" if known else "ends without a turn.start above"
            yield Finding(seen.number, "turn", f"turn {short(turn)} {what}")
        if not isinstance(event, TurnStart):
            self._ended.add(turn)
        self._sure = True

    def _line(self, seen: Seen) -> Iterator[Finding]:
        turn, bearing = seen.entry.turn_id, bearing_of(seen.entry)
        if bearing == "free":
            return
        if turn is None:
            if bearing in ("always", "late"):
                yield Finding(seen.number, "turn-id", "a line of this kind always bears a turnId; this one has none")
            elif bearing == "running" and self._open and self._sure:
                running = short(next(reversed(self._open)))
                yield Finding(seen.number, "turn-id", f"the line came during turn {running} and lacks its turnId")
        elif bearing == "never":
            yield Finding(seen.number, "turn-id", "a line of this kind never bears a turnId; this one does")
        elif turn in self._ended:
            if bearing != "late":
                yield Finding(seen.number, "turn", f"a line of turn {short(turn)} stands after its end")
        elif turn not in self._open:
            yield Finding(seen.number, "turn", f"no turn.start of turn {short(turn)} stands above its line")


class ToolCalls:
    """Every call is followed by its result, every result by nothing but its call preceded."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str | None, str], int] = {}
        self._open: set[str] = set()

    def look(self, seen: Seen) -> Iterator[Finding]:
        turn = seen.entry.turn_id
        match seen.entry.data:
            case AssistantMessage() as message:
                for part in _parts(message):
                    if isinstance(part, ToolCallPart) and not part.provider_executed:
                        yield from self._called(seen.number, turn, part.tool_call_id)
            case ToolMessage() as message:
                for part in _parts(message):
                    if isinstance(part, ToolResultPart) and self._waiting.pop((turn, part.tool_call_id), None) is None:
                        text = f"no tool call {short(part.tool_call_id)} of this turn stands above its result"
                        yield Finding(seen.number, "tool-call", text)
            case TurnStart(turn_id=started):
                self._open.add(started)
            case TurnDone() | TurnFailed() | TurnAborted() as event:
                self._open.discard(event.turn_id)
                yield from self._unanswered(event.turn_id)
            case _:
                pass

    def lost(self, number: int) -> None:
        pass

    def end(self) -> Iterator[Finding]:
        """The step of a turn that is still open may have been cut between its two lines."""
        for turn in {turn for turn, _ in self._waiting} - self._open:
            yield from self._unanswered(turn)

    def _called(self, number: int, turn: str | None, call: str) -> Iterator[Finding]:
        if (turn, call) in self._waiting:
            yield Finding(number, "tool-call", f"tool call {short(call)} is made again before its result")
        self._waiting[turn, call] = number

    def _unanswered(self, turn: str | None) -> Iterator[Finding]:
        for of_turn, call in [key for key in self._waiting if key[0] == turn]:
            number = self._waiting.pop((of_turn, call))
            yield Finding(number, "tool-call", f"tool call {short(call)} has no result in its turn")


def _parts(message: AssistantMessage | ToolMessage) -> list[object]:
    try:
        return [*parts_of(message.content)]
    except InvalidEntry:
        return []  # said by the check of its shape
