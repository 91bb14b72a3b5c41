"""What people are asked: the desk, the way to it, and what shows it."""

import asyncio
from functools import partial

from bots.app.kept import Kept
from bots.settings import Settings
from core.chat.port import Veil
from core.confirmations.asking import NAMESPACE as CONFIRMATIONS
from core.confirmations.asking import Asking, Causes
from core.confirmations.desk import Desk
from core.confirmations.folder import Folder
from core.confirmations.leave import Leave
from core.ids import SessionId


def desk_of(settings: Settings, kept: Kept) -> Desk:
    """What is asked and not yet filed."""
    admins = frozenset((admin.platform, admin.user) for admin in settings.ishiki_admins)
    leave = Leave(kept.decisions, admins=admins, earlier=kept.lineage.earlier)
    folder = Folder(kept.sessions.folder)
    desk = Desk(folder, kept.decisions, leave, admins=admins, current=kept.lineage.current)

    async def goes_on(old: SessionId, new: SessionId) -> None:
        if kept.sessions.exists(old):
            await kept.sessions.create(new)
        await desk.move(old, new)

    kept.lineage.listen(goes_on)
    return desk


def asking_of(settings: Settings, kept: Kept, desk: Desk, causes: Causes, veil: Veil) -> Asking:
    """The way from a request to the desk."""

    async def keep(session: SessionId, content: bytes) -> str:
        put = partial(kept.resources.put_artifact, session, CONFIRMATIONS, content, filename="request.json")
        return await asyncio.to_thread(put)

    return Asking(
        desk,
        kept.sessions,
        causes,
        keep,
        timeout=settings.ishiki_confirm_timeout,
        origin=kept.lineage.origin,
        current=kept.lineage.current,
        veil=veil,
    )
