"""Reads the session of a path, before anything else is made of it."""

from collections.abc import Callable

from core.ids import session_id
from core.sessions.directory import Sessions
from core.sessions.session import Session

Known = Callable[[str], Session]
"""The session that a path names. Raises `InvalidId` and `UnknownSession`, both 404."""


def known_in(sessions: Sessions) -> Known:
    return lambda sid: sessions.existing(session_id(sid))
