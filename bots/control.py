"""What a command has done by the owner of the data folder, or does itself where nobody owns it (contract section 9).

One connection is one request: a line of JSON, answered by a line of JSON.
"""

import asyncio
import os
import socket
import stat
import time
from collections.abc import Generator
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import structlog
from pydantic import ValidationError

from bots.commands import Command, Hands, Reply, Say, command, no_command, perform
from core.archive.decisions import Decisions
from core.archive.store import Store
from core.confirmations.desk import Desk
from core.confirmations.folder import Folder
from core.confirmations.leave import Leave
from core.errors import FolderHeld, FolderUnusable
from core.ids import SessionId, is_session_id
from core.log.journal import Journal
from core.pairing.book import Book
from core.sessions.directory import FolderLock, Sessions

LONGEST_REQUEST: Final = 64 * 1024
"""Bytes."""
READ_WITHIN: Final = 5.0
FINISH_WITHIN: Final = 2.0
"""Seconds: for a request to come in whole; for those in hand when the server stops."""
ANSWER_WITHIN: Final = 15.0
PATIENCE: Final = 2.0
"""Seconds: for the answer to a command; for somebody who holds the folder to listen, or to let go of it."""
_LONGEST_ADDRESS: Final = 107
_CUT_OFF: Final = (
    "the program ended there in the middle of an answer; start `ishiki run`, which finishes it, then say it"
)

logger = structlog.get_logger()


class ControlServer:
    """Listens for commands at ``path``, while its process holds the folder's lock. Belongs to one event loop."""

    def __init__(self, path: Path, hands: Hands) -> None:
        self._path = path
        self._hands = hands
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._reading: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen. Where the folder takes no socket that is told, and only the terminal cannot answer."""
        try:
            listening = await asyncio.to_thread(_listen, self._path)
        except OSError as error:
            cure = "answers from the terminal need a data folder that takes sockets; chats and the API work without"
            logger.warning("no_control", path=str(self._path), reason=error.strerror or str(error), cure=cure)
            return
        self._server = await asyncio.start_unix_server(self._serve, sock=listening, limit=LONGEST_REQUEST)

    async def stop(self) -> None:
        """Take nothing more in, and finish what is in hand."""
        if self._server is None:
            return
        self._server.close()
        with suppress(OSError):
            await asyncio.to_thread(self._path.unlink)
        for task in self._reading:
            task.cancel()
        if self._connections:
            _, late = await asyncio.wait(self._connections, timeout=FINISH_WITHIN)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            self._reading.add(task)
            wanted = await _wanted(reader)
            self._reading.discard(task)
            reply = wanted if isinstance(wanted, Reply) else await perform(wanted, self._hands)
            writer.write(reply.line())
            async with asyncio.timeout(READ_WITHIN):
                await writer.drain()
        except (OSError, TimeoutError):
            writer.transport.abort()  # whoever asked went away; what was decided is decided
        finally:
            self._reading.discard(task)
            self._connections.discard(task)
            writer.close()


async def _wanted(reader: asyncio.StreamReader) -> Command | Reply:
    """What is wanted, or why it is nothing that we do."""
    try:
        async with asyncio.timeout(READ_WITHIN):
            return command(await reader.readuntil(b"\n"))
    except asyncio.LimitOverrunError:
        return no_command(f"it is longer than {LONGEST_REQUEST} bytes")
    except (asyncio.IncompleteReadError, TimeoutError):
        return no_command("it broke off before the end of its line")


def _listen(path: Path) -> socket.socket:
    """A socket at ``path``, for nobody but us; one that a killed process left is replaced. Raises `OSError`."""
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise FileExistsError(17, "something else stands there")
        path.unlink()
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _address(path) as address:
            made.bind(address)
        path.chmod(0o600)  # before anybody can connect, as nobody listens yet
        made.listen()
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made


@contextmanager
def _address(path: Path) -> Generator[str]:
    """How the system calls that path: it takes 107 bytes and no more, so a longer one goes by its open folder."""
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def control_path(folder: Path) -> Path:
    """Where the owner of a data folder listens."""
    return folder / ".store" / "control"


async def send(folder: Path, wanted: Command, *, patience: float = PATIENCE) -> tuple[Reply, bool]:
    """Have a command done: by the folder's owner, else by ourselves; whether it was the owner.

    What we do ourselves is handed on by the next ``ishiki run``. ``patience`` is how many seconds an owner gets that
    does not listen yet. Raises `FolderHeld` where somebody owns the folder
    who does not listen, and `FolderUnusable`.
    """
    if not await asyncio.to_thread(folder.is_dir):
        raise FolderUnusable(f"{folder} is no data folder; set ISHIKI_DATA_DIR to the one that `ishiki run` writes to")
    line = wanted.model_dump_json(exclude_none=True).encode() + b"\n"
    if len(line) > LONGEST_REQUEST:
        return no_command(f"it is longer than {LONGEST_REQUEST} bytes"), True
    until = time.monotonic() + patience
    while True:
        reply = await asyncio.to_thread(_told, control_path(folder), line)
        if reply is not None:
            return reply, True
        try:
            lock = await asyncio.to_thread(FolderLock, folder)
        except FolderHeld:
            if time.monotonic() > until:
                raise FolderHeld(
                    f"whoever holds the data folder {folder} does not listen, as it is starting or stopping; "
                    "try again in a moment"
                ) from None
            await asyncio.sleep(0.1)
        else:
            try:
                return await _alone(folder, wanted), False
            finally:
                lock.release()


def _told(path: Path, line: bytes) -> Reply | None:
    """The reply of whoever listens there; None where nobody does. Raises `FolderUnusable`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as owner:
        owner.settimeout(ANSWER_WITHIN)
        try:
            with _address(path) as address:
                owner.connect(address)
        except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
            return None
        except OSError as error:
            raise FolderUnusable(
                f"{path} cannot be used ({error.strerror or error}); use the account that `ishiki run` uses"
            ) from error
        try:
            owner.sendall(line)
            with owner.makefile("rb") as replies:
                return Reply.model_validate_json(replies.readline())
        except (OSError, ValidationError):
            message = "no answer came, so it may count or not; `ishiki pending` shows what is open"
            return Reply(ok=False, code="no_answer", message=message)


