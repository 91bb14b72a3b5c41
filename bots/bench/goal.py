"""What a row of the table is: how it is measured, how much of it, and what it should come to."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured. ``pairs`` are runs of ours and of what stands beside it, in turns; ``seconds`` of load."""

    pairs: int = 7
    messages: int = 10_000
    updates: int = 3_000
    appends: int = 20_000
    delays: int = 2_000
    entries: int = 500_000
    log_bytes: int = 1 << 30
    looks: int = 1_000
    sessions: int = 10_000
    entries_each: int = 100
    seconds: float = 60.0
    archived: int = 1_000_000
    burst: int = 100_000


FULL: Final = Sizes()
QUICK: Final = Sizes(
    pairs=3,
    messages=3_000,
    updates=1_000,
    appends=6_000,
    delays=500,
    entries=100_000,
    log_bytes=1 << 27,
    looks=300,
    sessions=2_000,
    entries_each=20,
    seconds=6.0,
    archived=100_000,
    burst=20_000,
)
TINY: Final = Sizes(
    pairs=1,
    messages=200,
    updates=200,
    appends=400,
    delays=20,
    entries=2_000,
    log_bytes=1 << 20,
    looks=20,
    sessions=20,
    entries_each=10,
    seconds=0.6,
    archived=2_000,
    burst=400,
)
"""Tells nothing but that a row can be measured."""
SIZES: Final = {"full": FULL, "quick": QUICK, "tiny": TINY}


@dataclass(frozen=True, slots=True)
class Bench:
    """Where a row may write, in a folder that is its own, and how much it is to measure."""

    folder: Path
    sizes: Sizes


@dataclass(frozen=True, slots=True)
class Measured:
    """What came out, and the figures that it was made of. ``value`` None: not measured, and ``detail`` says why."""

    value: float | None
    detail: str


@dataclass(frozen=True, slots=True)
class Goal:
    """``unit`` is ``×`` for a ratio, or what the figure is in."""

    limit: float
    unit: str = "×"
    at_least: bool = False

    def met_by(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {shown(self.limit, self.unit)}"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    name: str
    what: str
    goal: Goal
    measure: Callable[[Bench], Measured]


def shown(value: float, unit: str) -> str:
    """A figure as a person reads it."""
    digits = f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"
    return f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits}{'' if unit == '×' else ' '}{unit}"


def each_second(count: float) -> str:
    """A rate as a person reads it."""
    return f"{count:,.0f}/s"
