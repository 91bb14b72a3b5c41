"""What models cost: totals of the table ``usage`` (sessions.md 2.5)."""

import sqlite3
from typing import Final, NamedTuple

from core.archive.store import Store
from core.clock import now_ms

KEPT_SECONDS: Final = 28 * 86_400
WINDOWS: Final = {"24h": 86_400, "7d": 7 * 86_400, "28d": KEPT_SECONDS}


class Total(NamedTuple):
    """Tokens of one model within a window; ``output_tps`` is per second, over replies of which the time is known."""

    model: str
    replies: int
    input: int
    output: int
    write: int
    hit: int
    output_tps: float | None


class Usage:
    """Raises `StoreUnavailable`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def totals(self) -> dict[str, list[Total]]:
        """By window, the models that were used in it, by name."""
        now = now_ms() // 1000
        return await self._store.run(
            lambda database: {name: _totals(database, now - seconds) for name, seconds in WINDOWS.items()}
        )


def prune_usage(database: sqlite3.Connection, now: int) -> None:
    """Let go of what is older than 28 days. ``now`` in seconds; within the caller's transaction."""
    database.execute("DELETE FROM usage WHERE send_at < ?", (now - KEPT_SECONDS,))


def _totals(database: sqlite3.Connection, since: int) -> list[Total]:
    rows = database.execute(
        'SELECT model, count(*), sum(input), sum(output), sum("write"), sum(hit), '
        "1000.0 * sum(output) FILTER (WHERE elapsed_ms > 0) / sum(elapsed_ms) FILTER (WHERE elapsed_ms > 0) "
        "FROM usage WHERE send_at >= ? GROUP BY model ORDER BY model",
        (since,),
    )
    return [Total(*row) for row in rows]
