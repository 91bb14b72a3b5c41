"""The program's own output: structlog, one line per event, on standard error; tokens and signatures blanked.

Every record passes `Blanking`, our own as well as those of the libraries, which write whole URLs where they please.
"""

import logging
import re
import sys
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any, Final

import structlog

LOUD_LIBRARIES: Final = ("httpx", "httpcore", "httpx2", "httpcore2", "discord", "telegram", "aiohttp", "uvicorn")
"""They name each URL they ask at INFO; of these only warnings are worth a line."""

# A Telegram bot token, a Discord bot token, a bearer, and the query of any URL (Discord's signatures are in it).
_SECRETS: Final = re.compile(
    r"\b\d{5,}(?::|%3A)[A-Za-z0-9_-]{20,}"
    r"|\b[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{4,10}\.[A-Za-z0-9_-]{20,}"
    r"|(?<=Bearer )\S+|(?<=Bot )[A-Za-z0-9._-]{20,}"
    r"|(?<=[\w/])\?[^\s\"'<>]*=[^\s\"'<>]*"
)


class Blanking:
    """Replaces secrets in text: the ones we were given, and what looks like one."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._given = [secret for secret in secrets if len(secret) >= 4]

    def text(self, text: str) -> str:
        for secret in self._given:
            text = text.replace(secret, "•••")
        return _SECRETS.sub("•••", text)

    def __call__(self, _logger: object, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
        """As a structlog processor."""
        for name, value in event.items():
            if isinstance(value, str):
                event[name] = self.text(value)
            elif isinstance(value, BaseException):
                event[name] = self.text(f"{type(value).__name__}: {value}")
        return event


def configure(level: str, style: str, secrets: Iterable[str] = ()) -> None:
    """Set up structlog and the standard library's logging alike. ``style`` is ``console`` or ``json``."""
    blanking = Blanking(secrets)
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        blanking,
    ]
    renderer: structlog.types.Processor = (
        structlog.processors.JSONRenderer(ensure_ascii=False)
        if style == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.add_logger_name, structlog.stdlib.ExtraAdder(), *shared],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
    )
    output = logging.StreamHandler(sys.stderr)
    output.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [output]
    root.setLevel(level.upper())
    for name in LOUD_LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
