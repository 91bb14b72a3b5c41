"""What the library writes to its log, as it leaves us."""

import logging

import pytest

from bots.discord.connection import quieten


def test_the_librarys_log_has_no_tracebacks_and_of_addresses_the_host_alone(caplog: pytest.LogCaptureFixture) -> None:
    quieten()
    quieten()
    error = ConnectionResetError("https://discord.com/api/webhooks/1/secret")
    logging.getLogger("discord.client").error("Attempting a reconnect in %.2fs", 1.5, exc_info=error)
    address = "https://discord.com/api/v10/interactions/1/secret/callback"
    logging.getLogger("discord.http").warning("We are being rate limited. %s %s", "POST", address)
    logging.getLogger("discord.gateway").warning("Shard ID %s blocked\nLoop thread traceback: secret", None)
    assert [record.getMessage() for record in caplog.records] == [
        "Attempting a reconnect in 1.50s (ConnectionResetError)",
        "We are being rate limited. POST https://discord.com/…",
        "Shard ID None blocked",
    ]
    assert "secret" not in caplog.text
