"""How a record reads to people. Pure."""

import json
from datetime import UTC, datetime
from typing import Final

from core.chat.prompt import Answering, Prompt
from core.confirmations.record import Choice, Question, Record

LABELS: Final[dict[Choice, str]] = {"yes": "Yes", "always": "Always", "turn": "This turn", "no": "No", "stop": "Stop"}
_LAST_MOMENT: Final = 253_402_300_799_000
_OUTCOMES: Final[dict[Choice, str]] = {
    "yes": "✅ Approved",
    "always": "✅ Approved, and always for exactly this",
    "turn": "✅ Approved for the whole turn",
    "no": "❌ Denied",
    "stop": "🛑 Stopped",
}


def prompt_of(record: Record) -> Prompt:
    """What the chat shows of a record now: the question that is next, or how it ended."""
    return _confirmation(record) if record.kind == "confirm" else _question(record, record.current)


def closed_prompt(record: Record) -> Prompt:
    """What the message that shows a question becomes when there is nothing to press there any more."""
    if record.kind == "confirm":
        return _confirmation(record)
    return _question(record, record.prompt.question if record.prompt is not None else record.current)


def outcome_of(record: Record) -> str:
    """How it ended: what, who, when (UTC). Empty while it is open."""
    if record.is_open or record.decided_at is None:
        return ""
    return f"{_what(record)}{_who(record)}, {moment(record.decided_at)}"


def moment(at: int) -> str:
    """A time in ms, to the minute; one that no calendar holds as the last that one does."""
    return f"{datetime.fromtimestamp(min(at, _LAST_MOMENT) / 1000, UTC):%Y-%m-%d %H:%M} UTC"


def shown_args(record: Record) -> str:
    """The arguments as people read them: JSON on several lines, or what was kept of it."""
    if record.args is None:
        return ""
    if isinstance(record.args, str) and record.file is not None:
        return record.args  # JSON already, cut
    return json.dumps(record.args, ensure_ascii=False, indent=2)


def _confirmation(record: Record) -> Prompt:
    return Prompt(
        task=record.task_hash,
        question=0,
        answering="buttons",
        title="May I use",
        tool=f"{record.tool}",
        text=record.text or "",
        code=shown_args(record),
        options=tuple(LABELS[choice] for choice in record.choices),
        note=_note(record),
        outcome=outcome_of(record),
    )


def _question(record: Record, index: int) -> Prompt:
    index = min(index, len(record.questions) - 1)
    question = record.questions[index]
    shown = record.prompt
    return Prompt(
        task=record.task_hash,
        question=index,
        answering=_answering(question),
        title=f"({index + 1}/{len(record.questions)}) {question.question}",
        text="\n".join(part for part in (record.text, question.detail) if part),
        options=question.options,
        ticked=shown.ticked if shown is not None and shown.question == index else (),
        note=_note(record),
        outcome=_answer_given(record, index),
    )


def _answering(question: Question) -> Answering:
    if not question.options:
        return "text"
    return "several" if question.multi_select else "one"


def _answer_given(record: Record, index: int) -> str:
    if index >= len(record.answers):
        return outcome_of(record)
    answer = record.answers[index].answer
    said = answer if isinstance(answer, str) else ", ".join(answer)
    return f"✅ {said}{_who(record)}"


def _note(record: Record) -> str:
    match record.approvers:
        case "anyone":
            who = "Anyone here can answer"
        case "requester" if record.requester is not None:
            who = f"{record.requester.name or 'Who asked for it'} can answer"
        case _:
            who = "An admin can answer"
    return f"{who}, until {moment(record.expires_at)}."


def _what(record: Record) -> str:
    if record.status == "expired":
        return "⌛ Expired, which counts as a no"
    if record.withdrawn:
        return "↩️ Withdrawn: the message that it came from was taken back"
    if record.status == "answered":
        return "✅ Answered"
    return _OUTCOMES[record.choice] if record.choice is not None else f"It is over: {record.status}"


def _who(record: Record) -> str:
    if record.by is None:
        return ""
    return f" by {record.by.name or record.by.id}" if not record.by.is_operator else " by the operator"
