"""How far a follower of the log has come, in each session."""

from typing import NamedTuple, Protocol

from core.ids import EntryId, SessionId


class Receipt(NamedTuple):
    """The last entry that is done, and the position after it; ``note`` is the follower's own."""

    entry: EntryId
    position: int
    note: str = ""

    def __str__(self) -> str:
        return f"{self.entry} {self.position} {self.note}".rstrip()

    @classmethod
    def read(cls, text: str) -> "Receipt":
        entry, position, *note = text.split(" ", 2)
        return cls(EntryId(entry), int(position), note[0] if note else "")


class Receipts(Protocol):
    """Kept over restarts. A receipt that is lost means that acts are repeated, never that one is left out."""

    def get(self, follower: str, session: SessionId) -> Receipt | None: ...

    def put(self, follower: str, session: SessionId, receipt: Receipt) -> None:
        """Take a receipt; it is on disk soon."""
        ...

    async def put_durably(self, follower: str, session: SessionId, receipt: Receipt) -> None:
        """Take a receipt; done when it is on disk."""
        ...
