"""Commands to the owner of a data folder: real sockets, real files."""

import asyncio
import json
import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from bots.commands import AnswerIt, Hands, NewSession, Revoke, Say
from bots.control import ControlServer, control_path, send
from core.archive.decisions import Decisions
from core.archive.store import Store
from core.codec import encode
from core.confirmations.desk import Desk
from core.confirmations.folder import Folder
from core.confirmations.leave import Leave
from core.confirmations.life import Given
from core.confirmations.record import Answer, Question, Record
from core.entries import TurnStart, turn_event
from core.errors import AlreadyDecided, FolderHeld, FolderUnusable
from core.ids import SessionId, TaskHash, new_turn_id
from core.log.journal import Journal
from core.pairing.book import Book
from core.sessions.directory import FolderLock, Sessions
from tests.builders import MONA, OPERATOR, SESSION, a_confirmation, a_task, an_ask

ROOT = Path(__file__).parents[2]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "runtimes" / SESSION).mkdir(parents=True)
    (folder / ".store").mkdir()
    return folder


class Owner:
    """Who holds a data folder: its desk and its decisions, as `ishiki run` has them."""

    def __init__(self, desk: Desk, decisions: Decisions) -> None:
        self.desk = desk
        self.decisions = decisions


@asynccontextmanager
async def owned(data: Path, folder: Folder | None = None, *, listens: bool = True) -> AsyncGenerator[Owner]:
    lock = FolderLock(data)
    store = Store.open(data / ".store" / "history.db")
    decisions = Decisions(store)
    desk = Desk(folder or Folder(lambda session: data / "runtimes" / session), decisions, Leave(decisions))
    journal = Journal(data)
    journal.start()
    sessions = Sessions(data, journal)
    server = ControlServer(control_path(data), Hands(desk, decisions, await Book.load(store), sessions))
    try:
        async with desk.at_work([SESSION]):
            if listens:
                await server.start()
            yield Owner(desk, decisions)
            await server.stop()
    finally:
        await sessions.close()
        journal.stop()
        await store.close()
        lock.release()


async def raw(data: Path, line: bytes) -> dict[str, Any]:
    reader, writer = await asyncio.open_unix_connection(control_path(data))
    writer.write(line)
    if not line.endswith(b"\n"):
        writer.write_eof()
    answer = json.loads(await reader.read())
    writer.close()
    return answer


def on_disk(data: Path, task: TaskHash) -> Record:
    path = data / "runtimes" / SESSION / "pending" / f"{task}.json"
    return Record.model_validate_json(path.read_bytes())


def written(data: Path, record: Record) -> Record:
    Folder(lambda session: data / "runtimes" / session).write(record)
    return record


# --- the owner's side ---------------------------------------------------------------------------------------------


async def test_the_owner_answers_over_a_socket_that_nobody_else_may_use(data: Path):
    async with owned(data) as owner:
        record = await owner.desk.open(a_confirmation())
        assert stat.S_IMODE(control_path(data).stat().st_mode) == 0o600
        reply = await raw(
            data, json.dumps({"do": "answer", "task_hash": record.task_hash, "choice": "yes"}).encode() + b"\n"
        )
        assert reply["ok"] is True
        assert reply["record"]["status"] == "approved"
        assert reply["record"]["by"] == {"platform": "cli", "id": "operator", "name": "operator"}
        assert on_disk(data, record.task_hash).choice == "yes"
    assert not control_path(data).exists()


