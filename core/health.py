"""How a part of the program is doing, for `/readyz`, for metrics and for the operator's eyes."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Health:
    """One part: a platform, the disk, the runtime.

    ``problem`` is one sentence with the cure and without a secret, None while all is well. ``unread`` counts by kind
    what arrived and could not be understood.
    """

    name: str
    problem: str | None = "not connected yet"
    unread: Counter[str] = field(default_factory=Counter[str])

    @property
    def ready(self) -> bool:
        return self.problem is None

    def well(self) -> None:
        self.problem = None

    def ill(self, problem: str) -> None:
        self.problem = problem
