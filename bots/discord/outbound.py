"""The door for what we say on Discord: one channel, through the library's HTTP side."""

import hashlib
import io
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Required, TypedDict

import aiohttp
import discord

from bots.discord.format import compose
from bots.discord.media import links_of
from bots.discord.prompts import view_of
from core.backoff import retry_after
from core.chat.port import Link, Mode, Part, Upload
from core.chat.prompt import Prompt, compose_prompt
from core.errors import ChatError, ChatRefused, ChatUnavailable
from core.ids import ChannelId, MessageId, ThreadId, UserId
from core.sidecars import FileRef

MOST_LINKS: Final = 4096
_ALLOWED: Final = discord.AllowedMentions(everyone=False, roles=False, users=True, replied_user=True)
_NO_HISTORY: Final = 160002
"""Cannot reply without permission to read message history (Opcodes and Status Codes, JSON Error Codes)."""
_BAD_FORM: Final = 50035
_REFUSALS: Final = {
    403: (
        "Forbidden",
        "the bot may not do that in this channel; give it the rights to view it, send messages and attach files",
    ),
    404: ("NotFound", "the channel or message is gone"),
    413: ("TooLarge", "the files are larger than Discord takes; send smaller ones"),
}
FAILURES: Final = (discord.DiscordException, OSError, aiohttp.ClientError, TimeoutError, RuntimeError)
"""What a call may raise; RuntimeError is how aiohttp says that its session was closed meanwhile."""
UNREADABLE: Final = (KeyError, TypeError, AttributeError, ValueError)
"""What the library raises over an answer that is not what Discord documents, as a proxy may give one."""


class Links:
    """Where the newest files are, as Discord said it in passing. In memory only: these links are signed."""

    def __init__(self, hosts: tuple[str, ...]) -> None:
        self._hosts = hosts
        self._urls: OrderedDict[tuple[int, int, str], str] = OrderedDict()

    def remember(self, message: discord.Message) -> None:
        if not (message.attachments or message.stickers or message.message_snapshots):
            return
        for file, url in links_of(message, self._hosts):
            key = (message.channel.id, message.id, file)
            self._urls[key] = url
            self._urls.move_to_end(key)
            if len(self._urls) > MOST_LINKS:
                self._urls.popitem(last=False)

    def find(self, ref: FileRef) -> Link | None:
        url = self._urls.get((int(ref.channel_id), int(ref.message_id), ref.attachment_id or ""))
        return None if url is None else Link(url, frozenset(self._hosts))


