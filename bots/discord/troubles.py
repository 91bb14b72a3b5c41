"""Several things can be wrong at once, and one Health tells of them."""

from core.health import Health


class Troubles:
    """What is wrong with one part of the program, by cause: it is well when nothing is left."""

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
            self._health.ill("; ".join(self._sentences.values()))
        else:
            self._health.well()
