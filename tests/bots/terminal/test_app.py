"""The program on the screen, driven by keys: a real data folder, real logs, a real owner behind a real socket."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static, Tabs

from bots.commands import Hands
from bots.control import ControlServer, control_path
from bots.terminal.app import Terminal
from bots.terminal.questions import SETTLES_WITHIN, Questions
from bots.terminal.session_list import SessionList
from bots.terminal.transcript import Transcript
from bots.terminal.typing_line import TypingLine
from core.archive.decisions import Decisions
from core.archive.profiles import Profiles
from core.confirmations.desk import Desk
from core.confirmations.folder import Folder
from core.confirmations.leave import Leave
from core.confirmations.record import Question, Record
from core.entries import UserMessage
from core.ids import ChannelId, SessionId, new_session
from core.pairing.book import Book
from core.sessions.directory import FolderLock
from core.sessions.facts import said_here
from tests.builders import SESSION, a_confirmation, a_message, an_ask, retracted, said
from tests.conftest import House

TG = SessionId("tg--100")
Pilots = Pilot[str]


class Owner:
    """Who holds the folder, as `ishiki run` does."""

    def __init__(self, house: House, desk: Desk) -> None:
        self.house = house
        self.desk = desk

    async def say(self, session: SessionId, text: str, number: int = 1) -> None:
        fact = said_here(text) if session.startswith("cli-") else said(number, text)
        await self.house.sessions.of(session).append([fact])

    def said_in(self, session: SessionId) -> list[str]:
        entries = (recorded.entry.data for recorded in self.house.sessions.of(session).read())
        return [bytes(data.content).decode() for data in entries if isinstance(data, UserMessage)]


@pytest.fixture
async def owner(house: House) -> AsyncIterator[Owner]:
    lock = FolderLock(house.folder)
    decisions = Decisions(house.store)
    desk = Desk(Folder(house.sessions.folder), decisions, Leave(decisions))
    hands = Hands(desk, decisions, await Book.load(house.store), house.sessions)
    server = ControlServer(control_path(house.folder), hands)
    async with desk.at_work([]):
        await server.start()
        yield Owner(house, desk)
        await server.stop()
    lock.release()


def seen(app: Terminal) -> str:
    """All that stands on the screen."""
    lines = app.screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage] - what a terminal would get
    return "\n".join(strip.text.rstrip() for strip in lines)


async def sees(pilot: Pilots, *words: str, within: float = 10.0) -> str:
    until = time.monotonic() + within
    while not all(word in seen(_app(pilot)) for word in words):
        assert time.monotonic() < until, f"{words} not in\n{seen(_app(pilot))}"
        await pilot.pause(0.05)
    return seen(_app(pilot))


async def holds(pilot: Pilots, condition: Callable[[], Any]) -> None:
    until = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < until, seen(_app(pilot))
        await pilot.pause(0.05)


def _app(pilot: Pilots) -> Terminal:
    assert isinstance(pilot.app, Terminal)
    return pilot.app


async def test_without_a_session_it_says_what_to_do(owner: Owner):
    async with Terminal(owner.house.folder).run_test(notifications=True, size=(80, 24)) as pilot:
        await sees(pilot, "There is no session yet", "/new", "0 sessions")


async def test_with_one_prefix_there_are_no_tabs_and_a_second_brings_them_while_it_runs(owner: Owner):
    await owner.say(SESSION, "hello")
    async with Terminal(owner.house.folder).run_test(notifications=True, size=(100, 24)) as pilot:
        await sees(pilot, SESSION, "Mona: hello")
        assert not pilot.app.query_one("#tabs", Tabs).display
        await owner.house.sessions.create(TG)
        await Profiles(owner.house.store).entitle(TG, "\x1b[31mFamilie [b]x")
        await sees(pilot, "All", "Telegram", "Discord", "[31mFamilie [b]x")
        await pilot.press("right")
        await holds(pilot, lambda: SESSION not in seen(_app(pilot)).split("│")[0].split("Discord")[1])


async def test_edits_retractions_and_new_messages_are_seen_as_they_come(owner: Owner):
    await owner.say(SESSION, "is it fraiday?")
    async with Terminal(owner.house.folder).run_test(notifications=True, size=(100, 24)) as pilot:
        await sees(pilot, "Mona: is it fraiday?")
        await owner.say(SESSION, "no", 2)
        await owner.house.sessions.of(SESSION).append([said(1, "is it friday?", edited_at=5)])
        assert "fraiday" not in await sees(pilot, "Mona (edited): is it friday?", "Mona: no")
        await owner.house.sessions.of(SESSION).append([retracted(1)])
        assert "friday" not in await sees(pilot, "Mona took a message back")


async def test_a_session_is_made_and_talked_in_and_what_was_typed_comes_again(owner: Owner):
    async with Terminal(owner.house.folder).run_test(notifications=True, size=(80, 24)) as pilot:
        await sees(pilot, "no session yet")
        await pilot.press("n")
        await holds(pilot, lambda: isinstance(pilot.app.focused, TypingLine))
        await sees(pilot, "Nothing was said here yet", "▶ cli-")
        await pilot.press(*"hello", "enter")
        await sees(pilot, "you: hello")
        (session,) = owner.house.sessions.ids()
        assert owner.said_in(session) == ['"hello"']
        line = pilot.app.query_one(TypingLine)
        await pilot.press("up")
        assert line.value == "hello"
        await pilot.press("down", *"//x", "enter")
        await sees(pilot, "you: /x")
        assert (owner.house.sessions.folder(session) / ".cmd_history").read_text() == "hello\n//x\n"
        await pilot.press(*"/nope", "enter")
        await sees(pilot, "there is no /nope")
        await pilot.press(*"/quit", "enter")
        await holds(pilot, lambda: not pilot.app.is_running)


async def test_where_nobody_holds_the_folder_a_line_is_written_down_and_nobody_answers(tmp_path: Path):
    session = new_session("cli")
    (tmp_path / "runtimes" / session).mkdir(parents=True)
    async with Terminal(tmp_path).run_test(notifications=True, size=(80, 24)) as pilot:
        await sees(pilot, session[:12])
        await pilot.press("slash", *"hello", "enter")
        await sees(pilot, "you: hello", "nobody answers until")
    FolderLock(tmp_path).release()


async def test_in_a_chat_of_a_platform_nothing_can_be_typed_and_it_says_why(owner: Owner):
    await owner.say(SESSION, "hello")
    async with Terminal(owner.house.folder).run_test(notifications=True, size=(80, 24)) as pilot:
        await sees(pilot, "read only: people write on Discord")
        await pilot.press("slash", "x")
        assert pilot.app.query_one(TypingLine).value == ""


async def opened(owner: Owner, *records: Record) -> None:
    for record in records:
        await owner.house.sessions.create(record.session_id)
        await owner.desk.open(record)


def status(owner: Owner, record: Record) -> str:
    found = owner.desk.get(record.task_hash)
    return found.status if found is not None else ""


@pytest.mark.parametrize(("key", "became"), [("1", "approved"), ("4", "denied"), ("5", "stopped")])
async def test_a_confirmation_is_answered_by_its_number_while_the_panel_has_the_keys(
    owner: Owner, key: str, became: str
):
    record = a_confirmation(choices=("yes", "always", "turn", "no", "stop"))
    await opened(owner, record)
    async with Terminal(owner.house.folder).run_test(notifications=True, size=(80, 24)) as pilot:
        await sees(pilot, "May I use write_file?", "press c")
        await pilot.press(key, "enter")
        assert status(owner, record) == "open"
        await pilot.press("c")
        await sees(pilot, "[1] Yes", "[5] Stop", "notes.md")
        await pilot.press("enter", "9", "s")
        assert status(owner, record) == "open"
        await pilot.press(key)
        await holds(pilot, lambda: status(owner, record) == became)
        await sees(pilot, f"write_file: {became}")
        await holds(pilot, lambda: not pilot.app.query_one(Questions).display)


async def test_questions_of_all_sessions_are_answered_one_by_one_with_options_and_words(owner: Owner):
    several = Question(question="Which sizes?", options=("small", "large", "[b]none"), multi_select=True)
    one = Question(question="Which colour?", options=("red", "blue"))
    record = an_ask(several, one, Question(question="Why?"), session_id=TG)
    await opened(owner, record)
    async with Terminal(owner.house.folder).run_test(notifications=True, size=(80, 24)) as pilot:
        await sees(pilot, "Which sizes?")
        await pilot.press("c")
        await sees(pilot, "[ ] [b]none")
        await pilot.press("1", "down", "down", "space", "enter")
        await sees(pilot, "(2/3) Which colour?")
        await pilot.press("2")
        await sees(pilot, "(3/3) Why?")
        await holds(pilot, lambda: isinstance(pilot.app.focused, Input))
        await pilot.press(*"so", "enter")
        await holds(pilot, lambda: status(owner, record) == "answered")
        found = owner.desk.get(record.task_hash)
        assert found is not None
        assert [answer.answer for answer in found.answers] == [("small", "[b]none"), "blue", "so"]


async def test_a_key_for_a_question_that_went_away_does_not_answer_the_one_that_came_instead(owner: Owner):
    first, second = a_confirmation(at=1), a_confirmation(at=2, tool="send_mail")
    await opened(owner, first, second)
    async with Terminal(owner.house.folder).run_test(notifications=True, size=(80, 24)) as pilot:
        await sees(pilot, "write_file?")
        await pilot.press("c", "1")
        await sees(pilot, "send_mail?")
        await pilot.press("1")
        assert status(owner, second) == "open"
        await asyncio.sleep(SETTLES_WITHIN)
        await pilot.press("2")
        await holds(pilot, lambda: status(owner, second) == "denied")


async def test_one_reads_back_page_by_page_and_stays_where_one_is_while_more_is_said(owner: Owner):
    session = owner.house.sessions.of(SESSION)
    await session.append([said(number, f"message {number}") for number in range(1, 701)])
    async with Terminal(owner.house.folder).run_test(notifications=True, size=(80, 24)) as pilot:
        await sees(pilot, "message 700")
        transcript = pilot.app.query_one(Transcript)
        transcript.focus()
        while "message 1\n" not in f"{seen(_app(pilot))}\n".replace(" ", "").replace("message", "message "):
            await pilot.press("home")
            await pilot.pause(0.1)
        await session.append([said(701, "message 701")])
        await pilot.pause(0.6)
        assert "message 701" not in seen(_app(pilot))
        await pilot.press("end")
        await sees(pilot, "message 701")


async def test_a_narrow_terminal_shows_the_menu_or_the_conversation(owner: Owner):
    await owner.say(SESSION, "你好 👋 " * 20)
    async with Terminal(owner.house.folder).run_test(notifications=True, size=(60, 20)) as pilot:
        assert "Mona" not in await sees(pilot, f"▶ {SESSION}")
        await pilot.press("enter")
        await sees(pilot, "Mona: 你好")
        await pilot.press("escape")
        assert "Mona" not in await sees(pilot, f"▶ {SESSION}")
        await pilot.resize_terminal(100, 30)
        await sees(pilot, "▶ dc-9", "Mona: 你好")


async def test_ten_thousand_sessions_are_listed_soon_and_moved_through_at_once(tmp_path: Path):
    for number in range(10_000):
        (tmp_path / "runtimes" / f"dc-{number}").mkdir(parents=True)
    async with Terminal(tmp_path).run_test(notifications=True, size=(80, 24)) as pilot:
        await sees(pilot, "10000 sessions", within=15)
        sessions = pilot.app.query_one(SessionList)
        sessions.focus()
        begun = time.monotonic()
        await pilot.press("end", "pageup", "home", "end")
        assert time.monotonic() - begun < 2
        assert sessions.session == "dc-9999"


async def test_a_folder_that_goes_away_is_one_sentence_and_is_taken_up_when_it_is_back(owner: Owner):
    await owner.say(SESSION, "hello")
    runtimes = owner.house.folder / "runtimes"
    async with Terminal(owner.house.folder).run_test(notifications=True, size=(100, 24)) as pilot:
        await sees(pilot, "Mona: hello")
        runtimes.rename(runtimes.with_name("away"))
        await holds(pilot, lambda: "cannot be read" in str(pilot.app.query_one("#title", Static).content))
        runtimes.with_name("away").rename(runtimes)
        await sees(pilot, "1 session", "Mona: hello")


async def test_a_chat_whose_name_and_text_are_hostile_is_shown_as_it_is(owner: Owner):
    channel = ChannelId("5")
    await owner.house.sessions.of(SessionId("dc-5")).append([said(1, "[red]x[/red] \x1b]0;t\x07[@click=quit]y[/]")])
    await Profiles(owner.house.store).entitle(SessionId("dc-5"), "[/] \u202eevil", channel_id=channel)
    assert a_message().channel_id != channel
    async with Terminal(owner.house.folder).run_test(notifications=True, size=(100, 24)) as pilot:
        screen = await sees(pilot, "[red]x[/red] ]0;t[@click=quit]y[/]", "[/] evil")
        assert not set(screen) & set("\x1b\u202e\x07")
