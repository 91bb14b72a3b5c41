"""What a person says in a session that is no chat of a platform (log-format 6)."""

from core.clock import now_ms
from core.codec import raw_json
from core.entries import AnyEntry, UserMessage, message_entry
from core.ids import new_uuid
from core.sessions.facts import Written
from core.sessions.state import SessionState


def line_of(content: str) -> Written:
    """The ``user`` line of a plain text; it belongs to the turn that runs when it is written."""

    def lines(state: SessionState) -> tuple[AnyEntry, ...]:
        now = now_ms()
        message = UserMessage(id=new_uuid(), timestamp=now, content=raw_json(content))
        return (message_entry(message, now=now, turn_id=state.open_turn),)

    return Written(lines)
