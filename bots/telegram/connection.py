"""The library's client, made to give updates and file paths as Telegram sent them.

`telegram.Bot` parses a whole batch or nothing of it, and turns a file's path into a link or, for a path that exists
here, into a local file.
"""

import json
import logging
import warnings
from collections.abc import Sequence
from typing import Any, Final

import httpx
import telegram
from telegram.error import BadRequest, NetworkError, RetryAfter, TelegramError
from telegram.request import HTTPXRequest
from telegram.warnings import PTBDeprecationWarning

from bots.telegram.updates import completed
from core.trust import trusted

_QUIET: Final = ("httpx", "httpcore", "httpx2", "httpcore2", "telegram")


def quieten() -> None:
    """Keep URLs, which hold the token, and whole answers out of the libraries' own log records."""
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("telegram.request.BaseRequest").setLevel(logging.CRITICAL)  # it logs an answer that is no JSON
    # The library warns of its own reading of `retry_after` whenever it makes a RetryAfter.
    warnings.filterwarnings("ignore", message=".*`?retry_after`?", category=PTBDeprecationWarning)


class Connection(telegram.Bot):
    """One client. `initialize` asks who we are; `shutdown` closes its sockets."""

    def __init__(self, token: str, api_url: str) -> None:
        trust = {"verify": trusted()}
        super().__init__(
            token,
            base_url=f"{api_url}/bot",
            base_file_url=f"{api_url}/file/bot",
            request=HTTPXRequest(read_timeout=20.0, media_write_timeout=60.0, httpx_kwargs=trust),
            get_updates_request=HTTPXRequest(connection_pool_size=1, read_timeout=None, httpx_kwargs=trust),
        )
        self._api_url = api_url

    async def _post(self, endpoint: str, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the library's own
        """Every call of the library goes through here: what it demands of an answer is filled in before it parses."""
        answer: object = await super()._post(endpoint, *args, **kwargs)
        return completed(answer) if isinstance(answer, dict) else answer  # pyright: ignore[reportUnknownArgumentType] - JSON from outside

    async def updates(self, offset: int | None, wait: int, kinds: Sequence[str]) -> list[object]:
        """One `getUpdates`, of at most ``wait`` seconds; the updates as they came. ``offset`` confirms those below.

        Waits for the answer for ever. Raises `TelegramError`.
        """
        asked: dict[str, Any] = {"offset": offset, "timeout": wait, "allowed_updates": list(kinds)}
        answer: object = await self._post("getUpdates", asked)
        if not isinstance(answer, list):
            raise TelegramError("getUpdates gave no list")
        return list(answer)  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType] - JSON from outside

    async def file_path(self, file_id: str) -> str | None:
        """The path that `getFile` gives, unchanged. Raises `TelegramError`."""
        answer: object = await self._post("getFile", {"file_id": file_id})
        path: object = answer.get("file_path") if isinstance(answer, dict) else None  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType] - JSON from outside
        return path if isinstance(path, str) else None

    async def is_bot_api(self) -> bool:
        """Whether what answers at the base URL speaks as the Bot API does: a refusal is JSON with an error code there.

        Raises `TelegramError` where nothing answers.
        """
        _, payload = await self.request.do_request(f"{self._api_url}/bot/getMe", "GET")
        try:
            answer: object = json.loads(payload)
        except ValueError:
            return False
        return isinstance(answer, dict) and answer.get("ok") is False and "error_code" in answer  # pyright: ignore[reportUnknownMemberType] - JSON from outside


def seconds_of(error: RetryAfter) -> float:
    """What Telegram wants us to wait."""
    wait = error.retry_after
    return float(wait) if isinstance(wait, int) else wait.total_seconds()


def was_not_sent(error: NetworkError) -> bool:
    """Whether a call failed before anything of it could reach Telegram."""
    return isinstance(error.__cause__, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)


def is_network(error: TelegramError) -> bool:
    """Whether Telegram did not answer, or only with a failure of its own; `BadRequest` is a `NetworkError` too."""
    return isinstance(error, NetworkError) and not isinstance(error, BadRequest)
