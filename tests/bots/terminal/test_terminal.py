"""The menu as somebody at a terminal uses it: keys in, screen out, over a real data folder."""

import asyncio
import json
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, RichLog, Static, Tabs

from bots.terminal.app import Terminal
from bots.terminal.asks import Asks
from bots.terminal.menu import Menu
from bots.terminal.talk import Talk
from core.archive.profiles import Profiles
from core.clock import now_ms
from core.confirmations.folder import Folder
from core.ids import SessionId
from tests.builders import SESSION, a_confirmation, a_task, an_ask, retracted, said
from tests.conftest import House, Until

CLI = SessionId("cli-0b8f3a52-7f0e-4f3a-9d5e-1f2f3f4f5f6f")
HOSTILE = "[bold]x[/] \x1b[2J\u202e"


@asynccontextmanager
async def terminal(folder: Path, session: SessionId | None = None) -> AsyncGenerator[tuple[Terminal, Pilot[str]]]:
    app = Terminal(folder, session)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.1)
        yield app, pilot


def table(app: Terminal) -> list[list[str]]:
    found = cast("DataTable[object]", app.screen.query_one(DataTable))
    return [[str(cell) for cell in found.get_row_at(row)] for row in range(found.row_count)]


def said_in(app: Terminal) -> str:
    return "\n".join(strip.text for strip in app.screen.query_one(RichLog).lines)


@pytest.fixture
async def folder(house: House) -> Path:
    await house.sessions.of(SESSION).append([said(1, "first"), said(2, HOSTILE.replace("<", "&lt;"))])
    await house.sessions.create(CLI)
    await Profiles(house.store).entitle(SESSION, f"#general {HOSTILE}")
    return house.folder


async def test_the_menu_has_tabs_where_there_are_two_kinds_and_new_sessions_appear(
    folder: Path, house: House, until: Until
) -> None:
    async with terminal(folder) as (app, pilot):
        assert isinstance(app.screen, Menu)
        assert [row[1] for row in table(app)] == ["cli-0b8f3a52", "#general [bold]x[/] [2J"]
        assert [str(tab.label) for tab in app.screen.query("Tab").results()] == ["all", "cli", "dc"]  # pyright: ignore
        await pilot.press("right", "right")
        await pilot.pause(0.1)
        assert [row[-1] for row in table(app)] == [SESSION]
        await house.sessions.of(SessionId("dc-77")).append([said(1)])
        await until(lambda: [row[-1] for row in table(app)] == ["dc-77", SESSION])


async def test_one_kind_of_session_has_no_tabs_and_none_at_all_says_what_to_do(house: House) -> None:
    (house.folder / "runtimes").mkdir(exist_ok=True)
    async with terminal(house.folder) as (app, _):
        assert not app.screen.query_one(Tabs).display
        assert "ishiki pair" in str(app.screen.query_one("#none", Static).content)
    await house.sessions.of(SESSION).append([said(1)])
    async with terminal(house.folder) as (app, _):
        assert not app.screen.query_one(Tabs).display
        assert len(table(app)) == 1


async def test_a_session_is_followed_live_with_edits_and_retractions_in_their_place(
    folder: Path, house: House, until: Until
) -> None:
    async with terminal(folder, SESSION) as (app, pilot):
        assert isinstance(app.screen, Talk)
        assert "[bold]x[/] [2J" in said_in(app)
        assert "\x1b" not in said_in(app)
        await house.sessions.of(SESSION).append([said(3, "third"), said(1, "better", edited_at=1_793_700_000_000)])
        await until(lambda: "third" in said_in(app))
        assert "first" not in said_in(app)
        assert said_in(app).index("better") < said_in(app).index("third")
        await house.sessions.of(SESSION).append([retracted(3)])
        await until(lambda: "retracted" in said_in(app))
        assert "third" not in said_in(app)
        await pilot.press("escape")
        assert isinstance(app.screen, Menu)
        assert table(app)[0][0] == "●"
        assert table(app)[0][-1] == SESSION


