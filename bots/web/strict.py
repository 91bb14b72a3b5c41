"""Bodies are JSON and nothing else: Python's parser alone takes more (RFC 8259, and RFC 7493 for names that repeat)."""

import json
from collections.abc import Sequence
from typing import NoReturn

from bots.web.errors import ApiError


def check(body: bytes) -> None:
    """Raises `ApiError` 400 for what is no UTF-8, NaN, a member that stands twice, and a nest that is too deep."""
    try:
        json.loads(body.decode(), object_pairs_hook=_members, parse_constant=_no_number)
    except UnicodeDecodeError:
        raise _refused("it is no UTF-8") from None
    except RecursionError:
        raise _refused("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise _refused(f"{error.msg} at character {error.pos}") from None
    except ValueError:
        raise _refused("a number in it has too many digits") from None


def _members(pairs: Sequence[tuple[str, object]]) -> None:
    if len({name for name, _ in pairs}) != len(pairs):
        raise _refused("a member stands in it twice")


def _no_number(_text: str) -> NoReturn:
    raise _refused("NaN and Infinity are no JSON")


def _refused(reason: str) -> ApiError:
    return ApiError(400, "invalid_request", f"the body is no JSON that we take: {reason}")
