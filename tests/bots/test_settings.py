"""Settings: defaults, the file beside the environment, and what is said when one does not do."""

from pathlib import Path

import pytest
from dotenv import dotenv_values

from bots.settings import Settings, SettingsRefused, load

ROOT = Path(__file__).parents[2]


def test_the_example_file_names_every_key_once_and_changes_nothing() -> None:
    example = ROOT / ".env.example"
    assert set(dotenv_values(example)) == {name.upper() for name in Settings.model_fields}
    assert load({}, example) == load({}, None)


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("ISHIKI_HTTP_PORT=1\nISHIKI_WAKE=always\n")
    settings = load({"ISHIKI_HTTP_PORT": "2", "PATH": "/bin"}, tmp_path / ".env")
    assert (settings.ishiki_http_port, settings.ishiki_wake) == (2, "always")


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"ISHIKI_DATADIR": "x"}, "ISHIKI_DATADIR is no setting of ishiki; did you mean ISHIKI_DATA_DIR?"),
        ({"ISHIKI_HTTP_PORT": "soon"}, "ISHIKI_HTTP_PORT: 'soon' does not do"),
        ({"ISHIKI_HTTP_PORT": "70000"}, "wanted is a port from 0 to 65535"),
        ({"DISCORD_ALLOW": "everyone"}, "'everyone' is no allow rule"),
        ({"TELEGRAM_API_URL": "api.telegram.org"}, "wanted is an http or https URL"),
        ({"DISCORD_GATEWAY_URL": "https://gateway.example"}, "wanted is a ws or wss URL"),
        ({"ISHIKI_WAKE": "never,direct"}, "ISHIKI_WAKE: 'never,direct'"),
        ({"ISHIKI_ADMINS": "Mona"}, "wanted is discord:<user id>,telegram:<user id>"),
        ({"ISHIKI_HTTP_HOST": "0.0.0.0"}, "set one, or listen on 127.0.0.1"),
        ({"ISHIKI_LOG_LEVEL": "loud"}, "ISHIKI_LOG_LEVEL: 'loud'"),
        ({"DISCORD_CDN_HOSTS": "http://x/"}, "not a list of host or host:port"),
        ({"ISHIKI_RUNTIME_URL": "http://127.0.0.1/?a=b"}, "without user, password, query and fragment"),
        ({"ISHIKI_HTTP_ORIGINS": "bots.example.org"}, "e.g. https://bots.example.org"),
        ({"ISHIKI_HTTP_ORIGINS": "https://bots.example.org:x"}, "is no origin"),
        ({"TELEGRAM_WEBHOOK_URL": "https://bots.example/hook"}, "without TELEGRAM_WEBHOOK_SECRET"),
        (
            {"ISHIKI_RUNTIME_URL": "http://127.0.0.1:1", "ISHIKI_RUNTIME_TOKEN": "same", "ISHIKI_HTTP_TOKEN": "same"},
            "are equal",
        ),
    ],
)
def test_what_does_not_do_is_named_with_what_is_wanted(environment: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsRefused) as refused:
        load(environment, None)
    assert said in str(refused.value)


def test_a_secret_is_never_shown() -> None:
    with pytest.raises(SettingsRefused) as refused:
        load({"TELEGRAM_WEBHOOK_URL": "https://bots.example/s3cret-path", "TELEGRAM_WEBHOOK_SECRET": "s3cret"}, None)
    assert "s3cret" not in str(refused.value)
    assert "s3cret" not in repr(load({"DISCORD_TOKEN": "s3cret", "ISHIKI_HTTP_TOKEN": "s3cret"}, None))


def test_a_password_in_a_url_is_not_shown() -> None:
    with pytest.raises(SettingsRefused) as refused:
        load({"ISHIKI_RUNTIME_URL": "http://user:s3cret@127.0.0.1/"}, None)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("line", ["TELEGRAM_TOKEN abc", "TELEGRAM_TOKEN", "=abc", "TELEGRAM_TOKEN='abc"])
def test_a_line_that_is_no_setting_is_named_by_number(tmp_path: Path, line: str) -> None:
    (tmp_path / ".env").write_text(f"# a comment\n\n{line}\n")
    with pytest.raises(SettingsRefused, match="line 3"):
        load({}, tmp_path / ".env")


@pytest.mark.parametrize("key", ["DISCORD_TOKN", "TELEGRAM_ALOW", "ishiki_http_port"])
def test_a_misspelt_key_of_the_file_is_named(tmp_path: Path, key: str) -> None:
    (tmp_path / ".env").write_text(f"{key}=1\nPOSTGRES_PASSWORD=somebody else's\n")
    with pytest.raises(SettingsRefused, match=f"{key} is no setting of ishiki; did you mean"):
        load({}, tmp_path / ".env")
    load({key: "1"}, None)


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"ISHIKI_WAKE=\xff\xfe")
    with pytest.raises(SettingsRefused, match="cannot be read"):
        load({}, tmp_path / ".env")
