"""The Telegram of a test or a demo: a world, its Bot API server, and the hands of the people in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self, TypeVar

from bots.sandbox.telegram.chats import Chat, ChatKind, Json, Message
from bots.sandbox.telegram.faults import FileFault
from bots.sandbox.telegram.people import Person
from bots.sandbox.telegram.server import ApiServer
from bots.sandbox.telegram.world import ApiCall, BotAccount, Webhook, World, member

T = TypeVar("T")
_BOT_ID = 7_000_000_001


class TelegramSandbox:
    """`async with TelegramSandbox() as telegram:` serves the Bot API at `telegram.api_url` for `telegram.token`.

    `clock` gives seconds since 1970. Privacy mode is off unless asked for, as a gateway's operator sets it; groups made
    here already have the bot in them. `numbers_from` keeps the ids of people and chats apart from those of another
    world. One bot, HTML or entities as formatting (no Markdown), loopback only.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        token: str = f"{_BOT_ID}:AAsandbox-only-known-on-this-machine",
        clock: Callable[[], float] = time.time,
        can_read_all_group_messages: bool = True,
        numbers_from: int = 1,
    ) -> None:
        bot_id = int(token.partition(":")[0])
        self.token = token
        self.bot = BotAccount(bot_id, "sandbox_bot", "Sandbox", can_read_all_group_messages)
        self._world = World(self.bot, token, clock, numbers_from)
        self._server = ApiServer(self._world, port)
        self._heard: dict[Chat, int] = {}

    async def __aenter__(self) -> Self:
        await self._server.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._server.stop()

    @property
    def api_url(self) -> str:
        """What `TELEGRAM_API_URL` is set to."""
        return self._server.url

    def shift_clock(self, seconds: float) -> None:
        """Move the world's time, that of `Date` in its answers too; negative to make old messages."""
        self._world.clock_shift += seconds

    def user(self, first_name: str, *, is_bot: bool = False, language_code: str = "en", **rest: str | bool) -> Person:
        """A new account; `rest` are other fields of User (`username`, `last_name`, `is_premium`)."""
        user: Json = {"id": 5_000_000_000 + next(self._world.numbers), "is_bot": is_bot, "first_name": first_name}
        user |= rest if is_bot else rest | {"language_code": language_code}
        self._world.users[user["id"]] = user
        return Person(self._world, user)

    def group(self, title: str, members: Sequence[Person] = ()) -> Chat:
        """A basic group; the first member made it."""
        return self._room(-4_000_000_000, "group", title, members)

    def supergroup(
        self, title: str, members: Sequence[Person] = (), *, is_forum: bool = False, username: str = ""
    ) -> Chat:
        """A supergroup; public if it has a `username`."""
        return self._room(-1_002_000_000_000, "supergroup", title, members, is_forum=is_forum, username=username)

    def forum(self, title: str, members: Sequence[Person] = ()) -> Chat:
        """A supergroup with topics."""
        return self.supergroup(title, members, is_forum=True)

    def channel(self, title: str, owner: Person, *, discussion: Chat | None = None, username: str = "") -> Chat:
        """A channel that the bot administers; its posts go on into the `discussion` group."""
        channel = self._room(-1_001_000_000_000, "channel", title, [owner], username=username)
        channel.linked = discussion
        if discussion is not None:
            discussion.linked = channel
        return channel

    def _room(
        self,
        below: int,
        kind: ChatKind,
        title: str,
        members: Sequence[Person],
        *,
        is_forum: bool = False,
        username: str = "",
    ) -> Chat:
        face: Json = {"title": title} | ({"username": username} if username else {})
        chat = self._world.add_chat(below - next(self._world.numbers), kind, face, is_forum=is_forum)
        for index, person in enumerate(members):
            chat.members[person.id] = member(person.user, "member" if index else "creator")
        self._world.admit_bot(chat, "administrator" if kind == "channel" else "member")
        return chat

    async def migrate(self, group: Chat, by: Person, *, old_notice: bool = True, new_notice: bool = True) -> Chat:
        """Make a supergroup of `group`; either notice can be kept from the bot."""
        supergroup = self.supergroup(group.face["title"])
        supergroup.members, supergroup.bot_reads_all = dict(group.members), group.bot_reads_all
        sender = {"from": by.user}
        old = self._world.compose(group, {"migrate_to_chat_id": supergroup.id}, sender)
        new = self._world.compose(supergroup, {"migrate_from_chat_id": group.id}, sender)
        for message, told in ((old, old_notice), (new, new_notice)):
            if told:
                self._world.announce(message)
        group.migrated_to = supergroup.id
        return supergroup

    async def push(self, update: Json) -> None:
        """Queue a raw update, asked for or not, parsable or not; numbered unless it bears an `update_id`.

        A number below the offset that the bot sends next is forgotten unseen; to go back, `restart_update_ids`.
        """
        self._world.updates.put_raw(update)

    async def redeliver(self, message: Message) -> None:
        """Tell the bot of a message again, under a new `update_id`."""
        self._world.announce(message)

    def restart_update_ids(self, at: int) -> None:
        """Number updates anew from `at`; unconfirmed ones come again under the new numbers."""
        self._world.updates.restart(at)

    def pending_updates(self) -> int:
        """How many updates no offset has confirmed."""
        return len(self._world.updates)

    def history(self, chat: Chat) -> list[Message]:
        """The messages that stand in the chat, oldest first."""
        return list(chat.messages.values())

    def calls(self, method: str) -> list[ApiCall]:
        """The calls of one method so far."""
        return [call for call in self._world.calls if call.method == method]

    async def bot_message(self, chat: Chat, containing: str = "", within: float = 5.0) -> Message:
        """The bot's next message in `chat` with that text, after the last one returned here.

        Raises `TimeoutError` that says what it said instead.
        """

        def look() -> tuple[int, Message] | None:
            for index in range(self._heard.get(chat, 0), len(self._world.spoken)):
                message = self._world.spoken[index]
                if message.chat is chat and containing in message.text:
                    return index, message
            return None

        try:
            index, message = await self._world.pulse.until(look, within)
        except TimeoutError as error:
            said = [message.text for message in self._world.spoken if message.chat is chat]
            raise TimeoutError(f"no new message with {containing!r} in {within} s; the bot said {said}") from error
        self._heard[chat] = index + 1
        return message

    async def until(self, condition: Callable[[], T | None], within: float = 5.0) -> T:
        """Wait until something about the world is so; raises `TimeoutError`."""
        return await self._world.pulse.until(condition, within)

    def expire_callbacks(self) -> None:
        """Make every press so far too old to be answered."""
        for press in self._world.presses.values():
            press.expired = True

    def rate_limit(self, method: str, retry_after: int, times: int = 1, chat: Chat | None = None) -> None:
        """Answer the next calls of methods with `method` in their name by 429 (seconds), in one chat or in all."""
        self._world.faults.flood(method, retry_after, times, chat.id if chat else None)

    def fail(self, method: str, status: int, times: int = 1, description: str | None = None) -> None:
        """Refuse the next calls of methods with `method` in their name."""
        self._world.faults.refuse(method, status, times, description)

    def lose_answer(self, method: str, times: int = 1) -> None:
        """Do what the next calls ask and drop the connection instead of answering."""
        self._world.faults.lose_answer(method, times)

    def garble(self, method: str, times: int = 1) -> None:
        """Do what the next calls ask and answer with something that is no JSON."""
        self._world.faults.garble(method, times)

    def slow(self, method: str, seconds: float, times: int = 1) -> None:
        """Let the next calls wait before anything happens."""
        self._world.faults.slow(method, seconds, times)

    def set_webhook(self, url: str) -> None:
        """Have somebody else set a webhook, as another program of the same bot does; empty removes it."""
        self._world.webhook = Webhook(url)
        self._world.pulse.beat()

    def forbid(self, chat: Chat, right: str) -> None:
        """Take a right of ChatPermissions from everybody in a group who is no administrator."""
        chat.forbidden.add(right)

    def remove_bot(self, chat: Chat) -> None:
        """Throw the bot out, without telling it."""
        chat.members[self.bot.id] = member(self.bot.user(), "kicked")

    def spoil_file(self, name: str, fault: FileFault, times: int = 1) -> None:
        """Spoil the next downloads of files with `name` in their name: slow, endless, or missing (404)."""
        self._world.faults.spoil(name, fault, times)

    def drop_connections(self) -> None:
        """Cut every open connection."""
        self._server.drop_connections()

    def stall_polling(self) -> None:
        """Never answer a `getUpdates` that comes from now on."""
        self._world.updates.stalled = True

    def resume_polling(self) -> None:
        """Answer new ones again; those that hang go on hanging."""
        self._world.updates.stalled = False
