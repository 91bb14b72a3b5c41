"""Hosts of the network, as they are written in addresses."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether ``host`` is this machine itself: ``localhost``, or an IP address, in brackets or not; without a port."""
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return host.lower() == "localhost"
