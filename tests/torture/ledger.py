"""In which ways what the runtime got, what turns came to and what was spoken differ from what the log says."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from bots.sandbox.runtime import Call, RuntimeSandbox
from core.ids import SessionId
from tests.torture.book import Json, Said

_ENDS = ("turn.done", "turn.failed", "turn.aborted")
_DELIVERED = ("ishiki.message.created", "ishiki.message.deleted", "ishiki.attachment")


def delivery_differences(lines: list[Json], taken: list[Json]) -> Iterator[str]:
    """``taken``: what the runtime got of a session, repeats left out."""
    owed = [line for line in lines if _is_delivered(line)]
    if taken == owed:
        return
    ids, got = [line["id"] for line in owed], [entry["id"] for entry in taken]
    if ids != got:
        missing, more = set(ids) - set(got), set(got) - set(ids)
        yield f"the runtime lacks {len(missing)} entries, has {len(more)} that the log has not, else out of order"
    else:
        yield "the runtime got entries that differ from their lines"


def turn_differences(lines: list[Json]) -> Iterator[str]:
    """Every turn that started has one end, which is its last line."""
    started = [line["turnId"] for line in lines if line["data"].get("type") == "turn.start"]
    ended = Counter(line["turnId"] for line in lines if line["data"].get("type") in _ENDS)
    for turn, times in Counter(started).items():
        if times != 1 or ended.pop(turn, 0) != 1:
            yield f"turn {turn} started {times} times and has not one end"
    for turn in ended:
        yield f"turn {turn} ended without a start"


def wake_differences(calls: Iterable[Call]) -> Iterator[str]:
    """No turn and no cause wakes twice."""
    wakes = [call.body for call in calls if call.path == "/wake" and call.status == 200]
    for turn, times in Counter(body["turnId"] for body in wakes).items():
        if times > 1:
            yield f"turn {turn} was called {times} times"
    for cause, times in Counter(body["cause"]["entryId"] for body in wakes).items():
        if times > 1:
            yield f"the runtime was woken {times} times for {cause}"


def owed_turns(lines: list[Json], said: Mapping[str, Said]) -> Iterator[str]:
    """The last message that wakes has a turn behind it."""
    waking = -1
    deleted = {fact["messageId"] for line in lines if (fact := _fact(line, "ishiki.message.deleted"))}
    for place, line in enumerate(lines):
        fact = _fact(line, "ishiki.message.created")
        if fact and "edited" not in fact and fact["messageId"] not in deleted and said[fact["messageId"]].wakes:
            waking = place
    if waking >= 0 and all(line["data"].get("type") != "turn.start" for line in lines[waking:]):
        yield f"nobody was woken for entry {lines[waking]['id']}"


def speech_differences(lines: list[Json], standing: Mapping[str, str], *, knows_nonces: bool) -> Iterator[str]:
    """``standing``: the bot's answers in the chat, text by id. Each stands there once, and the log knows of it.

    Where the platform knows no nonces, a part that was on its way when the program was killed may stand there unknown
    to the log: one for each turn that a kill ended. Where it does, everything was said to its end.
    """
    for text, times in Counter(standing.values()).items():
        if times > 1:
            yield f"{times} times said: {text[:60]!r}"
    known = [number for value in _outcomes(lines) for number in value.get("ids", value.get("sent", []))]
    for number, times in Counter(known).items():
        if times > 1:
            yield f"the log says {times} times that {number} was sent"
    if lost := set(known) - standing.keys():
        yield f"the log names {lost}, which do not stand in the chat"
    errors: list[Json] = [line["data"].get("error") or {} for line in lines]
    cut_off = [error for error in errors if error.get("name") == "Interrupted"]
    unknown = [text for number, text in standing.items() if number not in known]
    if knows_nonces and (failed := [value for value in _outcomes(lines) if not value["ok"]]):
        yield f"{len(failed)} answers were not said to their end: {failed[0]}"
    if len(unknown) > (0 if knows_nonces else len(cut_off)):
        yield f"{len(unknown)} answers stand in the chat that the log does not know: {[one[:60] for one in unknown]}"


def runtime_differences(runtime: RuntimeSandbox, logs: Mapping[SessionId, list[Json]]) -> Iterator[str]:
    """All that concerns the runtime, over all sessions."""
    yield from wake_differences(runtime.calls)
    for session, lines in logs.items():
        for difference in (
            *delivery_differences(lines, runtime.entries.get(session, [])),
            *turn_differences(lines),
        ):
            yield f"{session}: {difference}"


def _is_delivered(line: Json) -> bool:
    data = line["data"]
    if line["type"] != "message":
        return False
    platform = data.get("type") in _DELIVERED and data["data"].get("source", "platform") == "platform"
    return platform or data["role"] == "user"


def _fact(line: Json, kind: str) -> Json | None:
    return line["data"]["data"] if line["type"] == "message" and line["data"].get("type") == kind else None


def _outcomes(lines: list[Json]) -> Iterator[Json]:
    """What came of each `send_message` call."""
    for line in lines:
        if line["type"] == "message" and line["data"].get("role") == "tool":
            parts = line["data"]["content"]
            yield from (part["output"]["value"] for part in parts if part["toolName"] == "send_message")
