"""How often one caller may ask: a token bucket for each, kept as the one number that tells how full it is (GCRA)."""

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

MOST_CALLERS: Final = 4096
"""Buckets that are kept. The one that was used longest ago goes first, as it is full again by then."""

_ROUNDED: Final = 1e-9
"""Seconds that sums of fractions may be wrong by."""


class Rates:
    """``per_second`` requests for each caller, and ``burst`` at once after a pause. 0 per second: as many as come."""

    def __init__(self, per_second: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval = 1 / per_second if per_second else 0.0
        self._slack = self._interval * (burst - 1)
        self._clock = clock
        self._full_at: OrderedDict[str, float] = OrderedDict()

    def wait(self, caller: str) -> float:
        """Take a token; else the seconds until there is one."""
        now = self._clock()
        full_at = max(self._full_at.get(caller, now), now)
        wait = full_at - self._slack - now
        if wait > _ROUNDED:
            return wait
        self._full_at[caller] = full_at + self._interval
        self._full_at.move_to_end(caller)
        if len(self._full_at) > MOST_CALLERS:
            self._full_at.popitem(last=False)
        return 0.0


def neighbourhood(address: str) -> str:
    """The address that counts: of IPv6 the network, as one machine has all of it."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if found.version == 4:
        return address
    return str(ipaddress.ip_network((found, 64), strict=False)) if found.ipv4_mapped is None else str(found.ipv4_mapped)
