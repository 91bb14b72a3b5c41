"""What asks people, over a house and one door."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from core.archive.decisions import Decisions
from core.archive.lineage import Lineage
from core.chat.port import Chats
from core.confirmations.asking import Asking, NoCauses, Origin, Request
from core.confirmations.desk import Desk
from core.confirmations.folder import Folder
from core.confirmations.leave import Leave
from core.confirmations.press import Answers
from core.confirmations.record import Record
from core.confirmations.showing import Showing
from core.ids import SessionId, TurnId, new_task_hash
from core.resources.store import Resources
from core.runtime.port import Runtime
from core.runtime.resolve import Resolve
from tests.conftest import House


class Causes(NoCauses):
    """One turn, caused by whatever a test says."""

    origin: Origin | None = None

    def cause(self, session: SessionId, turn: TurnId) -> Origin | None:
        return self.origin


@dataclass
class Asked:
    """Everything of `core.confirmations`, put together as the composition root does."""

    house: House
    lineage: Lineage
    desk: Desk
    showing: Showing
    asking: Asking
    answers: Answers
    causes: Causes
    resolve: Resolve

    @classmethod
    async def over(
        cls,
        house: House,
        chats: Chats,
        *,
        runtime: Runtime | None = None,
        admins: Sequence[tuple[str, str]] = (),
        folder: Folder | None = None,
    ) -> "Asked":
        lineage, decisions = await Lineage.load(house.store), Decisions(house.store)
        chosen = frozenset(admins)
        leave = Leave(decisions, admins=chosen, earlier=lineage.earlier)
        place = folder or Folder(house.sessions.folder)
        desk = Desk(place, decisions, leave, admins=chosen, current=lineage.current)
        lineage.listen(desk.move)
        resources = Resources(house.folder / "runtimes")

        async def keep(session: SessionId, content: bytes) -> str:
            return resources.put_artifact(session, "confirmations", content, filename="request.json")

        causes = Causes()
        asking = Asking(
            desk, house.sessions, causes, keep, timeout=60.0, origin=lineage.origin, current=lineage.current
        )
        showing = Showing(desk, chats, resources.upload, lineage.succeed)
        return cls(house, lineage, desk, showing, asking, Answers(desk, showing), causes, Resolve(desk, runtime))

    @asynccontextmanager
    async def at_work(self) -> AsyncGenerator["Asked"]:
        async with self.desk.at_work(list(self.house.sessions.ids())):
            self.house.sessions.listen(self.desk.on_append)
            await self.asking.take_up()
            self.showing.start()
            self.resolve.start()
            try:
                yield self
            finally:
                await self.showing.stop()
                await self.resolve.stop()

    async def ask(self, request: Request) -> Record:
        """Ask in a session, which is there as soon as anything was recorded in it."""
        self.house.sessions.folder(request.session).mkdir(mode=0o700, parents=True, exist_ok=True)
        return await self.asking.ask(request, new_task_hash())
