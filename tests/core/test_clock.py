"""Moments in milliseconds."""

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest

from core.clock import milliseconds, now_ms


@pytest.mark.parametrize(
    ("moment", "told"),
    [
        (datetime(1970, 1, 1, tzinfo=UTC), 0),
        (datetime(2026, 11, 1, 12, 0, 0, 123_999, tzinfo=UTC), 1793534400123),
        (datetime(2026, 11, 1, 12, 0, 0, 123_999), 1793534400123),  # noqa: DTZ001 - one without a zone is the case
        (datetime(2026, 11, 1, 14, tzinfo=timezone(timedelta(hours=2))), 1793534400000),
        (datetime(1969, 12, 31, 23, 59, 59, 999_500, tzinfo=UTC), -1),
    ],
)
def test_a_moment_is_counted_in_whole_milliseconds(moment: datetime, told: int) -> None:
    assert milliseconds(moment) == told


def test_now_is_between_before_and_after() -> None:
    before = int(time.time() * 1000)
    assert before <= now_ms() <= int(time.time() * 1000) + 1