async def _alone(folder: Path, wanted: Command) -> Reply:
    """Do it over the files, without platforms and runtime. The lock is ours. Raises `FolderUnusable`."""
    async with AsyncExitStack() as stack:
        await asyncio.to_thread((folder / ".store").mkdir, 0o700, exist_ok=True)
        store = await asyncio.to_thread(Store.open, folder / ".store" / "history.db")
        stack.push_async_callback(store.close)
        decisions = Decisions(store)
        journal = Journal(folder)
        if isinstance(wanted, Say):
            await asyncio.to_thread(journal.start)
            stack.push_async_callback(asyncio.to_thread, journal.stop)
        sessions = Sessions(folder, journal)
        stack.push_async_callback(sessions.close)
        desk = Desk(Folder(sessions.folder), decisions, Leave(decisions))
        await stack.enter_async_context(desk.at_work(await asyncio.to_thread(lambda: list(sessions.ids()))))
        if isinstance(wanted, Say) and await _was_cut_off(sessions, wanted.session_id):
            return Reply(ok=False, code="cut_off", message=_CUT_OFF)
        return await perform(wanted, Hands(desk, decisions, await Book.load(store), sessions))


async def _was_cut_off(sessions: Sessions, session: str) -> bool:
    """Whether a turn was open there when the process died: whoever runs turns knows what it still owes."""
    if not is_session_id(session) or not sessions.exists(SessionId(session)):
        return False
    try:
        return (await sessions.of(SessionId(session)).state()).inherited_turn is not None
    except OSError:
        return False  # which the append tells
