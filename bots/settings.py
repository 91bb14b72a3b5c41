"""The only reader of the environment (contract section 4). `.env.example` names every key with a comment."""

import difflib
import io
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, NamedTuple
from urllib.parse import urlsplit

from dotenv import dotenv_values
from dotenv.parser import parse_stream
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError
from pydantic_core import ErrorDetails

from core.access import AllowRules
from core.addresses import is_loopback
from core.errors import SettingsRefused
from core.wake import WakeRules

SECRET_KEYS = frozenset(
    {
        "DISCORD_TOKEN",
        "TELEGRAM_TOKEN",
        "TELEGRAM_WEBHOOK_URL",
        "TELEGRAM_WEBHOOK_SECRET",
        "ISHIKI_RUNTIME_TOKEN",
        "ISHIKI_HTTP_TOKEN",
    }
)


_HOST = re.compile(r"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?")
_ORIGIN = re.compile(r"https?://(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?/?")


class Admin(NamedTuple):
    """Somebody who may answer any confirmation: platform and numeric user id."""

    platform: str
    user: str


def _names(text: object) -> object:
    return tuple(word.strip() for word in text.split(",") if word.strip()) if isinstance(text, str) else text


def _hosts(text: object) -> object:
    hosts = _names(text)
    if isinstance(text, str) and not all(_HOST.fullmatch(host) for host in text.replace(",", " ").split()):
        raise ValueError("not a list of host or host:port")
    return hosts


def _admins(text: object) -> object:
    if not isinstance(text, str):
        return text
    admins: list[Admin] = []
    for word in (piece.strip() for piece in text.split(",")):
        if not word:
            continue
        platform, _, user = word.partition(":")
        if platform not in {"discord", "telegram"} or not (user.isascii() and user.isdecimal()):
            raise ValueError("not a list of discord:<user id> and telegram:<user id>")
        admins.append(Admin(platform, user))
    return tuple(admins)


def _url(*schemes: str) -> AfterValidator:
    def check(text: str) -> str:
        parts = urlsplit(text)
        if parts.scheme not in schemes or not parts.hostname:
            raise ValueError(f"not a URL that begins with {' or '.join(f'{scheme}://' for scheme in schemes)}")
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise ValueError("a URL without user, password, query and fragment")
        return text

    return AfterValidator(check)


def _origins(text: object) -> object:
    if not isinstance(text, str):
        return text
    origins = tuple(word.strip() for word in text.split(",") if word.strip())
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            raise ValueError(f"{origin[:100]!r} is no origin")
    return origins


def _rules(text: object) -> object:
    return AllowRules.parse(text) if isinstance(text, str) else text


HttpUrl = Annotated[str, _url("http", "https")]
Hosts = Annotated[tuple[str, ...], BeforeValidator(_hosts)]
Origins = Annotated[tuple[str, ...], BeforeValidator(_origins)]
Rules = Annotated[AllowRules, BeforeValidator(_rules)]


class Settings(BaseModel):
    """What an operator decides. The description of each field says what is wanted.

    `load` reads environment and ``.env`` itself, to name a key as it was written.
    """

    model_config = ConfigDict(extra="ignore", arbitrary_types_allowed=True, frozen=True)

    discord_token: SecretStr | None = Field(default=None, description="the bot token of the Discord developer portal")
    discord_api_url: HttpUrl = Field(default="https://discord.com/api/v10", description="an http or https URL")
    discord_gateway_url: Annotated[str, _url("ws", "wss")] = Field(
        default="wss://gateway.discord.gg/", description="a ws or wss URL"
    )
    discord_cdn_hosts: Hosts = Field(
        default=("cdn.discordapp.com", "media.discordapp.net"),
        min_length=1,
        description="hosts, or host:port, with commas",
    )
    discord_allow: Rules = Field(
        default=AllowRules(), description="allow rules with commas, e.g. guild:1234,dm,!user:99"
    )
    discord_catchup_messages: int = Field(default=200, ge=0, le=10_000, description="a whole number from 0 to 10000")

    telegram_token: SecretStr | None = Field(default=None, description="the bot token that BotFather gave")
    telegram_api_url: HttpUrl = Field(default="https://api.telegram.org", description="an http or https URL")
    telegram_allow: Rules = Field(
        default=AllowRules(), description="allow rules with commas, e.g. -1001234,dm,!user:99"
    )
    telegram_webhook_url: SecretStr | None = Field(
        default=None, description="nothing: webhook mode is not in this version"
    )
    telegram_webhook_secret: SecretStr | None = Field(default=None, description="the secret of the webhook's header")

    ishiki_data_dir: Path = Field(default=Path("data"), description="a folder")
    ishiki_admins: Annotated[tuple[Admin, ...], BeforeValidator(_admins)] = Field(
        default=(), description="discord:<user id>,telegram:<user id>"
    )
    ishiki_wake: str = Field(
        default="direct,mention,reply", description="any of direct, mention, reply, keyword, always; or never alone"
    )
    ishiki_keywords: str = Field(default="", description="words with commas")
    ishiki_runtime_url: HttpUrl | None = Field(default=None, description="an http or https URL")
    ishiki_runtime_token: SecretStr | None = Field(default=None, description="the token that the runtime expects")
    ishiki_model: str | None = Field(default=None, description="nothing: the built-in agent is not in this version")
    ishiki_http_host: str = Field(default="127.0.0.1", description="an address to listen on")
    ishiki_http_port: int = Field(default=17989, ge=0, le=65535, description="a port from 0 to 65535")
    ishiki_http_token: SecretStr | None = Field(default=None, description="the token that callers of our API must show")
    ishiki_http_origins: Origins = Field(default=(), description="origins with commas, e.g. https://bots.example.org")
    ishiki_http_rate: int = Field(default=300, ge=0, le=1_000_000, description="requests a second, or 0 for no limit")
    ishiki_confirm_timeout: int = Field(default=300, ge=1, le=31_536_000, description="whole seconds from 1")
    ishiki_asset_max_bytes: int = Field(default=26_214_400, ge=0, description="whole bytes from 0")
    ishiki_log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="debug, info, warning or error"
    )
    ishiki_log_format: Literal["console", "json"] = Field(default="console", description="console or json")

    @property
    def wake_rules(self) -> WakeRules:
        return WakeRules.parse(self.ishiki_wake, self.ishiki_keywords)


