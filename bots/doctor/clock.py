"""This machine's clock against those of the platforms."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from bots.doctor.calls import Skew
from bots.doctor.verdict import Verdict, fail, ok, warn

UNUSUAL: Final = 2.0
WRONG: Final = 60.0
"""Seconds."""
_CURE: Final = "let the machine set its clock by itself (timedatectl set-ntp true)"


async def look_at_clock(platforms: Mapping[str, Callable[[], Awaitable[Skew | None]]]) -> Verdict:
    """The largest difference, by the header ``Date`` of their answers."""
    if not platforms:
        return ok("no platform to compare the clock with")
    found = [(name, skew) for name, ask in platforms.items() if (skew := await ask()) is not None]
    if not found:
        return warn("no platform told the time, so the clock was not compared", "mend the connection first")
    name, skew = max(found, key=lambda pair: abs(pair[1].ahead))
    surely = abs(skew.ahead) - skew.error
    told = f"our clock is {abs(skew.ahead):.0f} s {'behind' if skew.ahead > 0 else 'ahead of'} that of {name}"
    if surely > WRONG:
        return fail(told, _CURE)
    if surely > UNUSUAL:
        return warn(told, _CURE)
    return ok(f"our clock goes as that of {' and '.join(name for name, _ in found)}, to a second or two")
