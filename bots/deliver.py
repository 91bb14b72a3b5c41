"""``ishiki deliver``: what the agent runtime would not take."""

import asyncio

import typer

from bots.commands import RetryDeliveries
from bots.control import send
from bots.diagnostics import configure
from bots.printing import fail, output, print_json, print_line
from bots.settings import load
from core.content import for_terminal
from core.errors import InvalidId
from core.ids import session_id


def retry(session: str | None, *, as_json: bool) -> None:
    """Have it handed over again. Ends with code 1 where something is set aside still."""
    with output(1):
        settings = load()
        configure("warning", settings.ishiki_log_format)
        try:
            wanted = None if session is None else session_id(session)
        except InvalidId as error:
            fail(str(error), 2)
        reply, _ = asyncio.run(send(settings.ishiki_data_dir, RetryDeliveries(session_id=wanted)))
        if not reply.ok:
            fail(for_terminal(reply.message), 1)
        came = reply.came
        if came is None:
            print_line("it is under way; `ishiki sessions` shows what is left")
            return
        if as_json:
            print_json(came._asdict())
        else:
            print_line(f"{came.taken} taken, {came.refused} refused again, {came.left} left")
        if came.problem:
            fail(f"it ended early: {for_terminal(came.problem)}", 1)
    if came.refused:
        raise typer.Exit(1)
