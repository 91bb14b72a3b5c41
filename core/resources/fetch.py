"""Follower: what people sent is copied beside the log before its links die, and goes when its message is retracted."""

import asyncio
from collections.abc import Sequence
from typing import Final

import httpx
import structlog

from core.chat.port import Chat, Chats, Link
from core.entries import AnyEntry, Attachment, MessageDeleted, fact_of
from core.errors import ChatRefused, ChatUnavailable, ResourceError
from core.ids import AssetId, SessionId
from core.resources.download import DeadLink, TryLater, download
from core.resources.store import Resources
from core.sessions.receipts import Receipt, Receipts
from core.sessions.session import Recorded, Session
from core.sessions.state import MessageKey, key_of
from core.sidecars import Sidecar
from core.threads import finish_in_thread

AT_ONCE: Final = 4
ATTEMPTS: Final = 4
LONGEST_PAUSE: Final = 60.0

logger = structlog.get_logger()


class Fetch:
    """Fetches the files of platform messages. At most four at once over all sessions."""

    name = "fetch"

    def __init__(
        self, resources: Resources, client: httpx.AsyncClient, chats: Chats, receipts: Receipts, *, most: int
    ) -> None:
        self._resources = resources
        self._client = client
        self._chats = chats
        self._receipts = receipts
        self._most = most
        self._places = asyncio.Semaphore(AT_ONCE)
        self._under_way: dict[MessageKey, set[asyncio.Task[None]]] = {}

    def cares_for(self, entry: AnyEntry) -> bool:
        return isinstance(fact_of(entry), Attachment | MessageDeleted)

    def drop_retracted(self, _session: Session, added: Sequence[Recorded]) -> None:
        """A listener of the sessions: what is being fetched of a message that was just retracted is let go of."""
        for recorded in added:
            fact = fact_of(recorded.entry)
            if isinstance(fact, MessageDeleted):
                for task in self._under_way.get(key_of(fact), ()):
                    task.cancel()

    async def catch_up(self, session: Session) -> None:
        """Fetch and remove everything that the log calls for, from the receipt to the end."""
        position = await session.resume_from(self._receipts.get(self.name, session.id))
        while position < session.size:
            chunk, position = await asyncio.to_thread(session.read_chunk, position)
            async with asyncio.TaskGroup() as group:
                for recorded in chunk:
                    self._start(group, session, fact_of(recorded.entry))
            for recorded in chunk:
                fact = fact_of(recorded.entry)
                if isinstance(fact, MessageDeleted):
                    await self._remove(session, key_of(fact))
            if chunk:
                self._receipts.put(self.name, session.id, Receipt(chunk[-1].entry.id, position))

    def _start(self, group: asyncio.TaskGroup, session: Session, fact: object) -> None:
        key = attachment_key(fact)
        if not isinstance(fact, Attachment) or key is None:
            return
        for item in fact.items:
            if item.url.startswith("asset://"):
                asset = AssetId(item.url.removeprefix("asset://"))
                task = group.create_task(self._fetch(session, key, asset), name=f"fetch {asset}")
                tasks = self._under_way.setdefault(key, set())
                tasks.add(task)
                task.add_done_callback(lambda done, key=key: self._ended(key, done))

    def _ended(self, key: MessageKey, task: asyncio.Task[None]) -> None:
        tasks = self._under_way[key]
        tasks.discard(task)
        if not tasks:
            del self._under_way[key]

    async def _fetch(self, session: Session, key: MessageKey, asset: AssetId) -> None:
        """Fetch one file, or note why it cannot be had."""
        url = f"asset://{asset}"
        try:
            sidecar = await asyncio.to_thread(self._resources.sidecar, session.id, url)
        except ResourceError as error:
            logger.warning("asset_without_sidecar", session=session.id, asset=asset, reason=error.code)
            return
        if sidecar.fetched_at or sidecar.error or sidecar.removed_at or sidecar.ref is None:
            return
        if (await session.state()).is_retracted(key):
            return
        try:
            await self._insist(session.id, asset, sidecar)
        except ResourceError as error:
            logger.info("asset_not_fetched", session=session.id, asset=asset, code=error.code, reason=str(error))
            await asyncio.to_thread(self._resources.give_up, session.id, asset, error.code, str(error))

    async def _insist(self, session: SessionId, asset: AssetId, sidecar: Sidecar) -> None:
        declared = sidecar.source_info.byte_length if sidecar.source_info else None
        if declared is not None and declared > self._most:
            raise ResourceError("resource_too_large", f"the file is larger than {self._most} bytes")
        fresh, pause = False, 1.0
        for attempt in range(1, ATTEMPTS + 1):
            try:
                async with self._places:
                    await self._download(session, asset, sidecar, fresh=fresh)
            except DeadLink:
                if fresh:
                    raise
                fresh = True
            except TryLater as error:
                if attempt == ATTEMPTS:
                    raise
                await asyncio.sleep(min(error.seconds if error.seconds is not None else pause, LONGEST_PAUSE))
                pause *= 4
            else:
                return
        raise ResourceError("resource_unavailable", "the file could not be fetched")

    async def _download(self, session: SessionId, asset: AssetId, sidecar: Sidecar, *, fresh: bool) -> None:
        chat = self._chats(session)
        if chat is None:
            raise TryLater("the platform is off")
        link = await _link(chat, sidecar, fresh=fresh)
        with self._resources.receive(session, asset) as incoming:
            await download(self._client, link, incoming, most=self._most)
            await finish_in_thread(self._resources.keep, session, asset, incoming)

    async def _remove(self, session: Session, key: MessageKey) -> None:
        """Take away the files of every revision of a retracted message."""
        for recorded in await asyncio.to_thread(session.about, key):
            fact = fact_of(recorded.entry)
            if isinstance(fact, Attachment):
                for item in fact.items:
                    if item.url.startswith("asset://"):
                        asset = AssetId(item.url.removeprefix("asset://"))
                        await asyncio.to_thread(self._resources.remove, session.id, asset)


async def _link(chat: Chat, sidecar: Sidecar, *, fresh: bool) -> Link:
    assert sidecar.ref is not None
    try:
        return await chat.link(sidecar.ref, fresh=fresh)
    except ChatUnavailable as error:
        raise TryLater(str(error), error.retry_after) from error
    except ChatRefused as error:
        code = "resource_too_large" if error.name == "FileTooLarge" else "resource_not_found"
        raise ResourceError(code, str(error)) from error


def attachment_key(fact: object) -> MessageKey | None:
    """The message that a platform attachment belongs to."""
    if not isinstance(fact, Attachment) or fact.source != "platform":
        return None
    if fact.platform is None or fact.self_id is None or fact.channel_id is None or fact.message_id is None:
        return None
    return MessageKey(fact.platform, fact.self_id, fact.channel_id, fact.message_id)
