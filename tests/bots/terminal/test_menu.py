"""Which sessions the menu lists, under which tabs, in which order."""

from bots.terminal.menu import Row, is_listed, listed, newest, short, tabs, when
from core.ids import SessionId, new_session

CLI = SessionId("cli-00000000-0000-4000-8000-000000000001")
CHAT = SessionId("chat-00000000-0000-4000-8000-000000000001")
TG, DC, DC2 = SessionId("tg--100"), SessionId("dc-1"), SessionId("dc-2")


def rows(*sessions: SessionId) -> list[Row]:
    return [Row(session) for session in sessions]


def test_one_prefix_needs_no_tabs_and_two_have_three():
    assert tabs([]) == []
    assert tabs(rows(DC, DC2)) == []
    assert tabs(rows(DC, CLI)) == ["all", "cli", "dc"]


def test_tabs_are_terminal_telegram_discord_web():
    assert tabs(rows(CHAT, DC, TG, CLI)) == ["all", "cli", "tg", "dc", "chat"]


def test_the_current_session_comes_first_then_the_others_in_the_order_of_the_tabs():
    found = listed(rows(CHAT, DC2, DC, TG, CLI), "all", DC2)
    assert [row.session for row in found] == [DC2, CLI, TG, DC, CHAT]
    assert [row.session for row in listed(rows(CHAT, DC2, DC), "dc", CHAT)] == [DC, DC2]


def test_temporary_sessions_are_not_listed():
    assert not is_listed(new_session("temp"))
    assert all(map(is_listed, (CLI, CHAT, TG, DC)))


def test_a_row_shows_the_name_else_what_is_enough_of_the_id():
    assert Row(CLI, "notes").display == "notes"
    assert Row(CLI).display == short(CLI) == "cli-00000000"
    assert Row(TG).display == TG


def test_the_newest_session_is_begun_in():
    assert newest([]) is None
    assert newest([Row(DC, last_at=1), Row(TG, last_at=3), Row(CLI, last_at=2)]) == TG


def test_moments_are_at_most_six_columns_and_what_no_calendar_holds_is_no_error():
    now = 1_793_600_000_000
    assert when(0, now) == ""
    assert when(10**18, now) == "?"
    assert all(len(when(now - ago, now)) <= 6 for ago in (0, 86_400_000 * 3, 86_400_000 * 400))
