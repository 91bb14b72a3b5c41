"""The ``ishiki`` command (contract section 5).

Exit codes: 0 done, 1 something found or failed, 2 wrong usage or configuration. An error is one sentence on standard
error, with the cure. Heavy imports stand inside the commands that need them, so that ``ishiki log`` answers at once.
"""

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

import bots.logs
from bots.printing import say
from core.errors import AddressTaken, DiskFull, FolderHeld, FolderUnusable, IshikiError, SettingsRefused, TokenRefused

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
deliver = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Deliveries that the runtime would not take.")
app.add_typer(deliver, name="deliver")


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

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
    import gc

    gc.disable()  # a start makes next to no garbage, and looking for it takes a sixth of the time
    from bots.run import run_until_signal
    from bots.settings import load

    asyncio.run(run_until_signal(load()))


@app.command()
def pending(
    session: Annotated[
        str | None, typer.Argument(metavar="SESSION", help="A session id; none: all sessions.", show_default=False)
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
    rules: Annotated[bool, typer.Option("--rules", help="Show instead what `always` allows from now on.")] = False,
    revoke: Annotated[
        int | None, typer.Option("--revoke", min=1, metavar="N", help="End the rule of that number in --rules.")
    ] = None,
) -> None:
    """Show what is asked and still open. Changes nothing, but with --revoke."""
    from bots.pending import show

    show(session, as_json=as_json, rules=rules, revoke=revoke)


@app.command(context_settings={"ignore_unknown_options": True})  # an answer in one's own words may begin with a dash
def answer(
    task: Annotated[str, typer.Argument(metavar="TASK_HASH", help="As `ishiki pending` shows it; 8 characters do.")],
    choices: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CHOICE",
            help="yes, always, turn, no or stop; to questions one answer each: an option or its number, several with "
            "commas, or your own words. None: show what can be answered.",
            show_default=False,
        ),
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print what is decided then, as one JSON object.")] = False,
) -> None:
    """Answer a confirmation or a question, with the operator's right."""
    from bots.pending import answer

    answer(task, choices or (), as_json=as_json)


@app.command()
def doctor(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """Look for what is wrong, and say how to mend it. Changes nothing, and sends nothing to anybody.

    A line for each check: ok, warn or fail. Exit code 1 where one fails, 2 where the settings do not do. Also while
    `ishiki run` is at work.
    """
    from bots.doctor.command import run

    run(as_json=as_json)


@app.command()
def pair(
    code: Annotated[
        str | None,
        typer.Argument(metavar="CODE", help="The code that the chat was told. None: list them.", show_default=False),
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
    revoke: Annotated[
        str | None, typer.Option("--revoke", metavar="SESSION", help="Let a paired chat in no longer.")
    ] = None,
) -> None:
    """Show which chats ask to be let in and which were, or let one in by its code.

    A chat that no allow rule names is told a code when somebody writes to the bot directly or mentions it.
    """
    from bots.pair import pair

    pair(code, as_json=as_json, revoke=revoke)


@app.command()
def sessions(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """Show all sessions: what they are called, how many log entries they have, and where somebody is needed.

    open: confirmations that nobody has answered. active: a turn is running; interrupted: the newest one was cut off.
    parked: entries that the runtime would not take, see `ishiki deliver`. silent, failed: turns in which the agent said
    nothing, or that broke.
    """
    from bots.sessions import show

    show(as_json=as_json)


@deliver.callback()
def deliveries() -> None:
    """What stands before the command."""


@deliver.command()
def retry(
    session: Annotated[
        str | None, typer.Argument(metavar="SESSION", help="A session id; none: all sessions.", show_default=False)
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Hand over again what the runtime refused and was set aside; `ishiki sessions` shows how much that is.

    Only while `ishiki run` is at work. Exit code 1 where something is set aside still.
    """
    from bots.deliver import retry

    retry(session, as_json=as_json)


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


@app.command()
def backup(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A new file, e.g. ishiki.tar.gz; -: standard output.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Copy the data folder into one file, also while `ishiki run` writes to it.

    A tar file, compressed where its name ends with .gz or .tgz. It holds what was acknowledged when it was taken, and
    all that people said: keep it as safe as the folder itself.
    """
    from bots.backups import back_up

    back_up(file, as_json=as_json)


@app.command()
def restore(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What `ishiki backup` wrote; -: standard input.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Make ISHIKI_DATA_DIR what a backup holds: a new or empty folder. Whole, or not at all.

    What happened since the backup is asked for after the next start, as after any time away, as far as the platforms
    still know it.
    """
    from bots.backups import put_back

    put_back(file, as_json=as_json)


@app.command()
def tui(
    session: Annotated[
        str | None,
        typer.Argument(metavar="SESSION", help="Begin in this session; none: the newest.", show_default=False),
    ] = None,
) -> None:
    """Read all chats on the screen, talk in sessions of the terminal, and answer what is asked.

    Needs no `ishiki run`, but nobody answers without one. `?` shows the keys.
    """
    from bots.tui import show

    show(session)


@app.command()
def bench(
    rows: Annotated[
        list[str] | None,
        typer.Argument(metavar="ROW", help="Only these rows, e.g. discord; none: all.", show_default=False),
    ] = None,
    *,
    folder: Annotated[
        Path, typer.Option("--folder", metavar="DIR", help="Where to write: a folder on the disk that is measured.")
    ] = Path(),
    quick: Annotated[bool, typer.Option("--quick", help="Three minutes instead of fifteen; rougher.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """Measure what this costs on your machine, beside the bare client libraries and beside bare disk writes.

    Prints ratios with their goals. Writes only to a new folder in --folder, and removes it. Reads no setting, and talks
    to nobody but itself. Exit code 1 where a goal is missed, or was not measured as jq or orjson is not installed.
    """
    from bots.bench.command import run

    run(rows or (), folder=folder, quick=quick, as_json=as_json)


def main() -> None:
    """Entry point of the console script."""
    try:
        app()
    except DiskFull as error:
        _end(error, 1)
    except WRONG_SETUP as error:
        _end(error, 2)
    except IshikiError as error:
        _end(error, 1)
    except KeyboardInterrupt:
        sys.exit(130)


def _end(error: IshikiError, code: int) -> None:
    say(str(error))
    sys.exit(code)