async def test_all_questions_are_answered_at_once(data: Path):
    questions = (Question(question="Which?", options=("a", "b")), Question(question="Why?"))
    async with owned(data) as owner:
        record = await owner.desk.open(an_ask(*questions))
        answers = [{"question": "Which?", "answer": "b"}, {"question": "Why?", "answer": "so"}]
        command = AnswerIt.model_validate({"task_hash": record.task_hash, "answers": answers})
        reply, by_owner = await send(data, command)
        assert (reply.ok, by_owner) == (True, True)
        assert on_disk(data, record.task_hash).answers == tuple(Answer.model_validate(answer) for answer in answers)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"\n", "invalid_request"),
        (b"[]\n", "invalid_request"),
        (b'{"do":"stop"}\n', "invalid_request"),
        (b'{"do":"answer","task_hash":"../../x","choice":"yes"}\n', "invalid_request"),
        (b'{"do":"answer","task_hash":"00000000-0000-4000-8000-000000000001"}\n', "invalid_request"),
        (b'{"do":"answer","task_hash":"00000000-0000-4000-8000-000000000001","choice":"maybe"}\n', "invalid_request"),
        (b'{"do":"answer","task_hash":"00000000-0000-4000-8000-000000000001","choice":"turn"}\n', "invalid_answer"),
        (b'{"do":"answer","task_hash":"00000000-0000-4000-8000-000000000009","choice":"yes"}\n', "unknown_task"),
        (b'{"do":"answer","task_hash":"00000000-0000-4000-8000-000000000001","choice":"yes"', "invalid_request"),
        (b"\xff\xfe{}\n", "invalid_request"),
        (b"[" * 60_000 + b"\n", "invalid_request"),
        (b'"' + b"x" * 70_000 + b'"\n', "invalid_request"),
        (b'{"do":"revoke","session_id":"dc-1","tool":"t","args_hash":"a","granted_by":"b"}\n', "unknown_rule"),
    ],
)  # fmt: skip
async def test_what_is_no_command_is_told_so_and_changes_nothing(data: Path, line: bytes, code: str):
    async with owned(data) as owner:
        record = await owner.desk.open(a_confirmation(a_task(1)))
        reply = await raw(data, line)
        assert (reply["ok"], reply["code"]) == (False, code)
        assert "Traceback" not in reply["message"]
        assert "\n" not in reply["message"]
        assert on_disk(data, record.task_hash).is_open


async def test_a_second_answer_is_told_who_was_first(data: Path):
    async with owned(data) as owner:
        record = await owner.desk.open(a_confirmation())
        await owner.desk.give(record.task_hash, Given(option=1), MONA, SESSION)
        reply, _ = await send(data, AnswerIt(task_hash=record.task_hash, choice="yes"))
        assert (reply.code, reply.message) == ("decided", "that is decided already: denied by Mona")
        assert on_disk(data, record.task_hash).status == "denied"


async def test_of_a_press_and_a_command_in_the_same_moment_exactly_one_wins(data: Path):
    async with owned(data) as owner:
        for number in range(20):
            record = await owner.desk.open(a_confirmation(a_task(number)))
            press = asyncio.ensure_future(owner.desk.give(record.task_hash, Given(option=1), MONA, SESSION))
            commands = [send(data, AnswerIt(task_hash=record.task_hash, choice="yes")) for _ in range(2)]
            replies = [reply for reply, _ in await asyncio.gather(*commands)]
            await asyncio.wait({press})
            by_press = not isinstance(press.exception(), AlreadyDecided)
            assert sum([by_press, *(reply.ok for reply in replies)]) == 1
            decided = on_disk(data, record.task_hash)
            assert (decided.status, decided.by) == (("denied", MONA) if by_press else ("approved", OPERATOR))


async def test_a_disk_that_does_not_take_the_answer_is_told_and_it_stays_open(data: Path):
    class Full(Folder):
        def write(self, record: Record) -> None:
            if not record.is_open:
                raise OSError(28, "No space left on device")
            super().write(record)

    async with owned(data, Full(lambda session: data / "runtimes" / session)) as owner:
        record = await owner.desk.open(a_confirmation())
        reply, _ = await send(data, AnswerIt(task_hash=record.task_hash, choice="yes"))
        assert reply.code == "disk_unavailable"
        assert owner.desk.records()[0].is_open


async def test_whoever_says_nothing_holds_up_neither_others_nor_the_end(data: Path):
    async with owned(data) as owner:
        record = await owner.desk.open(a_confirmation())
        silent = await asyncio.open_unix_connection(control_path(data))
        reply, _ = await send(data, AnswerIt(task_hash=record.task_hash, choice="yes"))
        assert reply.ok
        started = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() - started < 1.5
    assert await silent[0].read() == b""
    silent[1].close()


