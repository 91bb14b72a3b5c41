"""What all screens have: the data folder that they show, read and changed beside the screen."""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from textual.message import Message
from textual.screen import Screen

from bots.commands import Command, Reply
from bots.control import send
from bots.terminal.house import House
from core.content import for_terminal
from core.errors import IshikiError
from core.ids import SessionId

_ALONE: Final = "Written down; `ishiki run` takes it up at its next start."

T = TypeVar("T")


class HouseScreen(Screen[None]):
    """A screen over a data folder."""

    class Opened(Message):
        """Somebody wants to see a session."""

        def __init__(self, session: SessionId) -> None:
            super().__init__()
            self.session = session

    class Lost(Message):
        """The data folder cannot be read any more; ``why`` is one sentence."""

        def __init__(self, why: str) -> None:
            super().__init__()
            self.why = why

    def __init__(self, house: House) -> None:
        super().__init__()
        self.house = house

    async def read(self, work: Callable[[], T]) -> T | None:
        """Have something read; None where the folder cannot be read, which ends the program."""
        try:
            return await asyncio.to_thread(work)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            self.post_message(
                self.Lost(f"the data folder {self.house.folder} cannot be read ({reason}); check its owner and rights")
            )
            return None

    async def command(self, wanted: Command) -> Reply | None:
        """Have a command done, by whoever owns the folder. None, and a notice, where it was not."""
        try:
            reply, by_owner = await send(self.house.folder, wanted)
        except (IshikiError, OSError) as error:
            self.tell(str(error), wrong=True)
            return None
        if not reply.ok:
            self.tell(reply.message, wrong=True)
            return None
        if not by_owner:
            self.tell(_ALONE)
        return reply

    def tell(self, text: str, *, wrong: bool = False) -> None:
        """A notice in the corner. What it says may come from a chat."""
        self.notify(for_terminal(text), severity="error" if wrong else "information", markup=False)
