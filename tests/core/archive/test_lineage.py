"""Which session goes on from which: each migration once, to its end, over restarts, and for no look-alike."""

import asyncio

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from core.archive.lineage import Lineage
from core.ids import SessionId
from tests.conftest import House

A, B, C = SessionId("tg--5"), SessionId("tg--1005"), SessionId("tg--2005")
LOOK_ALIKES = [SessionId(one) for one in ("tg-5", "tg--55", "tg--5~x", "dc-5", "tg-1005", "tg--100")]


async def test_a_chat_goes_on_and_no_other_does(house: House) -> None:
    lineage = await Lineage.load(house.store)
    assert lineage.current(A) == A
    await lineage.succeed(A, B)
    assert (lineage.current(A), lineage.current(B)) == (B, B)
    assert (lineage.earlier(B), lineage.earlier(A)) == ([A], [])
    assert [lineage.current(one) for one in LOOK_ALIKES] == LOOK_ALIKES


async def test_of_two_notices_the_first_counts_and_each_is_told(house: House) -> None:
    told: list[tuple[SessionId, SessionId]] = []

    async def hear(old: SessionId, new: SessionId) -> None:
        assert lineage.current(old) == new
        told.append((old, new))

    lineage = await Lineage.load(house.store)
    lineage.listen(hear)
    for new in (B, B, C):
        await lineage.succeed(A, new)
    assert lineage.current(A) == B
    assert told == [(A, B)] * 3


async def test_a_chat_that_moves_twice_is_followed_to_the_end(house: House) -> None:
    lineage = await Lineage.load(house.store)
    await lineage.succeed(A, B)
    await lineage.succeed(B, C)
    assert [lineage.current(one) for one in (A, B, C)] == [C, C, C]
    assert sorted(lineage.earlier(C)) == sorted([A, B])


async def test_nothing_goes_on_in_a_circle(house: House) -> None:
    lineage = await Lineage.load(house.store)
    for old, new in ((A, A), (A, B), (B, C), (C, A)):
        await lineage.succeed(old, new)
    assert lineage.current(A) == C


async def test_it_is_on_disk_when_it_is_said(house: House) -> None:
    lineage = await Lineage.load(house.store)
    await asyncio.gather(lineage.succeed(A, B), lineage.succeed(A, B))
    await lineage.descend(SessionId("temp-1"), A)
    await house.reopen()
    again = await Lineage.load(house.store)
    assert (again.current(A), again.earlier(B), lineage.earlier(B)) == (B, [A], [A])
    assert again.origin(SessionId("temp-1")) == A
    assert again.origin(A) == A


async def test_a_session_that_was_started_and_moved_keeps_both(house: House) -> None:
    lineage = await Lineage.load(house.store)
    await lineage.descend(A, C)
    await lineage.succeed(A, B)
    again = await Lineage.load(house.store)
    assert (again.current(A), again.origin(A)) == (B, C)


@pytest.mark.parametrize("rows", [[("a", "b", ""), ("b", "a", "")], [("a", "a", "")]])
async def test_a_circle_in_the_database_hangs_nobody(house: House, rows: list[tuple[str, str, str]]) -> None:
    lineage = Lineage(house.store, rows)
    assert lineage.current(SessionId("a")) in {"a", "b"}
    lineage.earlier(SessionId("a"))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd")), max_size=8))
async def test_whatever_moves_where_each_ends_in_one_that_stays(house: House, moves: list[tuple[str, str]]) -> None:
    lineage = Lineage(house.store)
    for old, new in moves:
        await lineage.succeed(SessionId(old), SessionId(new))
    for one in "abcd":
        end = lineage.current(SessionId(one))
        assert lineage.current(end) == end
        assert (one in lineage.earlier(end)) == (one != end)
