"""Tabs and order of the menu (sessions.md section 5)."""

from bots.terminal.grouping import listed, tabs, under
from core.ids import SessionId

CLI, CHAT, TEMP = (SessionId(f"{kind}-0b8f3a52-7f0e-4f3a-9d5e-1f2f3f4f5f6f") for kind in ("cli", "chat", "temp"))
DC, TG, TG2 = SessionId("dc-1"), SessionId("tg-7"), SessionId("tg--100")


def test_one_kind_of_session_has_no_tabs_and_two_have_one_more() -> None:
    assert tabs([]) == []
    assert tabs([TG, TG2]) == []
    assert tabs([TG, DC]) == ["all", "tg", "dc"]
    assert tabs([CHAT, DC, TG, CLI]) == ["all", "cli", "tg", "dc", "chat"]


def test_the_current_session_comes_first_and_what_does_not_stay_is_left_out() -> None:
    assert listed([DC, TEMP, CHAT, TG, CLI, TG2]) == [CLI, TG2, TG, DC, CHAT]
    assert listed([DC, TG, CLI], current=DC) == [DC, CLI, TG]
    assert listed([DC], current=TG) == [DC]
    assert tabs(listed([TEMP, DC])) == []


def test_a_tab_shows_its_own() -> None:
    ordered = listed([DC, TG, CLI, TG2])
    assert under("tg", ordered) == [TG2, TG]
    assert under("all", ordered) == ordered
