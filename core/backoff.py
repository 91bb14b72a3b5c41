"""How long to wait before asking again."""

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from tenacity import RetryCallState, wait_exponential

from core.errors import ChatUnavailable

_growing = wait_exponential(multiplier=0.5, max=30)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds from a ``Retry-After`` header: a number or an HTTP date (RFC 9110, 10.2.3); at most an hour."""
    value = headers.get("Retry-After", "").strip()
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except ValueError:
            return None
    return min(max(seconds, 0.0), 3600.0) if math.isfinite(seconds) else None


def as_asked(state: RetryCallState) -> float:
    """The seconds that a platform wants us to wait, else growing ones, up to 30: a ``wait`` for tenacity."""
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after if isinstance(error, ChatUnavailable) else None
    return asked if asked is not None else _growing(state)
