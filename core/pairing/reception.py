"""What a door asks about the chats that come to it."""

from dataclasses import dataclass

from core.access import Admission
from core.archive.titles import Titles
from core.pairing.bell import Bell


@dataclass(frozen=True, slots=True)
class Reception:
    """Who is let in, who is told when somebody knocks, and who keeps what chats are called; None: nobody does."""

    admission: Admission
    bell: Bell | None = None
    titles: Titles | None = None
