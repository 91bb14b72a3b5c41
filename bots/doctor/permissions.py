"""What a member of a Discord server may do in a channel: pure (Discord's documentation, "Permissions")."""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntFlag
from typing import Final

from bots.doctor.calls import Told


class Right(IntFlag):
    """Those that the bot uses."""

    ADMINISTRATOR = 1 << 3
    VIEW_CHANNEL = 1 << 10
    SEND_MESSAGES = 1 << 11
    ATTACH_FILES = 1 << 15
    READ_MESSAGE_HISTORY = 1 << 16
    SEND_MESSAGES_IN_THREADS = 1 << 38


NAMES: Final[Mapping[Right, str]] = {
    Right.VIEW_CHANNEL: "View Channel",
    Right.SEND_MESSAGES: "Send Messages",
    Right.SEND_MESSAGES_IN_THREADS: "Send Messages in Threads",
    Right.READ_MESSAGE_HISTORY: "Read Message History",
    Right.ATTACH_FILES: "Attach Files",
}
"""As the client calls them."""
EVERYTHING: Final = (1 << 62) - 1


class Role(Told):
    id: str
    permissions: int


class Overwrite(Told):
    """What a channel changes for a role (type 0) or a member (type 1)."""

    id: str
    type: int
    allow: int
    deny: int


def rights(guild: str, roles: Sequence[Role], mine: Iterable[str], me: str, overwrites: Sequence[Overwrite]) -> int:
    """The bits that hold for ``me``, who has the roles ``mine``, in a channel with these overwrites."""
    held = {guild, *mine}  # the role of everybody bears the server's number
    granted = 0
    for role in roles:
        if role.id in held:
            granted |= role.permissions
    if granted & Right.ADMINISTRATOR:
        return EVERYTHING
    everybody = [item for item in overwrites if item.id == guild]
    by_role = [item for item in overwrites if item.type == 0 and item.id in held and item.id != guild]
    mine_alone = [item for item in overwrites if item.type == 1 and item.id == me]
    for level in (everybody, by_role, mine_alone):
        for item in level:
            granted &= ~item.deny
        for item in level:
            granted |= item.allow
    return granted if granted & Right.VIEW_CHANNEL else 0


def missing(granted: int, wanted: Iterable[Right]) -> list[str]:
    """The names of those that are not granted."""
    return [NAMES[right] for right in wanted if not granted & right]
