"""Which hosts are this machine itself."""

import pytest

from core.addresses import is_loopback


@pytest.mark.parametrize("host", ["localhost", "LocalHost", "127.0.0.1", "127.8.9.10", "::1", "[::1]"])
def test_this_machine_is_known_by_name_and_by_address(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    ["", "0.0.0.0", "::", "10.0.0.1", "127.0.0.1.example.org", "localhost.example.org", "[::1", "[localhost]", "127.1"],
)
def test_every_other_host_is_elsewhere(host: str) -> None:
    assert not is_loopback(host)
