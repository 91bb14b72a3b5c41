"""Whether bytes are JSON at all: bad is only what both parsers refuse (contract section 9, "Log")."""

import json

import msgspec

_decoder = msgspec.json.Decoder()


def refused(line: bytes) -> str | None:
    """Why a line is no JSON; None where at least one parser takes it.

    All of it is looked at: reading an entry passes over the members that are somebody else's affair, and would not see
    a byte in them that is no UTF-8.
    """
    try:
        _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = str(error)
    else:
        return None
    try:
        json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return reason
    return None


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no JSON")