async def test_a_long_log_is_read_back_page_by_page(folder: Path, house: House, until: Until) -> None:
    await house.sessions.of(SESSION).append([said(number, f"number {number}") for number in range(10, 1000)])
    async with terminal(folder, SESSION) as (app, pilot):
        assert "number 999" in said_in(app)
        assert "number 790" not in said_in(app)
        for _ in range(60):
            await pilot.press("pageup")
        await until(lambda: "number 10\n" in f"{said_in(app)}\n")
        assert app.screen.query_one(RichLog).scroll_offset.y < 100


async def test_a_line_in_a_session_of_the_terminal_is_written_down_and_remembered(
    folder: Path, house: House, until: Until
) -> None:
    await house.close()
    async with terminal(folder, CLI) as (app, pilot):
        await pilot.press(*"hello", "enter")
        await until(lambda: "user: hello" in said_in(app))
        assert app.screen.query_one(Input).value == ""
        await pilot.press("up")
        assert app.screen.query_one(Input).value == "hello"
    log = folder / "runtimes" / CLI / "events.jsonl"
    assert json.loads(log.read_bytes())["data"]["content"] == "hello"
    assert (folder / "runtimes" / CLI / ".cmd_history").read_text() == "hello\n"
    await house.open()


async def test_a_new_session_is_made_from_the_menu_and_from_its_line(folder: Path, house: House, until: Until) -> None:
    await house.close()
    async with terminal(folder) as (app, pilot):
        await pilot.press("n")
        await until(lambda: isinstance(app.screen, Talk))
        await pilot.press(*"/new", "enter")
        await until(lambda: len(list((folder / "runtimes").glob("cli-*"))) == 3)
        await pilot.press("escape")
        await until(lambda: isinstance(app.screen, Menu))
        assert table(app)[0][0] == "●"
    await house.open()


async def test_a_chat_of_a_platform_has_no_line(folder: Path) -> None:
    async with terminal(folder, SESSION) as (app, _):
        assert not app.screen.query(Input)
        assert "Discord" in str(app.screen.query_one("#elsewhere", Static).content)


async def test_what_is_asked_is_answered_by_a_digit_and_by_a_line(folder: Path, house: House, until: Until) -> None:
    now = now_ms()
    pending = Folder(house.sessions.folder)
    pending.write(a_confirmation(a_task(1), created_at=now, expires_at=now + 60_000, choices=("yes", "no")))
    pending.write(an_ask(task=a_task(2), created_at=now + 1, expires_at=now + 60_000))
    await house.close()
    async with terminal(folder) as (app, pilot):
        assert table(app)[1][3] == "2"
        await pilot.press("a")
        await until(lambda: isinstance(app.screen, Asks) and len(table(app)) == 2)
        await pilot.press("2")
        await until(lambda: len(table(app)) == 1)
        await pilot.press(*"the blue one", "enter")
        await until(lambda: not table(app))
    files = (folder / "runtimes" / SESSION / "pending").glob("*.json")
    statuses = {path.stem: json.loads(path.read_bytes()) for path in files}
    assert statuses[a_task(1)]["status"] == "denied"
    assert statuses[a_task(2)]["answers"] == [{"question": "Which one?", "answer": "the blue one"}]
    await house.open()


async def test_a_folder_that_goes_away_ends_it_with_a_sentence(tmp_path: Path, folder: Path, until: Until) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    async with terminal(copy) as (app, _):
        shutil.rmtree(copy)
        await until(lambda: app.return_value is not None)
        assert "cannot be read" in str(app.return_value)


async def test_thousands_of_sessions_are_listed_soon(tmp_path: Path) -> None:
    for number in range(3000):
        (tmp_path / "runtimes" / f"dc-{number}").mkdir(parents=True)
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with terminal(tmp_path) as (app, pilot):
        assert len(table(app)) == 3000
        await pilot.press("end")
        assert app.screen.query_one(DataTable).cursor_row == 2999
    assert loop.time() - began < 20
