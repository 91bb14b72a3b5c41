"""``ishiki pair``: which chats ask to be let in, which were, and the operator's word."""

import asyncio
from pathlib import Path
from typing import Final

from bots import pending_sources
from bots.commands import Command, Pair, Reply, Unpair
from bots.control import send
from bots.diagnostics import configure
from bots.printing import fail, output, print_json, print_line, print_table
from bots.settings import load
from bots.timeline import clock
from core.clock import now_ms
from core.content import for_terminal
from core.errors import InvalidId
from core.ids import session_id

_HEADS: Final = ("code", "session", "chat", "who asked", "since", "valid until")
_OPEN: Final = "SELECT code, session_id, title, user_id, user_name, created_at, expires_at FROM pairing"
_PAIRED: Final = (
    "SELECT paired.session_id, coalesce(nullif(session.name, ''), session.title, ''), paired_at "
    "FROM paired LEFT JOIN session USING (session_id) ORDER BY paired_at"
)


def pair(code: str | None, *, as_json: bool, revoke: str | None) -> None:
    """List, admit, or take back."""
    with output():
        if code is not None and revoke is not None:
            fail("give either a code, or --revoke with a session id", 2)
        if code is not None:
            reply, by_owner = _sent(Pair(code=code))
            _tell(reply, "is let in" if by_owner else "is let in; `ishiki run` hears it from its next start", as_json)
        elif revoke is not None:
            try:
                wanted = session_id(revoke)
            except InvalidId as error:
                fail(str(error), 2)
            reply, _ = _sent(Unpair(session_id=wanted))
            _tell(reply.model_copy(update={"session_id": wanted}), "is let in no longer, unless a rule does", as_json)
        else:
            _list(pending_sources.data_folder(), as_json=as_json)


def _sent(command: Command) -> tuple[Reply, bool]:
    settings = load()
    configure("warning", settings.ishiki_log_format)
    reply, by_owner = asyncio.run(send(settings.ishiki_data_dir, command))
    if not reply.ok:
        fail(for_terminal(reply.message), 2 if reply.code == "invalid_request" else 1)
    return reply, by_owner


def _tell(reply: Reply, what: str, as_json: bool) -> None:
    if as_json:
        print_json({"session": reply.session_id, "paired": "no longer" not in what})
    else:
        print_line(f"{reply.session_id} {what}")


def _list(folder: Path, *, as_json: bool) -> None:
    """The open codes, then the chats that are let in."""
    now = now_ms()
    rows: list[list[str]] = []
    for code, session, title, user, name, since, until in pending_sources.rows(folder, f"{_OPEN} ORDER BY 6", ()):
        if int(str(until)) <= now:
            continue
        if as_json:
            print_json({
                "code": code, "session": session, "chat": title, "user": {"id": user, "name": name},
                "createdAt": since, "expiresAt": until,
            })  # fmt: skip
        who = f"{name} ({user})" if name else str(user)
        rows.append([str(code), str(session), str(title), who, clock(int(str(since))), clock(int(str(until)))])
    for session, title, since in pending_sources.rows(folder, _PAIRED, ()):
        if as_json:
            print_json({"session": session, "chat": title, "pairedAt": since})
        rows.append(["paired", str(session), str(title), "", clock(int(str(since))), ""])
    if not as_json:
        print_table(_HEADS, rows, "no chat asks to be let in, and none was")
