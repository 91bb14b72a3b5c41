"""A desk to test at: its real folder and database, chats and a runtime on the far side, a disk that has its moods."""

import asyncio
import errno
import time
from collections import defaultdict
from contextlib import AsyncExitStack
from pathlib import Path

from core.archive.decisions import Decisions
from core.archive.lineage import Lineage
from core.chat.port import Chat, Upload
from core.confirmations.asking import Asking, NoCauses
from core.confirmations.desk import Desk
from core.confirmations.folder import Folder
from core.confirmations.leave import Leave
from core.confirmations.press import Answers
from core.confirmations.record import Record
from core.confirmations.showing import Showing
from core.errors import ResourceError
from core.ids import SessionId, TaskHash
from core.runtime.resolve import Resolve
from tests.builders import ADMINS, SESSION
from tests.conftest import House
from tests.fakes import FakeChat, FakeRuntime


class MoodyFolder(Folder):
    """A folder on a disk that takes ``pause`` seconds for a write, is ``full``, or is full after so many writes."""

    pause = 0.0
    full = False
    most: int | None = None
    written = 0

    def write(self, record: Record) -> None:
        time.sleep(self.pause)
        if self.full or (self.most is not None and self.written >= self.most):
            raise OSError(errno.ENOSPC, "No space left on device")
        super().write(record)
        self.written += 1


class Bench:
    """``chats`` and ``runtime`` outlive a restart, as the other side does."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.chats: defaultdict[SessionId, FakeChat] = defaultdict(FakeChat)
        self.off: set[SessionId] = set()
        self.runtime = FakeRuntime()
        self.pause = 0.0
        self.stopped_turns: list[tuple[str, str]] = []

    @property
    def chat(self) -> FakeChat:
        return self.chats[SESSION]

    async def start(self, *, shows: bool = True, tells: bool = True, most: int | None = None) -> None:
        """``shows`` and ``tells``: whether chats and the runtime are served; ``most`` writes are taken by the disk."""
        sessions, decisions = self.house.sessions, Decisions(self.house.store)
        self.decisions = decisions
        self.lineage = await Lineage.load(self.house.store)
        self.folder = MoodyFolder(sessions.folder)
        self.folder.pause, self.folder.most = self.pause, most
        self.leave = Leave(decisions, admins=ADMINS, earlier=self.lineage.earlier)
        self.desk = Desk(self.folder, decisions, self.leave, admins=ADMINS, current=self.lineage.current)
        self.desk.stop_turn = lambda _session, turn, task: self.stopped_turns.append((turn, task))
        self.showing = Showing(self.desk, self._chat, _no_file, self._moved)
        self.answers = Answers(self.desk, self.showing)
        origin, current = self.lineage.origin, self.lineage.current
        causes = NoCauses()
        self.asking = Asking(self.desk, sessions, causes, _kept, timeout=300.0, origin=origin, current=current)
        resolve = Resolve(self.desk, self.runtime)
        self._stack = AsyncExitStack()
        await self._stack.enter_async_context(self.desk.at_work(list(sessions.ids())))
        await self.asking.take_up()
        for worker, wanted in ((self.showing, shows), (resolve, tells)):
            if wanted:
                worker.start()
                self._stack.push_async_callback(worker.stop)

    async def stop(self) -> None:
        await self._stack.aclose()

    async def restart(self) -> None:
        await self.stop()
        await self.house.reopen()
        await self.start()

    async def open(self, record: Record) -> Record:
        """Ask, in a session that has a folder."""
        self.house.sessions.folder(record.session_id).mkdir(parents=True, exist_ok=True)
        return await self.desk.open(record)

    async def shown(self, record: Record) -> Record:
        """Ask, and wait until that is noted."""
        record = await self.open(record)
        async with asyncio.timeout(10):
            while (now := self.now(record.task_hash)).prompt is None:  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.005)
        return now

    def now(self, task: TaskHash) -> Record:
        record = self.desk.get(task)
        assert record is not None
        return record

    def path(self, record: Record) -> Path:
        return self.house.sessions.folder(record.session_id) / "pending" / f"{record.task_hash}.json"

    def on_disk(self, record: Record) -> Record | None:
        path = self.path(record)
        return Record.model_validate_json(path.read_bytes()) if path.exists() else None

    def _chat(self, session: SessionId) -> Chat | None:
        return None if session in self.off else self.chats[session]

    async def _moved(self, old: SessionId, new: SessionId) -> None:
        await self.lineage.succeed(old, new)
        await self.desk.move(old, new)


async def _no_file(_session: SessionId, url: str) -> Upload:
    raise ResourceError("resource_not_found", f"there is no {url}")


async def _kept(_session: SessionId, _content: bytes) -> str:
    return "artifact://confirmations/request.json"
