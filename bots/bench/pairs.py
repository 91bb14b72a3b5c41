"""Ours and what stands beside it, in turns, so that whatever else the machine does meets both."""

import gc
from collections.abc import Awaitable, Callable
from statistics import median
from typing import NamedTuple

Run = Callable[[], Awaitable[float]]
"""One run; what it gives is a rate, or a time."""


class Pair(NamedTuple):
    """Medians over all runs. ``ratio`` is the median of the ratios within each pair."""

    ours: float
    beside: float
    ratio: float


async def in_turns(ours: Run, beside: Run, pairs: int) -> Pair:
    """One run of each to warm up, then so many pairs; who goes first changes."""
    await beside()
    await ours()
    runs: list[tuple[float, float]] = []
    for number in range(pairs):
        gc.collect()
        if number % 2:
            mine = await ours()
            gc.collect()
            theirs = await beside()
        else:
            theirs = await beside()
            gc.collect()
            mine = await ours()
        runs.append((mine, theirs))
    mine_all, theirs_all = zip(*runs, strict=True)
    return Pair(median(mine_all), median(theirs_all), median(mine / theirs for mine, theirs in runs))
