"""Everything the core raises on purpose, as one tree.

::

    IshikiError
    ├── InvalidId              an id that is not of the shape of contract section 9
    ├── InvalidEntry           a line or value that is no entry of the format
    │   └── MalformedLine      a line that is no JSON at all
    ├── SettingsRefused        a setting that is missing, misspelt or of no use
    ├── FolderHeld             another process owns the data folder
    ├── FolderUnusable         the data folder cannot be made or written
    │   └── DiskFull           its disk takes nothing; starting again may help
    ├── AddressTaken           our HTTP API cannot listen where it was told to
    ├── LogUnavailable         the disk did not take an append; asking again may help
    │   └── LogHeld            one session's own file cannot be used; the others go on
    ├── StoreUnavailable       history.db did not take a call; asking again may help
    ├── UnknownEntry           a cursor names an entry that the log does not hold
    ├── UnknownSession         no session of that id
    ├── BackupRefused          no backup, a damaged one, or no place for it
    ├── TokenRefused           a platform does not know the token
    ├── ConfirmationError      an answer that does not count; nothing was changed
    │   ├── UnknownTask        there is no confirmation of that hash here
    │   ├── AlreadyDecided     somebody, or the clock, was first
    │   ├── NotAllowed         not this person, or not from there
    │   └── InvalidAnswer      no answer to what was asked
    ├── CodeRefused            no open pairing code is like that, or too many were tried
    ├── InvalidRequest         what cannot be asked
    ├── NameTaken              another session has that alias
    ├── ResourceError          an asset or artifact that cannot be given; see ``code``
    ├── ChatError              a platform did not take what we said
    │   ├── ChatOff            the platform of that session is not configured
    │   ├── ChatUnavailable    asking again may help
    │   └── ChatRefused        asking again will not help
    │       └── ChatMoved      the chat goes on as another one
    └── RuntimeCallError       the agent runtime did not take a call
        ├── RuntimeUnavailable asking again may help
        └── RuntimeRefused     this body will never be taken

The message of each is one sentence for an operator, with the cure where there is one.
It holds no token, no URL with a signature and no text from a chat.
"""


class IshikiError(Exception):
    """The root: what callers may expect from us."""


class InvalidId(IshikiError):
    """An id that is not of the shape it claims."""


class InvalidEntry(IshikiError):
    """A line, or a value meant to become one, that is no entry of the format."""


class MalformedLine(InvalidEntry):
    """A line that is no JSON: both parsers refuse it (contract section 9, "Log")."""


class SettingsRefused(IshikiError):
    """A setting is unknown or does not parse; the message names the key, what was given, and what is wanted."""


class FolderHeld(IshikiError):
    """Another process owns the data folder."""


class FolderUnusable(IshikiError):
    """The data folder cannot be made, read or written."""


class DiskFull(FolderUnusable):
    """The data folder's disk takes nothing: it is full or fails, which starting again may find mended."""


class AddressTaken(IshikiError):
    """Our HTTP API cannot listen where it was told to."""


class LogUnavailable(IshikiError):
    """The disk did not take an append: nothing of it is acknowledged, and it may be tried again."""


class LogHeld(LogUnavailable):
    """What stands in the place of one session's file is no log that we may write; it takes somebody to mend it."""


class StoreUnavailable(IshikiError):
    """history.db could not be read or written: nothing was changed, and it may be tried again."""


class UnknownEntry(IshikiError):
    """A cursor names an entry that the log does not hold."""


class UnknownSession(IshikiError):
    """There is no session of that id."""


class BackupRefused(IshikiError):
    """No backup, a damaged one, or no place for it; nothing was changed."""


class TokenRefused(IshikiError):
    """A platform does not know the token it was given; only the operator can mend that."""


class ResourceError(IshikiError):
    """An asset or artifact that cannot be given.

    ``code`` is one of the format's words (log-format 9.1): ``invalid_resource_uri``, ``resource_not_found``,
    ``resource_unavailable``, ``unsupported_view``, ``resource_read_failed``, ``resource_too_large``.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ChatError(IshikiError):
    """A platform did not take what we said. ``name`` is the ``error.name`` of its log line."""

    def __init__(self, message: str, *, name: str | None = None) -> None:
        super().__init__(message)
        self.name = name or type(self).__name__


class ChatOff(ChatError):
    """The platform that the session id names is not configured."""


class ChatUnavailable(ChatError):
    """Asking again may help. ``retry_after`` is in seconds where the platform named a time."""

    def __init__(self, message: str, *, name: str | None = None, retry_after: float | None = None) -> None:
        super().__init__(message, name=name)
        self.retry_after = retry_after


class ChatRefused(ChatError):
    """Asking again will not help."""


class ChatMoved(ChatRefused):
    """The chat goes on as another one: ``successor`` is its session id."""

    def __init__(self, message: str, *, successor: str) -> None:
        super().__init__(message)
        self.successor = successor


class ConfirmationError(IshikiError):
    """An answer that does not count; nothing was changed by it."""


class UnknownTask(ConfirmationError):
    """There is no confirmation of that hash here."""


class AlreadyDecided(ConfirmationError):
    """Somebody, or the clock, was first."""


class NotAllowed(ConfirmationError):
    """That person may not answer, or not from there."""


class InvalidAnswer(ConfirmationError):
    """No answer to what was asked."""


class CodeRefused(IshikiError):
    """A pairing code that lets nobody in."""


class InvalidRequest(IshikiError):
    """What cannot be asked, or not like that."""


class NameTaken(IshikiError):
    """Another session has that alias."""


class RuntimeCallError(IshikiError):
    """The agent runtime did not take a call."""


class RuntimeUnavailable(RuntimeCallError):
    """Asking again may help. ``retry_after`` is in seconds where the runtime named a time."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RuntimeRefused(RuntimeCallError):
    """This body will never be taken. ``too_large`` (413): a smaller one may be. ``gone`` (410): nobody wants it."""

    def __init__(self, message: str, *, too_large: bool = False, gone: bool = False) -> None:
        super().__init__(message)
        self.too_large = too_large
        self.gone = gone
