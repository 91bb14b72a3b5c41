"""Moments as the log counts them: Unix time in milliseconds."""

import time
from datetime import UTC, datetime
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def now_ms() -> int:
    """Now, by this machine's clock."""
    return time.time_ns() // 1_000_000


def milliseconds(moment: datetime) -> int:
    """A moment, exactly, rounded down; one without a zone is in UTC, as the platforms' are."""
    since = (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)) - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000 + since.microseconds // 1_000
