"""What the core asks of a chat platform."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from core.chat.prompt import Prompt
from core.ids import MessageId, SessionId, ThreadId
from core.sidecars import FileRef

Mode = Literal["element", "raw", "markdown"]
"""How a text is meant: element markup, plain text, or Markdown (log-format 14.2)."""


@dataclass(frozen=True, slots=True)
class Part:
    """One message as the platform takes it: within its limits, in its own markup.

    ``plain`` is the same without markup, for a platform that refuses the markup. ``files`` are ``asset://`` and
    ``artifact://`` URLs that are uploaded with it.
    """

    text: str
    plain: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Upload:
    """A file to send; ``name`` is safe for display."""

    name: str
    content: bytes
    media_type: str


class Link(NamedTuple):
    """Where bytes can be had now. Never stored and never shown: it may hold a token or a signature.

    ``hosts`` are the only ones (``host`` or ``host:port``) that may be asked, also after a redirect.
    """

    url: str
    hosts: frozenset[str]


class Chat(Protocol):
    """What the core asks of a platform, in one conversation.

    Raises `ChatUnavailable` when asking again may help and `ChatRefused` when not.
    """

    @property
    def knows_nonces(self) -> bool:
        """Whether the same nonce again is the same message, so that a send of unknown outcome may be repeated."""
        ...

    def compose(self, text: str, mode: Mode) -> list[Part]:
        """Cut a text into messages of the platform. Pure; at least one part unless the text is blank."""
        ...

    async def send(
        self,
        part: Part,
        uploads: Sequence[Upload],
        *,
        quote: MessageId | None,
        thread: ThreadId | None,
        nonce: str,
    ) -> list[MessageId]:
        """Send one part. The same ``nonce`` again is the same message, where the platform knows nonces.

        A quoted message that is gone is left out. `ChatRefused` named ``UnknownOutcome``: it may have been sent, and
        the platform has no means to tell.
        """
        ...

    async def ask(
        self,
        prompt: Prompt,
        uploads: Sequence[Upload],
        *,
        quote: MessageId | None,
        thread: ThreadId | None,
        nonce: str,
    ) -> MessageId:
        """Show a prompt with what it is answered by, which says `Prompt.control` when it is used; nobody is pinged.

        Quote, nonce and ``UnknownOutcome`` as in `send`; a topic that is gone is left out. Raises `ChatMoved`.
        """
        ...

    async def revise(self, message: MessageId, prompt: Prompt, *, thread: ThreadId | None) -> None:
        """Make a message that `ask` made show this; with an outcome nothing can be used any more.

        `ChatRefused` named ``NotFound``: the message is gone.
        """
        ...

    async def link(self, ref: FileRef, *, fresh: bool) -> Link:
        """Where the bytes of a file can be had. ``fresh``: an earlier link was dead, ask the platform anew."""
        ...


Chats = Callable[[SessionId], Chat | None]
"""The chat that a session id names; None when its platform is off."""

Veil = Callable[[str], str]
"""Puts words in the place of a platform's own addresses and tokens, which never reach the log. JSON stays JSON."""
