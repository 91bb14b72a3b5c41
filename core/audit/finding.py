"""What a check looks at, and what it says."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from core.entries import AnyEntry


class Finding(NamedTuple):
    """Something that breaks a rule. ``line`` is counted from 1; ``rule`` is one short word.

    ``message`` is a sentence for an operator. It may quote ids from the log, and no text of a chat.
    """

    line: int
    rule: str
    message: str


class Seen(NamedTuple):
    """One line of the right shape."""

    number: int
    raw: bytes
    entry: AnyEntry


class Rule(Protocol):
    """Takes the lines in file order, and says what it finds as soon as it knows."""

    def look(self, seen: Seen) -> Iterator[Finding]: ...

    def lost(self, number: int) -> None:
        """A line could not be read: what it said is unknown."""

    def end(self) -> Iterator[Finding]:
        """The file ends here."""
        ...


def short(value: str) -> str:
    """An id from the log, as a finding quotes it."""
    return repr(value if len(value) <= 80 else f"{value[:77]}...")
