"""What goes wrong on demand, and rate limits as Discord keeps them (Rate Limits)."""

import hashlib
import time
from dataclasses import dataclass, field

from bots.sandbox.discord.model import JsonObject


@dataclass(slots=True)
class Fault:
    """Something that happens to the next `times` requests whose "METHOD /path" contains `route`.

    `delay` seconds pass first. Then, if `retry_after` is set, 429; else if `status` is set, that status; with
    `status=0` the connection is cut. `acted` carries the request out before its answer is lost. `body` is what is
    answered instead of JSON.
    """

    route: str
    times: int = 1
    status: int | None = None
    retry_after: float | None = None
    via: bool = True
    is_global: bool = False
    delay: float = 0.0
    acted: bool = False
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A REST request as it came in: `path` without `/api/v10`, `files` by name."""

    method: str
    path: str
    json: JsonObject
    files: tuple[str, ...] = ()


@dataclass(slots=True)
class Faults:
    pending: list[Fault] = field(default_factory=list[Fault])

    def take(self, route: str) -> Fault | None:
        """The fault that this request meets, used up once."""
        for fault in self.pending:
            if fault.route in route:
                fault.times -= 1
                if fault.times <= 0:
                    self.pending.remove(fault)
                return fault
        return None


@dataclass(slots=True)
class _Window:
    ends: float
    left: int


class Buckets:
    """Counts requests per route and major parameter in windows of one second."""

    def __init__(self, per_second: int) -> None:
        self._per_second = per_second
        self._windows: dict[str, _Window] = {}

    def take(self, route: str, major: str) -> tuple[bool, float, dict[str, str]]:
        """Count one request. Returns whether it may pass, the seconds until the window ends, and the headers."""
        bucket = hashlib.sha256(route.encode()).hexdigest()[:32]
        now = time.time()
        window = self._windows.get(bucket + major)
        if window is None or window.ends <= now:
            window = self._windows[bucket + major] = _Window(now + 1.0, self._per_second)
        passes = window.left > 0
        window.left = max(0, window.left - 1)
        after = window.ends - now
        return passes, after, self._headers(bucket, window.left, window.ends, after)

    def _headers(self, bucket: str, left: int, ends: float, after: float) -> dict[str, str]:
        return {
            "X-RateLimit-Limit": str(self._per_second),
            "X-RateLimit-Remaining": str(left),
            "X-RateLimit-Reset": f"{ends:.3f}",
            "X-RateLimit-Reset-After": f"{after:.3f}",
            "X-RateLimit-Bucket": bucket,
        }
