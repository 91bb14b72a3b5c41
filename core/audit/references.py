"""What one line says of others above it: anchors and folds; and what summaries and stores look like."""

from collections.abc import Iterator
from typing import Final

import msgspec

from core.audit.finding import Finding, Seen, short
from core.audit.identity import Identity
from core.entries import ChatCompact, ChatShake, CodemodeStore, Compact
from core.log.scan import numbered
from core.log.view import View

SECTIONS: Final = ["人物与关系", "偏好与边界", "约定与承诺", "未完成话题", "已确认事实", "工作状态", "当前氛围"]


class _WithId(msgspec.Struct):
    id: str | None = None


_with_id = msgspec.json.Decoder(_WithId)


class References:
    """Every id that a line names stands above it; folds do not overlap."""

    def __init__(self, identity: Identity, log: View) -> None:
        self._identity = identity
        self._log = log
        self._shakes: set[str] = set()
        self._ranges: list[tuple[int, str, str]] = []

    def look(self, seen: Seen) -> Iterator[Finding]:
        match seen.entry.data:
            case CodemodeStore() as store:
                for name in store.set.keys() & store.delete:
                    yield Finding(seen.number, "store", f"the key {short(name)} is both set and deleted")
            case ChatShake() as shake:
                self._shakes.add(seen.entry.id)
                self._ranges.append((seen.number, shake.range.start, shake.range.end))
                yield from self._entry(seen.number, "range.start", shake.range.start)
                yield from self._entry(seen.number, "range.end", shake.range.end)
                for index, region in enumerate(shake.regions):
                    yield from self._entry(seen.number, f"regions[{index}].entryId", region.entry_id)
            case ChatCompact() as compact:
                yield from self._entry(seen.number, "lastEntryId", compact.last_entry_id)
                yield from _summary(seen.number, compact)
                for index, shake_id in enumerate(compact.covered_shake_ids):
                    if shake_id not in self._shakes:
                        text = f"coveredShakeIds[{index}] names {short(shake_id)}, which is no fold above"
                        yield Finding(seen.number, "reference", text)
            case Compact() as compact:
                yield from self._entry(seen.number, "lastEntryId", compact.last_entry_id)
            case _:
                pass

    def lost(self, number: int) -> None:
        pass

    def end(self) -> Iterator[Finding]:
        """Folds are few: only where there are any, the log is read once more for the places of what they name."""
        if not self._ranges:
            return
        wanted = {entry for _, *both in self._ranges for entry in both}
        places: dict[str, int] = {}
        for line in numbered(self._log.read_at, self._log.size):
            if (entry := _id_of(line.raw)) in wanted:
                places.setdefault(entry, line.number)
        newest = 0
        for first, last, number in sorted(
            (places[start], places[end], number) for number, start, end in self._ranges if {start, end} <= places.keys()
        ):
            if last < first:
                yield Finding(number, "fold", f"range.end stands on line {last}, above range.start on line {first}")
            elif first <= newest:
                yield Finding(number, "fold", f"the range begins on line {first}, within that of another fold")
            newest = max(newest, last)

    def _entry(self, number: int, member: str, entry: str) -> Iterator[Finding]:
        if not self._identity.holds(entry):
            yield Finding(number, "reference", f"{member} names {short(entry)}, which is no entry above")


def _summary(number: int, compact: ChatCompact) -> Iterator[Finding]:
    headings = [line.removeprefix("## ").strip() for line in compact.summary.split("\n") if line.startswith("## ")]
    if headings != SECTIONS:
        yield Finding(number, "summary", f"the summary has not the seven sections {', '.join(SECTIONS)} in this order")
    if [attempt.attempt for attempt in compact.attempts] != [*range(1, len(compact.attempts) + 1)]:
        yield Finding(number, "summary", "the attempts do not count from 1")


def _id_of(raw: bytes) -> str | None:
    try:
        return _with_id.decode(raw).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
