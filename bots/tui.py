"""``ishiki tui``: the sessions on the screen."""

import logging
import sys

import structlog

from bots import pending_sources
from bots.printing import fail
from bots.terminal.app import Terminal


def show(session: str | None) -> None:
    """Until somebody quits. Ends with code 2 where there is no terminal, no data folder or no such session."""
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        fail("the menu needs a terminal; `ishiki log tail -f` prints to a pipe what is said", 2)
    folder = pending_sources.data_folder()
    wanted = pending_sources.sessions(folder, session)[0] if session is not None else None
    # The screen is taken: whatever failed is said on it.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    Terminal(folder, wanted).run()