class Outbound:
    """`Chat` of one Discord channel, DM channel or thread. ``client`` gives the one that is logged in, if any."""

    def __init__(self, channel: ChannelId, client: Callable[[], discord.Client | None], links: Links) -> None:
        self._channel = int(channel)
        self._client = client
        self._links = links

    @property
    def knows_nonces(self) -> bool:
        return True

    def compose(self, text: str, mode: Mode) -> list[Part]:
        """Parts of at most 2000 characters and 10 files."""
        return compose(text, mode)

    async def send(
        self,
        part: Part,
        uploads: Sequence[Upload],
        *,
        quote: MessageId | None,
        thread: ThreadId | None,
        nonce: str,
    ) -> list[MessageId]:
        """Send one part; users named in it and the author of the quoted message are pinged, nobody else.

        For some minutes Discord makes of the same nonce the same message. Threads are channels here, so ``thread`` is
        not looked at. Raises `ChatUnavailable` and `ChatRefused`.
        """
        if not part.text and not uploads:
            return []  # its files could not be read, which is told elsewhere
        return [await self._say(part, uploads, quote, nonce, _Extras(allowed_mentions=_ALLOWED))]

    async def ask(
        self,
        prompt: Prompt,
        uploads: Sequence[Upload],
        *,
        quote: MessageId | None,
        thread: ThreadId | None,
        nonce: str,
    ) -> MessageId:
        """Show a prompt; nothing in it pings anybody or gets a preview. Otherwise as `send`."""
        part, view = _composed(prompt), view_of(prompt)
        assert view is not None, "a prompt that is over is not asked"
        extras = _Extras(view=view, allowed_mentions=discord.AllowedMentions.none(), suppress_embeds=True)
        return await self._say(part, uploads, quote, nonce, extras)

    async def revise(self, message: MessageId, prompt: Prompt, *, thread: ThreadId | None) -> None:
        """Make a prompt show this. Raises `ChatUnavailable` and `ChatRefused`."""
        client = self._connected()
        place = client.get_partial_messageable(self._channel)
        try:
            await place.get_partial_message(int(message)).edit(
                content=_composed(prompt).text,
                view=view_of(prompt),
                allowed_mentions=discord.AllowedMentions.none(),
            )
        except FAILURES as error:
            raise translated(error) from error
        except UNREADABLE as error:
            raise ChatRefused("Discord's answer cannot be read", name="UnknownOutcome") from error

    async def link(self, ref: FileRef, *, fresh: bool) -> Link:
        """Where an attachment or sticker is now; a link that is not known, or dead, is asked for with the message.

        Raises `ChatUnavailable` and `ChatRefused`.
        """
        known = None if fresh else self._links.find(ref)
        if known is not None:
            return known
        client = self._connected()
        try:
            message = await client.get_partial_messageable(self._channel).fetch_message(int(ref.message_id))
        except FAILURES as error:
            raise translated(error) from error
        except UNREADABLE as error:
            raise ChatUnavailable("Discord's answer cannot be read", name="ServerError") from error
        self._links.remember(message)
        found = self._links.find(ref)
        if found is None:
            raise ChatRefused("the message no longer has that file", name="NotFound")
        return found

    def _connected(self) -> discord.Client:
        client = self._client()
        if client is None:
            raise ChatUnavailable("Discord is not connected; it is tried again as soon as it is", name="NotConnected")
        return client

    async def _say(
        self, part: Part, uploads: Sequence[Upload], quote: MessageId | None, nonce: str, extras: "_Extras"
    ) -> MessageId:
        reference = None
        if quote is not None and quote.isascii() and quote.isdecimal():
            reference = discord.MessageReference(
                message_id=int(quote), channel_id=self._channel, fail_if_not_exists=False
            )
        client = self._connected()
        try:
            try:
                message = await self._post(client, part, uploads, reference, nonce, extras)
            except discord.HTTPException as error:
                if reference is None or error.code not in {_NO_HISTORY, _BAD_FORM}:
                    raise
                # It may be the quoted message that cannot be quoted: a notice, or one we may not read.
                message = await self._post(client, part, uploads, None, nonce, extras)
        except FAILURES as error:
            raise translated(error) from error
        except UNREADABLE as error:
            raise ChatRefused(
                "Discord's answer cannot be read; it may have been sent", name="UnknownOutcome"
            ) from error
        return MessageId(str(message.id))

    async def _post(
        self,
        client: discord.Client,
        part: Part,
        uploads: Sequence[Upload],
        reference: discord.MessageReference | None,
        nonce: str,
        extras: "_Extras",
    ) -> discord.Message:
        send = partial(
            client.get_partial_messageable(self._channel).send,
            part.text or None,
            files=[discord.File(io.BytesIO(upload.content), filename=upload.name) for upload in uploads],
            nonce=hashlib.sha256(nonce.encode()).hexdigest()[:25],
            **extras,
        )
        return await (send() if reference is None else send(reference=reference))


async def direct(user: UserId, client: Callable[[], discord.Client | None], links: Links) -> Outbound:
    """The direct chat with a person, opened if need be. Raises `ChatUnavailable` and `ChatRefused`."""
    connected = client()
    if connected is None:
        raise ChatUnavailable("Discord is not connected", name="NotConnected")
    try:
        channel = await connected.create_dm(discord.Object(int(user)))
    except FAILURES as error:
        raise translated(error) from error
    except UNREADABLE as error:
        raise ChatRefused("Discord's answer cannot be read", name="UnknownOutcome") from error
    return Outbound(ChannelId(str(channel.id)), client, links)


class _Extras(TypedDict, total=False):
    """What a message has besides words and files."""

    allowed_mentions: Required[discord.AllowedMentions]
    view: discord.ui.View
    suppress_embeds: bool


def _composed(prompt: Prompt) -> Part:
    return compose_prompt(prompt, lambda markup: compose(markup, "element"))


def translated(error: Exception) -> ChatError:
    """What an error of the library means to somebody who wants to say something."""
    if isinstance(error, discord.RateLimited):
        return ChatUnavailable("Discord wants fewer messages", name="RateLimited", retry_after=error.retry_after)
    if not isinstance(error, discord.HTTPException):
        return ChatUnavailable(f"Discord could not be reached ({type(error).__name__})", name="NotConnected")
    if error.status == 429:
        seconds = retry_after(error.response.headers)
        return ChatUnavailable("Discord wants fewer messages", name="RateLimited", retry_after=seconds)
    if error.status >= 500:
        return ChatUnavailable(f"Discord answers {error.status}", name="ServerError")
    name, told = _REFUSALS.get(error.status, ("Refused", "Discord refused the message"))
    return ChatRefused(f"{told} ({error.status}, code {error.code})", name=name)
