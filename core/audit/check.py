"""The check of one log: framing and shape here, the rules about meaning in their own files."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

import msgspec
from msgspec import Raw

from core.audit.finding import Finding, Rule, Seen, short
from core.audit.identity import Identity
from core.audit.images import ShownImages
from core.audit.lives import Lives
from core.audit.parsers import refused
from core.audit.references import References
from core.audit.resources import Sources
from core.audit.turns import ToolCalls, Turns
from core.codec import decode, parts_of
from core.entries import AnyEntry, AssistantMessage, Part, ToolMessage, ToolResultPart, Unknown, UserMessage
from core.errors import InvalidEntry, MalformedLine
from core.log.scan import Numbered, kind_of, numbered
from core.log.view import View

_OPAQUE: Final = frozenset({"content", "usage", "providerOptions", "set", "input", "value", "raw"})
"""Members whose JSON is somebody else's affair."""
_OUTPUTS: Final = frozenset({"text", "json", "error-text", "error-json", "execution-denied", "content"})
_PARTS: Final = frozenset({"text", "reasoning", "tool-call", "tool-result", "file", "reasoning-file", "image"})


def check(log: View, assets: Path | None) -> Iterator[Finding]:
    """Everything in a log that breaks a rule, in the order in which it becomes clear.

    ``assets`` is the folder of the session's sidecars; None leaves them unchecked, as for a file without its session.
    Ids are kept in memory, about 300 bytes for each message. Blocks; raises `OSError`.
    """
    identity = Identity()
    rules: list[Rule] = [
        identity, Lives(), Turns(), ToolCalls(), References(identity, log), ShownImages(),
        Sources(assets, log.sidecars),
    ]  # fmt: skip
    for line in numbered(log.read_at, log.size):
        if line.number == 1 and line.raw.startswith(b"\xef\xbb\xbf"):
            yield Finding(1, "bom", "the file begins with a byte order mark; remove its three bytes")
        if not line.raw.strip():
            if line.raw:
                yield Finding(line.number, "blank", "the line holds nothing but blanks")
            continue
        entry, findings = _read(line)
        yield from findings
        for rule in rules:
            if entry is None:
                rule.lost(line.number)
            else:
                yield from rule.look(Seen(line.number, line.raw, entry))
    for rule in rules:
        yield from rule.end()


def _read(line: Numbered) -> tuple[AnyEntry | None, list[Finding]]:
    try:
        entry = decode(line.raw)
    except MalformedLine as error:
        return None, [_unparsable(line, str(error))]
    except InvalidEntry as error:
        return None, [*_ending(line), Finding(line.number, "shape", f"wrong shape: {error}")]
    if not _is_text(line.raw) and (reason := refused(line.raw)) is not None:
        return None, [_unparsable(line, reason)]
    findings = [*_ending(line), *(Finding(line.number, rule, text) for rule, text in _shape(entry, line.raw))]
    return entry, findings


def _unparsable(line: Numbered, reason: str) -> Finding:
    if not line.ended:
        text = "torn tail: the last write was cut short; the next append closes it off, nothing else is lost"
        return Finding(line.number, "torn-tail", text)
    where = f"the line starts at byte {line.start} of the file; `ishiki log repair` removes it"
    return Finding(line.number, "json", f"not JSON: {reason}; {where}")


def _is_text(raw: bytes) -> bool:
    """Whether it is UTF-8 throughout. What nobody here reads, such as a tool's input, is not looked at by `decode`."""
    if raw.isascii():
        return True
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _ending(line: Numbered) -> Iterator[Finding]:
    if not line.ended:
        yield Finding(line.number, "line-end", "the last line is whole but lacks its line feed")


def _shape(entry: AnyEntry, raw: bytes) -> Iterator[tuple[str, str]]:
    """What the models let pass."""
    if isinstance(entry.data, AssistantMessage | ToolMessage | UserMessage):
        yield from _parts(entry.data.content)
    if isinstance(entry.data, Unknown) and entry.type == "event":
        yield "event", "an event of this kind is never stored; turn.start, turn.done, turn.failed and turn.aborted are"
    if isinstance(entry.data, Unknown) and entry.type == "message" and b'"role"' not in raw:
        yield "shape", "wrong shape: Object missing required field `role` - at `$.data`"
    if b"null" in raw:
        yield from (("null", f"{member} is null; an absent member is left out") for member in _nulls(raw))


def _parts(content: Raw) -> Iterator[tuple[str, str]]:
    try:
        parts = parts_of(content)
    except InvalidEntry as error:
        yield "shape", f"wrong shape: {error} - at `$.data.content`"
        return
    for index, part in enumerate(parts):
        if isinstance(part, Raw):
            kind = kind_of(bytes(part))
            if kind is None or kind.type is None:
                yield "shape", f"wrong shape: a part is an object with a `type` - at `$.data.content[{index}]`"
            elif kind.type in _PARTS:
                yield "shape", f"wrong shape: {_reason(part)} - at `$.data.content[{index}]`"
        elif isinstance(part, ToolResultPart) and part.output.type not in _OUTPUTS:
            yield (
                "shape",
                f"wrong shape: {short(part.output.type)} is no output - at `$.data.content[{index}].output.type`",
            )


def _reason(part: Raw) -> str:
    try:
        msgspec.json.decode(part, type=Part)
    except msgspec.ValidationError as error:
        return str(error)
    return "a part of another kind"


def _nulls(raw: bytes) -> list[str]:
    try:
        waiting: list[tuple[str, object]] = [("$", json.loads(raw))]
    except (ValueError, RecursionError):
        return []  # a number or a depth that only the other parser takes
    found: list[str] = []
    while waiting:
        path, value = waiting.pop()
        if value is None:
            found.append(path)
        elif isinstance(value, dict):
            members = cast("dict[str, object]", value).items()
            waiting += [(f"{path}.{name}", member) for name, member in members if name not in _OPAQUE]
        elif isinstance(value, list):
            waiting += [(f"{path}[{index}]", member) for index, member in enumerate(cast("list[object]", value))]
    return found