def load(environment: Mapping[str, str] | None = None, dotenv: Path | None = Path(".env")) -> Settings:
    """Read ``.env`` and the environment, which wins. Raises `SettingsRefused`."""
    written = _read(dotenv) if dotenv is not None and dotenv.is_file() else {}
    given = dict(written)
    given |= os.environ if environment is None else environment
    known = {name.upper(): name for name in Settings.model_fields}
    for key in sorted(given.keys() - known):
        ours = key.startswith("ISHIKI_")
        # A file of ours says nothing by chance; in the environment other programs have names like ours.
        if not ours and key not in written:
            continue
        near = difflib.get_close_matches(key.upper(), known, n=1, cutoff=0.85)
        if ours or near:
            hint = f"; did you mean {near[0]}?" if near else "; .env.example lists all keys"
            raise SettingsRefused(f"{key} is no setting of ishiki{hint}")
    values = {name: given[key].strip() for key, name in known.items() if given.get(key, "").strip()}
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        raise SettingsRefused(_explain(error.errors()[0], values)) from None
    _cross_check(settings)
    return settings


def _read(dotenv: Path) -> dict[str, str]:
    """The file beside the environment. A line that is no setting is named, as it may be a token that nobody reads."""
    try:
        text = dotenv.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsRefused(f"{dotenv} cannot be read ({error.strerror}); check its owner and rights") from error
    except UnicodeDecodeError as error:
        raise SettingsRefused(f"{dotenv} cannot be read as UTF-8; save it as such") from error
    for line in parse_stream(io.StringIO(text)):
        if line.error or (line.key is not None and line.value is None):
            text_before = line.original.string[: -len(line.original.string.lstrip()) or None]
            number = line.original.line + text_before.count("\n")
            raise SettingsRefused(f"{dotenv}, line {number}: that is no setting; write KEY=value")
    return {key: value for key, value in dotenv_values(stream=io.StringIO(text)).items() if value is not None}


def _explain(error: ErrorDetails, values: Mapping[str, str]) -> str:
    name = str(error["loc"][0])
    key = name.upper()
    given = values.get(name, "")
    # What stands before an @ may be a password.
    shown = "the value given" if key in SECRET_KEYS or "@" in given else repr(given[:100])
    wanted = Settings.model_fields[name].description
    reason = error["msg"].removeprefix("Value error, ")
    return f"{key}: {shown} does not do ({reason[:1].lower()}{reason[1:]}); wanted is {wanted}"


def _cross_check(settings: Settings) -> None:
    try:
        _ = settings.wake_rules
    except ValueError as error:
        raise SettingsRefused(f"ISHIKI_WAKE: {settings.ishiki_wake[:100]!r} does not do ({error})") from error
    runtime, http = settings.ishiki_runtime_token, settings.ishiki_http_token
    if settings.ishiki_runtime_url and runtime and http and runtime.get_secret_value() == http.get_secret_value():
        raise SettingsRefused(
            "ISHIKI_RUNTIME_TOKEN and ISHIKI_HTTP_TOKEN are equal, so the runtime could answer its own questions; "
            "set two different ones"
        )
    if http is None and not is_loopback(settings.ishiki_http_host):
        raise SettingsRefused(
            f"ISHIKI_HTTP_HOST: {settings.ishiki_http_host[:100]!r} can be reached from elsewhere and no "
            "ISHIKI_HTTP_TOKEN is set; set one, or listen on 127.0.0.1"
        )
    if settings.telegram_webhook_url is not None:
        cure = "leave TELEGRAM_WEBHOOK_URL empty to poll"
        if settings.telegram_webhook_secret is None:
            raise SettingsRefused(f"TELEGRAM_WEBHOOK_URL is set without TELEGRAM_WEBHOOK_SECRET; {cure}")
        raise SettingsRefused(f"TELEGRAM_WEBHOOK_URL: webhook mode is not in this version; {cure}")
    if settings.ishiki_model is not None:
        raise SettingsRefused(
            "ISHIKI_MODEL: the built-in agent is not in this version; "
            "leave it empty, and set ISHIKI_RUNTIME_URL to wake a runtime of yours"
        )
