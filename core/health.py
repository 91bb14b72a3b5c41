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


class Troubles:
    """What is wrong with one part of the program, by cause. One Health tells of all; it is well when none is left."""

    def __init__(self, health: Health) -> None:
        self._health = health
        self._sentences: dict[str, str] = {}

    def begin(self, cause: str, sentence: str) -> None:
        """Something is wrong; ``sentence`` as `Health.ill` wants it."""
        self._sentences[cause] = sentence
        self._tell()

    def end(self, cause: str) -> None:
        """It no longer is, or never was."""
        if self._sentences.pop(cause, None) is not None:
            self._tell()

    def _tell(self) -> None:
        if self._sentences:
            self._health.ill("; ".join(dict.fromkeys(self._sentences.values())))
        else:
            self._health.well()
