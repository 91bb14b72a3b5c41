"""The ``ishiki`` command (contract section 5).

Exit codes: 0 done, 1 something found or failed, 2 wrong usage or configuration. An error is one sentence on standard
error, with the cure. Heavy imports stand inside the commands that need them, so that ``ishiki log`` answers at once.
"""

import asyncio
import sys
from importlib.metadata import version
from typing import Annotated, Final

import typer

import bots.logs
from bots.printing import say
from bots.settings import SettingsRefused
from core.errors import AddressTaken, FolderHeld, FolderUnusable, IshikiError, TokenRefused

WRONG_SETUP: Final = (SettingsRefused, FolderHeld, FolderUnusable, TokenRefused, AddressTaken)

app = typer.Typer(
    name="ishiki",
    help="Stands between chat platforms and an agent: whatever happens is written down first, in one log per chat.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(bots.logs.app, name="log")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ishiki-bots {version('ishiki-bots')}")
        raise typer.Exit


@app.callback()
def options(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """What stands before the command."""


@app.command()
def run() -> None:
    """Connect what is configured and serve until SIGINT or SIGTERM.

    Settings come from the environment and from .env in this folder; .env.example names them all.
    """
    from bots.app import run_until_signal
    from bots.settings import load

    asyncio.run(run_until_signal(load()))


@app.command()
def demo(
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Leave it running afterwards, to talk to.")] = False,
) -> None:
    """Show the whole thing without any account, on stand-ins for Discord and Telegram that listen on loopback.

    Writes to ISHIKI_DATA_DIR if the environment sets it, else to demo-data. Reads neither .env nor any token.
    """
    from bots.demo import play

    asyncio.run(play(keep=keep))


def main() -> None:
    """Entry point of the console script."""
    try:
        app()
    except WRONG_SETUP as error:
        _end(error, 2)
    except IshikiError as error:
        _end(error, 1)
    except KeyboardInterrupt:
        sys.exit(130)


def _end(error: IshikiError, code: int) -> None:
    say(str(error))
    sys.exit(code)
