"""The door for what we say on Telegram: one chat, through the library's client."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import quote as percent_encoded
from urllib.parse import urlsplit

import structlog
from telegram import InlineKeyboardMarkup, InputFile, LinkPreviewOptions, Message, ReplyParameters
from telegram.error import BadRequest, ChatMigrated, Forbidden, InvalidToken, NetworkError, RetryAfter, TelegramError

from bots.telegram.connection import Connection, is_network, seconds_of, was_not_sent
from bots.telegram.format import MOST_CAPTION_UNITS, TOPIC_GONE, compose
from bots.telegram.prompts import markup_of
from core.chat.port import Link, Mode, Part, Upload
from core.chat.prompt import Prompt, compose_prompt
from core.chat.split import utf16_length
from core.errors import ChatError, ChatMoved, ChatRefused, ChatUnavailable
from core.ids import MessageId, SessionId, ThreadId, business_connection_of, channel_of, telegram_session
from core.sidecars import FileRef

GENERAL: Final = "1"
"""The forum topic that has no thread id when something is sent to it."""

_REFUSALS: Final = {
    "file is too big": ("FileTooLarge", "Telegram gives bots no files above 20 MB"),
    "message to edit not found": ("NotFound", "that message is gone"),
    "message_id_invalid": ("NotFound", "that message is gone"),
    "file_id": ("NotFound", "Telegram no longer has that file"),
    "chat not found": ("ChatNotFound", "Telegram does not know that chat, or the person has never written to the bot"),
    "message is too long": ("TooLong", "the message is longer than Telegram takes"),
    "request entity too large": ("TooLarge", "the file is larger than Telegram takes; send a smaller one"),
    "topic_closed": ("TopicClosed", "the topic is closed; open it, or make the bot an administrator"),
    "not enough rights": ("Forbidden", "the bot may not do that in this chat; give it the right to send such messages"),
    "business connection not found": ("BusinessEnded", "the business connection is over or does not let the bot reply"),
}
MOST_PHOTO_BYTES: Final = 10_000_000
"""Larger pictures are refused as photos (sendPhoto) and go as documents."""

_NO_PREVIEW: Final = LinkPreviewOptions(is_disabled=True)

Send = Callable[..., Awaitable[Message]]

logger = structlog.get_logger()


class Outbound:
    """`Chat` of one Telegram chat. ``connection`` gives the one that is in use, if any."""

    def __init__(
        self, session: SessionId, connection: Callable[[], Connection | None], *, token: str, api_url: str
    ) -> None:
        self._chat = int(channel_of(session))
        self._business = business_connection_of(session)
        self._connection = connection
        self._files = f"{api_url}/file/bot{token}/"
        self._hosts = frozenset({urlsplit(api_url).netloc.rpartition("@")[2].lower()})

    @property
    def knows_nonces(self) -> bool:
        return False

    def compose(self, text: str, mode: Mode) -> list[Part]:
        """Parts of at most 4096 UTF-16 units, or 1024 and one file."""
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
        """Send one part: its text, or its files one by one, the first with the text as its caption.

        Telegram knows no nonces, so what may have been sent is not sent again. Raises `ChatUnavailable` and
        `ChatRefused`.
        """
        connection = self._connected()
        ids: list[MessageId] = []
        where = self._where(quote, thread)
        captioned = bool(uploads) and utf16_length(part.plain) <= MOST_CAPTION_UNITS
        try:
            if part.text and not captioned:
                ids.append(await self._post(connection.send_message, part, "text", where))
            for index, upload in enumerate(uploads):
                words = part if captioned and index == 0 else Part("", "")
                send, medium = _sender(connection, upload)
                ids.append(await self._post(send, words, "caption", where | medium))
        except TelegramError as error:
            translated = _translated(error)
            if ids and isinstance(translated, ChatUnavailable):
                raise ChatRefused(
                    f"only the first of several messages was sent: {translated}", name="PartlySent"
                ) from error
            raise translated from error
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            # The library raises these over an answer that is not what the Bot API documents.
            raise ChatRefused(
                "Telegram's answer cannot be read; it may have been sent", name="UnknownOutcome"
            ) from error
        return ids

    async def ask(
        self,
        prompt: Prompt,
        uploads: Sequence[Upload],
        *,
        quote: MessageId | None,
        thread: ThreadId | None,
        nonce: str,
    ) -> MessageId:
        """Show a prompt, and behind it the files that belong to it, which it can do without. Otherwise as `send`."""
        connection = self._connected()
        where = self._where(quote, thread)
        try:
            send = partial(connection.send_message, reply_markup=markup_of(prompt), link_preview_options=_NO_PREVIEW)
            asked = await self._post(send, _composed(prompt), "text", where)
        except TelegramError as error:
            raise _translated(error) from error
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise ChatRefused(
                "Telegram's answer cannot be read; it may have been sent", name="UnknownOutcome"
            ) from error
        for upload in uploads:
            medium = {"document": InputFile(upload.content, filename=upload.name)}
            try:
                await self._post(connection.send_document, Part("", ""), "caption", where | medium)
            except (TelegramError, TypeError, KeyError, AttributeError, ValueError) as error:
                logger.warning("prompt_without_file", error=type(error).__name__)
        return asked

    async def revise(self, message: MessageId, prompt: Prompt, *, thread: ThreadId | None) -> None:
        """Make a prompt show this. Raises `ChatUnavailable` and `ChatRefused`.

        A message that asked for a reply cannot be edited (Updating messages), so its outcome is one more message: where
        it is told again, it stands there again.
        """
        connection = self._connected()
        try:
            edit = partial(connection.edit_message_text, link_preview_options=_NO_PREVIEW)
            place = {"chat_id": self._chat, "message_id": int(message), "business_connection_id": self._business}
            is_edited = await _edited(edit, _composed(prompt), place | {"reply_markup": _inline(prompt)})
            if prompt.outcome and not is_edited:
                told = compose(prompt.outcome, "raw")[0]
                await self._post(connection.send_message, told, "text", self._where(message, thread))
        except TelegramError as error:
            if is_network(error):  # asking twice does no harm here
                raise ChatUnavailable("Telegram could not be reached", name="NotConnected") from error
            raise _translated(error) from error
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise ChatRefused("Telegram's answer cannot be read", name="UnknownOutcome") from error

    async def link(self, ref: FileRef, *, fresh: bool) -> Link:
        """Where a file is, for an hour; asked for each time, as the link holds the token and is kept nowhere.

        Raises `ChatUnavailable` and `ChatRefused`.
        """
        if not ref.file_id:
            raise ChatRefused("that file bears no id by which Telegram could be asked for it", name="NotFound")
        try:
            path = await self._connected().file_path(ref.file_id)
        except TelegramError as error:
            if is_network(error):  # asking twice does no harm here
                raise ChatUnavailable("Telegram could not be reached", name="NotConnected") from error
            raise _translated(error) from error
        if not path:
            raise ChatRefused("Telegram no longer has that file", name="NotFound")
        return Link(self._files + _relative(path), self._hosts)

    def _connected(self) -> Connection:
        connection = self._connection()
        if connection is None:
            raise ChatUnavailable("Telegram is not connected; it is tried again as soon as it is", name="NotConnected")
        return connection

    def _where(self, quote: MessageId | None, thread: ThreadId | None) -> dict[str, Any]:
        where: dict[str, Any] = {"chat_id": self._chat, "business_connection_id": self._business}
        if quote is not None and quote.isascii() and quote.isdecimal():
            where["reply_parameters"] = ReplyParameters(int(quote), allow_sending_without_reply=True)
        if thread is not None and thread != GENERAL and thread.isascii() and thread.isdecimal():
            where["message_thread_id"] = int(thread)
        return where

    async def _post(self, send: Send, words: Part, name: str, where: dict[str, Any]) -> MessageId:
        """Send one message; where its topic is gone, once more and marked into the chat itself, as all after it."""
        try:
            return await _sent(send, words, name, where)
        except BadRequest as error:
            if "message thread not found" not in error.message.lower() or "message_thread_id" not in where:
                raise
        del where["message_thread_id"]
        marked = Part(f"{TOPIC_GONE}\n{words.text}".strip(), f"{TOPIC_GONE}\n{words.plain}".strip())
        return await _sent(send, marked, name, where)


async def _sent(send: Send, words: Part, name: str, where: Mapping[str, Any]) -> MessageId:
    """Send one message; as plain text if Telegram cannot read its markup."""
    try:
        message = await send(**where, **({name: words.text, "parse_mode": "HTML"} if words.text else {}))
    except BadRequest as error:
        if "can't parse entities" not in error.message.lower() or not words.text:
            raise
        message = await send(**where, **{name: words.plain})
    return MessageId(str(message.message_id))


async def _edited(edit: Callable[..., Awaitable[object]], words: Part, where: Mapping[str, Any]) -> bool:
    """Edit a message, as plain text if Telegram cannot read its markup; False for one that cannot be edited.

    One that shows this already is no error.
    """
    try:
        await edit(words.text, parse_mode="HTML", **where)
    except BadRequest as error:
        told = error.message.lower()
        if "message can't be edited" in told:
            return False
        if "can't parse entities" in told:
            await edit(words.plain, **where)
        elif "message is not modified" not in told:
            raise
    return True


def _inline(prompt: Prompt) -> InlineKeyboardMarkup | None:
    markup = markup_of(prompt)
    return markup if isinstance(markup, InlineKeyboardMarkup) else None


def _composed(prompt: Prompt) -> Part:
    return compose_prompt(prompt, lambda markup: compose(markup, "element"))


def _sender(connection: Connection, upload: Upload) -> tuple[Send, dict[str, Any]]:
    """The method for a file of that type, and its argument. What Telegram would have to convert goes as it is."""
    file = InputFile(upload.content, filename=upload.name)
    match upload.media_type.partition(";")[0].strip().lower():
        case "image/jpeg" | "image/png" | "image/webp" if len(upload.content) <= MOST_PHOTO_BYTES:
            return connection.send_photo, {"photo": file}
        case "audio/mpeg" | "audio/mp4" | "audio/x-m4a":
            return connection.send_audio, {"audio": file}
        case "video/mp4":
            return connection.send_video, {"video": file}
        case _:
            return connection.send_document, {"document": file}


def _relative(path: str) -> str:
    """``file_path`` as it may stand behind the file base. Raises `ChatRefused` for one that leads elsewhere."""
    steps = path.split("/")
    if "\\" in path or ":" in path or any(step in {"", ".", ".."} for step in steps) or not path.isprintable():
        raise ChatRefused(
            "Telegram named a path that is not one below its file address; a local Bot API server must run without "
            "--local",
            name="BadPath",
        )
    return percent_encoded(path)


def _translated(error: TelegramError) -> ChatError:
    """What an error of the library means to somebody who wants to say something."""
    match error:
        case RetryAfter():
            return ChatUnavailable("Telegram wants fewer messages", name="RateLimited", retry_after=seconds_of(error))
        case InvalidToken():
            return ChatUnavailable("Telegram does not take the token at present", name="NotConnected")
        case NetworkError() if was_not_sent(error):
            return ChatUnavailable("Telegram could not be reached", name="NotConnected")
        case ChatMigrated(new_chat_id=chat):
            return ChatMoved("the group has become a supergroup, a chat of its own", successor=telegram_session(chat))
        case Forbidden():
            name, told = "Forbidden", "the bot may not write there: it was blocked, removed, or never started"
        case BadRequest():
            reason = "".join(character for character in error.message[:200] if character.isprintable())
            name, told = _refusal(error) or ("BadRequest", f"Telegram refused the message: {reason}")
        case _:
            unknown = "Telegram did not say whether it took the message, which may stand there"
            name, told = _refusal(error) or ("UnknownOutcome", unknown)
    return ChatRefused(told, name=name)


def _refusal(error: TelegramError) -> tuple[str, str] | None:
    return next((told for words, told in _REFUSALS.items() if words in error.message.lower()), None)
