"""What goes wrong on purpose: refusals, floods, lost answers and bad downloads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from bots.sandbox.telegram.errors import REASONS, ApiError, flood

FileFault = Literal["slow", "endless", "missing"]


@dataclass
class _Fault:
    part: str
    times: int
    error: ApiError | None
    chat_id: int | None = None
    delay: float = 0.0


@dataclass
class Faults:
    """Faults wait for the methods whose name contains `part` (letter case ignored) and wear off after `times`."""

    _refusals: list[_Fault] = field(default_factory=list[_Fault])
    _lost: list[_Fault] = field(default_factory=list[_Fault])
    _garbled: list[_Fault] = field(default_factory=list[_Fault])
    _slow: list[_Fault] = field(default_factory=list[_Fault])
    _files: list[tuple[str, FileFault, int]] = field(default_factory=list[tuple[str, FileFault, int]])

    def flood(self, part: str, retry_after: int, times: int, chat_id: int | None) -> None:
        """Refuse with 429."""
        self._refusals.append(_Fault(part.lower(), times, flood(retry_after), chat_id))

    def refuse(self, part: str, status: int, times: int, description: str | None) -> None:
        """Refuse with `status`, worded as usual unless a description is given."""
        error = ApiError(status, description or REASONS.get(status, "Bad Request"))
        self._refusals.append(_Fault(part.lower(), times, error))

    def lose_answer(self, part: str, times: int) -> None:
        """Do what is asked, then drop the connection instead of answering."""
        self._lost.append(_Fault(part.lower(), times, None))

    def garble(self, part: str, times: int) -> None:
        """Answer with something that is no JSON."""
        self._garbled.append(_Fault(part.lower(), times, None))

    def slow(self, part: str, seconds: float, times: int) -> None:
        """Let calls wait before anything happens."""
        self._slow.append(_Fault(part.lower(), times, None, delay=seconds))

    def spoil(self, part: str, fault: FileFault, times: int) -> None:
        """Spoil downloads whose path or original name contains `part`."""
        self._files.append((part, fault, times))

    def refusal(self, method: str, chat_id: int | None) -> ApiError | None:
        """The refusal that waits for this call, used up by it."""
        fault = _take(self._refusals, method, chat_id)
        return fault.error if fault else None

    def loses_answer(self, method: str) -> bool:
        """Whether the answer to this call gets lost."""
        return _take(self._lost, method, None) is not None

    def garbles(self, method: str) -> bool:
        """Whether the answer to this call is no JSON."""
        return _take(self._garbled, method, None) is not None

    def delay(self, method: str) -> float:
        """Seconds that this call waits."""
        fault = _take(self._slow, method, None)
        return fault.delay if fault else 0.0

    def file_fault(self, *names: str) -> FileFault | None:
        """The fault that waits for this download, used up by it."""
        for index, (part, fault, times) in enumerate(self._files):
            if any(part in name for name in names):
                self._files[index : index + 1] = [(part, fault, times - 1)] if times > 1 else []
                return fault
        return None


def _take(faults: list[_Fault], method: str, chat_id: int | None) -> _Fault | None:
    for fault in faults:
        if fault.part in method.lower() and fault.chat_id in {None, chat_id}:
            fault.times -= 1
            if fault.times <= 0:
                faults.remove(fault)
            return fault
    return None
