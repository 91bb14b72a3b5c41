"""Follower: what people sent is copied beside the log before its links die, and goes when its message is retracted."""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

import httpx
import structlog

from core.chat.port import Chat, Chats, Link
from core.entries import AnyEntry, Attachment, MessageDeleted, fact_of
from core.errors import ChatRefused, ChatUnavailable, ResourceError
from core.ids import AssetId, SessionId
from core.resources.download import DeadLink, TryLater, download
from core.resources.store import Resources
from core.sessions.reading import Recorded
from core.sessions.receipts import Receipt, Receipts
from core.sessions.session import Session
from core.sessions.state import MessageKey, key_of
from core.sidecars import Sidecar
from core.threads import finish_in_thread

AT_ONCE: Final = 4
MOST_UNDER_WAY: Final = 256
"""Files of one session that are waited for before more of its log is read."""
ATTEMPTS: Final = 64
LONGEST_PAUSE: Final = 60.0
"""With the attempts: a file host or a platform may be away for about an hour before a file counts as lost."""
LOOK_AGAIN: Final = 0.5
"""Seconds after which the log is looked at again while files are under way."""

logger = structlog.get_logger()


class _Stretch(NamedTuple):
    """Lines that were read together; the receipt is left when everything before it has ended."""

    fetching: set[asyncio.Task[None]]
    receipt: Receipt | None


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
        self._under_way: dict[tuple[SessionId, MessageKey], set[asyncio.Task[None]]] = {}

    def cares_for(self, entry: AnyEntry) -> bool:
        return isinstance(fact_of(entry), Attachment | MessageDeleted)

    def drop_retracted(self, session: Session, added: Sequence[Recorded]) -> None:
        """A listener of the sessions: what is being fetched of a message that was just retracted is let go of."""
        for recorded in added:
            fact = fact_of(recorded.entry)
            if isinstance(fact, MessageDeleted):
                self._drop(session.id, key_of(fact))

    async def catch_up(self, session: Session) -> None:
        """Fetch and remove everything that the log calls for, from the receipt to the end.

        A file that takes long holds up neither the files after it nor a removal. Where the platform is off nothing is
        done and no receipt left, so that the next start with it takes everything up.
        """
        chat = self._chats(session.id)
        if chat is None:
            return
        position = await session.resume_from(self._receipts.get(self.name, session.id))
        stretches: deque[_Stretch] = deque()
        async with asyncio.TaskGroup() as group:
            while position < session.size or stretches:
                running = {task for stretch in stretches for task in stretch.fetching if not task.done()}
                if position < session.size and len(running) < MOST_UNDER_WAY:
                    chunk, position = await asyncio.to_thread(session.read_chunk, position)
                    fetching = await self._begin(group, session, chat, chunk)
                    stretches.append(_Stretch(fetching, Receipt(chunk[-1].entry.id, position) if chunk else None))
                elif running:
                    # A session tells of its growth between two runs, not to one that is under way.
                    await asyncio.wait(running, timeout=LOOK_AGAIN, return_when=asyncio.FIRST_COMPLETED)
                while stretches and all(task.done() for task in stretches[0].fetching):
                    if (receipt := stretches.popleft().receipt) is not None:
                        self._receipts.put(self.name, session.id, receipt)

    async def _begin(
        self, group: asyncio.TaskGroup, session: Session, chat: Chat, chunk: Sequence[Recorded]
    ) -> set[asyncio.Task[None]]:
        """Start what some lines call for, in their order; removals are done when this returns."""
        begun: set[asyncio.Task[None]] = set()
        for recorded in chunk:
            fact = fact_of(recorded.entry)
            if isinstance(fact, MessageDeleted):
                await self._remove(session, key_of(fact))
            elif isinstance(fact, Attachment) and (key := _message_of(fact)) is not None:
                for asset in _assets_of(fact):
                    task = group.create_task(self._fetch(session, chat, key, asset), name=f"fetch {asset}")
                    begun.add(task)
                    self._under_way.setdefault((session.id, key), set()).add(task)
                    task.add_done_callback(lambda done, place=(session.id, key): self._ended(place, done))
        return begun

    def _drop(self, session: SessionId, key: MessageKey) -> set[asyncio.Task[None]]:
        dropped = set(self._under_way.get((session, key), ()))
        for task in dropped:
            task.cancel()
        return dropped

    def _ended(self, place: tuple[SessionId, MessageKey], task: asyncio.Task[None]) -> None:
        tasks = self._under_way[place]
        tasks.discard(task)
        if not tasks:
            del self._under_way[place]

    async def _fetch(self, session: Session, chat: Chat, key: MessageKey, asset: AssetId) -> None:
        """Fetch one file, or note why it cannot be had."""
        url = f"asset://{asset}"
        try:
            sidecar = await asyncio.to_thread(self._resources.sidecar, session.id, url)
        except ResourceError as error:
            if error.code == "resource_read_failed":
                raise  # the disk: tried again as a whole
            logger.warning("asset_without_sidecar", session=session.id, asset=asset, reason=error.code)
            return
        if sidecar.fetched_at or sidecar.error or sidecar.removed_at or sidecar.ref is None:
            return
        standing = await session.standing(key)
        if standing is not None and standing.deleted:
            return
        try:
            await self._insist(session.id, chat, asset, sidecar)
        except ResourceError as error:
            logger.info("asset_not_fetched", session=session.id, asset=asset, code=error.code, reason=str(error))
            await finish_in_thread(self._resources.give_up, session.id, asset, error.code, str(error))
        except OSError:
            raise  # the disk: tried again as a whole
        except Exception as error:  # noqa: BLE001 - one file that trips us must not hold up those behind it
            logger.error("asset_not_fetched", session=session.id, asset=asset, error=type(error).__name__)  # noqa: TRY400 - the text may hold the link
            message = f"the file could not be fetched ({type(error).__name__})"
            await finish_in_thread(self._resources.give_up, session.id, asset, "resource_read_failed", message)

    async def _insist(self, session: SessionId, chat: Chat, asset: AssetId, sidecar: Sidecar) -> None:
        declared = sidecar.source_info.byte_length if sidecar.source_info else None
        if declared is not None and declared > self._most:
            raise ResourceError("resource_too_large", f"the file is larger than {self._most} bytes")
        fresh, pause = False, 1.0
        for attempt in range(1, ATTEMPTS + 1):
            try:
                async with self._places:
                    await self._download(session, chat, asset, sidecar, fresh=fresh)
            except DeadLink:
                if fresh:
                    raise
                fresh = True
            except TryLater as error:
                if attempt == ATTEMPTS:
                    raise
                await asyncio.sleep(min(error.seconds if error.seconds is not None else pause, LONGEST_PAUSE))
                pause *= 2
            else:
                return
        raise ResourceError("resource_unavailable", "the file could not be fetched")

    async def _download(self, session: SessionId, chat: Chat, asset: AssetId, sidecar: Sidecar, *, fresh: bool) -> None:
        link = await _link(chat, sidecar, fresh=fresh)
        with self._resources.receive(session, asset) as incoming:
            await download(self._client, link, incoming, most=self._most)
            await finish_in_thread(self._resources.keep, session, asset, incoming)

    async def _remove(self, session: Session, key: MessageKey) -> None:
        """Take away the files of every revision of a retracted message, once nothing more of it can come in."""
        if dropped := self._drop(session.id, key):
            await asyncio.wait(dropped)
        for recorded in await asyncio.to_thread(session.about, key):
            fact = fact_of(recorded.entry)
            if isinstance(fact, Attachment):
                for asset in _assets_of(fact):
                    await finish_in_thread(self._resources.remove, session.id, asset)


async def _link(chat: Chat, sidecar: Sidecar, *, fresh: bool) -> Link:
    assert sidecar.ref is not None
    try:
        return await chat.link(sidecar.ref, fresh=fresh)
    except ChatUnavailable as error:
        raise TryLater(str(error), error.retry_after) from error
    except ChatRefused as error:
        code = "resource_too_large" if error.name == "FileTooLarge" else "resource_not_found"
        raise ResourceError(code, str(error)) from error


def _assets_of(fact: Attachment) -> list[AssetId]:
    return [AssetId(item.url.removeprefix("asset://")) for item in fact.items if item.url.startswith("asset://")]


def _message_of(fact: Attachment) -> MessageKey | None:
    """The message that a platform attachment belongs to."""
    if fact.source != "platform":
        return None
    if fact.platform is None or fact.self_id is None or fact.channel_id is None or fact.message_id is None:
        return None
    return MessageKey(fact.platform, fact.self_id, fact.channel_id, fact.message_id)
