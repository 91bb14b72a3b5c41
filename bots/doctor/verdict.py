"""What a check says, and what it raises where it cannot."""

from collections.abc import Awaitable, Callable
from typing import Literal, NamedTuple

Status = Literal["ok", "warn", "fail"]


class Verdict(NamedTuple):
    """One sentence for an operator, and where it is not ok the cure. Neither holds a secret or text of a chat."""

    status: Status
    message: str
    cure: str = ""


class Check(NamedTuple):
    """A name that stays the same for programs, and how to find out. ``look`` raises `NotLookedAt` and `Unanswered`."""

    name: str
    look: Callable[[], Awaitable[Verdict]]


class Finding(NamedTuple):
    """One line of the report; the fields of ``--json``."""

    check: str
    status: Status
    message: str
    cure: str


class NotLookedAt(Exception):
    """There is nothing to go by since an earlier check failed, which tells why. ``str`` of it is that check's name."""


class Unanswered(Exception):
    """Somebody who was asked gave no answer that can be used."""

    def __init__(self, message: str, cure: str) -> None:
        super().__init__(message)
        self.cure = cure


def ok(message: str) -> Verdict:
    return Verdict("ok", message)


def warn(message: str, cure: str) -> Verdict:
    """Something works, but not as it should, or not for long."""
    return Verdict("warn", message, cure)


def fail(message: str, cure: str) -> Verdict:
    """Something does not work until somebody mends it."""
    return Verdict("fail", message, cure)


def listed(names: list[str], most: int = 5) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def counted(number: int, noun: str) -> str:
    """``1 log``, ``2 logs``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