async def test_what_is_in_hand_is_finished_and_told_when_the_owner_stops(data: Path):
    class Slow(Folder):
        def write(self, record: Record) -> None:
            time.sleep(0 if record.is_open else 0.5)
            super().write(record)

    async with owned(data, Slow(lambda session: data / "runtimes" / session)) as owner:
        record = await owner.desk.open(a_confirmation())
        sending = asyncio.create_task(send(data, AnswerIt(task_hash=record.task_hash, choice="yes")))
        await asyncio.sleep(0.2)
    reply, by_owner = await sending
    assert (reply.ok, by_owner) == (True, True)


async def test_an_owner_that_dies_before_it_answers_leaves_it_uncertain(data: Path):
    async def die(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.close()

    async with await asyncio.start_unix_server(die, control_path(data)):
        reply, _ = await send(data, AnswerIt(task_hash=a_task(1), choice="yes"))
    assert (reply.ok, reply.code) == (False, "no_answer")
    assert "`ishiki pending` shows" in reply.message


async def test_the_command_goes_to_the_owner(data: Path):
    async with owned(data) as owner:
        record = await owner.desk.open(a_confirmation())
        command = await asyncio.create_subprocess_exec(
            sys.executable, "-c", "from bots.cli import main; main()", "answer", record.task_hash[:8], "no",
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=os.environ | {"ISHIKI_DATA_DIR": str(data), "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        out, err = await command.communicate()
        assert (command.returncode, out.decode(), err) == (0, f"{record.task_hash} is denied\n", b"")
        assert owner.desk.records()[0].by == OPERATOR


async def test_the_socket_of_a_killed_process_is_replaced(data: Path):
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(control_path(data)))
    async with owned(data) as owner:
        record = await owner.desk.open(a_confirmation())
        reply, by_owner = await send(data, AnswerIt(task_hash=record.task_hash, choice="no"))
        assert (reply.ok, by_owner) == (True, True)


async def test_a_file_in_the_sockets_place_is_left_alone(data: Path):
    control_path(data).write_text("mine")
    async with owned(data) as owner:
        await owner.desk.open(a_confirmation())
    assert control_path(data).read_text() == "mine"


async def test_a_path_longer_than_a_socket_may_have_does(tmp_path: Path):
    data = tmp_path / ("long" * 30) / "data"
    (data / "runtimes" / SESSION).mkdir(parents=True)
    (data / ".store").mkdir()
    assert len(os.fsencode(control_path(data))) > 107
    async with owned(data) as owner:
        record = await owner.desk.open(a_confirmation())
        reply, by_owner = await send(data, AnswerIt(task_hash=record.task_hash, choice="yes"))
        assert (reply.ok, by_owner) == (True, True)
    assert not control_path(data).exists()


# --- where nobody owns the folder ---------------------------------------------------------------------------------


async def test_where_nobody_runs_the_command_decides_itself_and_the_next_owner_finds_it(data: Path):
    record = written(data, a_confirmation(choices=("yes", "always", "no")))
    reply, by_owner = await send(data, AnswerIt(task_hash=record.task_hash, choice="always"))
    assert (reply.ok, by_owner) == (True, False)
    assert on_disk(data, record.task_hash).status == "approved"
    async with owned(data) as owner:
        assert [found.choice for found in owner.desk.records()] == ["always"]
        (rule,) = await owner.decisions.rules()
        assert (rule.session_id, rule.tool, rule.granted_by) == (SESSION, "write_file", "admin cli:operator")


async def test_stop_ends_what_else_the_turn_asked_also_where_nobody_runs(data: Path):
    first, second, other = (
        written(data, a_confirmation(a_task(number), choices=("yes", "stop"), turn_id=turn))
        for number, turn in ((1, "t1"), (2, "t1"), (3, "t2"))
    )
    await send(data, AnswerIt(task_hash=first.task_hash, choice="stop"))
    assert on_disk(data, second.task_hash).status == "stopped"
    assert on_disk(data, other.task_hash).is_open


async def test_commands_in_the_same_moment_without_an_owner_decide_once(data: Path):
    record = written(data, a_confirmation())
    commands = [send(data, AnswerIt(task_hash=record.task_hash, choice="yes")) for _ in range(4)]
    replies = [reply for reply, _ in await asyncio.gather(*commands)]
    assert sorted(reply.code for reply in replies) == ["", "decided", "decided", "decided"]


async def test_an_owner_that_does_not_listen_is_told_after_a_while(data: Path):
    async with owned(data, listens=False) as owner:
        record = await owner.desk.open(a_confirmation())
        with pytest.raises(FolderHeld, match="starting or stopping; try again"):
            await send(data, AnswerIt(task_hash=record.task_hash, choice="yes"), patience=0.2)
        assert owner.desk.records()[0].is_open


async def test_no_data_folder_is_made_by_a_command(tmp_path: Path):
    with pytest.raises(FolderUnusable, match="ISHIKI_DATA_DIR"):
        await send(tmp_path / "nothing", AnswerIt(task_hash=a_task(1), choice="yes"))
    assert not (tmp_path / "nothing").exists()


async def test_a_rule_is_ended_with_and_without_an_owner(data: Path):
    command = Revoke(session_id=SESSION, tool="t", args_hash="a", granted_by="discord:11")
    async with owned(data) as owner:
        await owner.decisions.grant(SessionId(SESSION), "t", "a", "discord:11", 1)
        assert (await send(data, command))[0].ok
        assert await owner.decisions.rules() == []
        await owner.decisions.grant(SessionId(SESSION), "t", "a", "discord:11", 1)
    reply, by_owner = await send(data, command)
    assert (reply.ok, by_owner) == (True, False)
    assert (await send(data, command))[0].code == "unknown_rule"


# --- talking in a session of the terminal -------------------------------------------------------------------------


def lines(data: Path, session: str) -> list[dict[str, Any]]:
    return [*map(json.loads, (data / "runtimes" / session / "events.jsonl").read_bytes().splitlines())]


@pytest.mark.parametrize("is_owned", [True, False])
async def test_a_session_is_made_and_a_line_said_in_it_whether_or_not_somebody_holds_the_folder(
    data: Path, is_owned: bool
):
    async with owned(data) if is_owned else nullcontext():
        made, by_owner = await send(data, NewSession())
        assert made.ok
        assert by_owner is is_owned
        assert made.session_id is not None
        assert made.session_id.startswith("cli-")
        said, by_owner = await send(data, Say(session_id=made.session_id, content="hello\n你好"))
        assert (said.ok, by_owner) == (True, is_owned)
    (line,) = lines(data, made.session_id)
    assert (line["data"]["role"], line["data"]["content"]) == ("user", "hello\n你好")
    FolderLock(data).release()


@pytest.mark.parametrize(
    ("session", "code"),
    [
        (SESSION, "invalid_request"),
        ("../../x", "invalid_request"),
        ("cli-00000000-0000-4000-8000-000000000001", "unknown_session"),
    ],
)
@pytest.mark.parametrize("is_owned", [True, False])
async def test_nothing_is_said_in_a_chat_of_a_platform_or_where_there_is_no_session(
    data: Path, session: str, code: str, is_owned: bool
):
    async with owned(data) if is_owned else nullcontext():
        reply, _ = await send(data, Say(session_id=session, content="hello"))
        assert (reply.ok, reply.code) == (False, code)
    assert [path.name for path in (data / "runtimes").iterdir()] == [SESSION]


async def test_a_line_without_words_is_not_said(data: Path):
    async with owned(data):
        reply = await raw(data, b'{"do":"say","session_id":"cli-00000000-0000-4000-8000-000000000001","content":" "}\n')
        assert reply["code"] == "invalid_request"


async def test_where_an_answer_was_cut_off_nothing_is_said_until_its_end_is_written_by_who_knows_it(data: Path):
    made, _ = await send(data, NewSession())
    assert made.session_id is not None
    turn = turn_event(TurnStart(turn_id=new_turn_id()), now=1)
    log = data / "runtimes" / made.session_id / "events.jsonl"
    log.write_bytes(encode(turn) + b"\n")
    before = log.read_bytes()
    reply, _ = await send(data, Say(session_id=made.session_id, content="hello"))
    assert (reply.ok, reply.code) == (False, "cut_off")
    assert log.read_bytes() == before
