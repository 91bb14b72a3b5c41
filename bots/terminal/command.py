"""``ishiki tui``, from the words on the command line to the last sentence."""

import sys

from bots import pending_sources
from bots.diagnostics import configure
from bots.printing import fail
from core.ids import SessionId


def run(session: str | None) -> None:
    """Show the menu, or a session. Ends with code 2 where there is no terminal, or no such session."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        fail("the menu needs a terminal; `ishiki sessions` and `ishiki log timeline` print the same into a pipe", 2)
    folder = pending_sources.data_folder()
    current = None if session is None else pending_sources.sessions(folder, session)[0]
    configure("critical", "console")  # what went wrong is told on the screen
    from bots.terminal.app import Terminal  # noqa: PLC0415 - a refusal needs no screen

    why = Terminal(folder, None if current is None else SessionId(current)).run()
    if why is not None:
        fail(why, 1)
