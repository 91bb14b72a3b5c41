"""Whom our HTTP clients trust: the certificate authorities that httpx comes with, or those that SSL_CERT_FILE names."""

import ssl
from functools import cache

import httpx

from core.errors import SettingsRefused


@cache
def trusted() -> ssl.SSLContext:
    """One for all clients. Raises `SettingsRefused`.

    Blocks for 40 ms the first time, during which other threads go on.
    """
    try:
        return httpx.create_ssl_context()
    except OSError as error:
        cure = "correct it, or leave it out to trust the usual ones"
        raise SettingsRefused(f"the certificates that SSL_CERT_FILE names cannot be read ({error}); {cure}") from error
