"""``ishiki log``: read-only looks at the logs, of sessions or of single files (contract sections 5 and 9)."""

import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer

from bots import log_sources
from bots.log_sources import Source
from bots.printing import fail, output, print_json, print_line, print_raw, say
from bots.timeline import clock, moment
from core.codec import decode
from core.content import for_terminal
from core.errors import InvalidEntry
from core.log import scan
from core.log.lines import backward, cuts
from core.log.view import View

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look into the logs. Only `repair` changes them.")

POLL_SECONDS: Final = 0.25

Targets = Annotated[
    list[str] | None,
    typer.Argument(metavar="SESSION|FILE", help="Session ids or log files; none: all sessions.", show_default=False),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object per line.")]


@app.command()
def stats(targets: Targets = None, *, as_json: AsJson = False) -> None:
    """Count entries by type and messages by kind, and name bad lines."""
    with output():
        for source, log in log_sources.open_each(log_sources.find(targets), progress=True):
            found = scan.stats(log.read_at, log.size)
            if as_json:
                print_json({
                    source.kind: source.name, "bytes": found.size, "lines": found.lines, "types": dict(found.types),
                    "messages": dict(found.messages), "turns": dict(found.turns), "first": found.first,
                    "last": found.last, "badLines": found.bad, "badCount": found.bad_lines, "tornTail": found.torn_tail,
                })  # fmt: skip
            else:
                _print_stats(source, found)


@app.command()
def timeline(
    targets: Targets = None,
    *,
    turn: Annotated[str | None, typer.Option("--turn", metavar="ID", help="Only the lines of this turn.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what happened, in the order in which it was written down: when, who, what."""
    with output():
        sources = log_sources.find(targets)
        shown = 0
        for source, log in log_sources.open_each(sources):
            _print_heading(source, sources, as_json=as_json)
            lines = scan.numbered(log.read_at, log.size) if turn is None else scan.of_turn(log.read_at, log.size, turn)
            for line in lines:
                shown += _print_line(source, line.raw, line.number, ended=line.ended, as_json=as_json)
    if turn is not None and not shown:
        fail(f"no log holds a turn {for_terminal(turn)!r}; `ishiki log timeline` shows the turns", 1)


@app.command()
def tail(
    targets: Targets = None,
    *,
    count: Annotated[int, typer.Option("-n", min=0, help="How many lines from the end.")] = 10,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on with new lines until interrupted.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the end of each log. With --json the lines themselves."""
    with output():
        sources = log_sources.find(targets)
        positions: dict[Path, int] = {}
        for source, log in log_sources.open_each(sources):
            _print_heading(source, sources, as_json=as_json)
            last = [*islice(backward(log.read_at, log.size), max(count, 1))][::-1]
            positions[source.path] = last[-1].end if last else 0
            for line in last[-count:] if count else []:
                _print_tail(source, line.raw, as_json=as_json)
        if follow:
            sys.stdout.flush()
            _follow(targets, positions, as_json=as_json)


@app.command()
def check(targets: Targets = None, *, as_json: AsJson = False) -> None:
    """Check each log against the rules of its format. Exit code 1 where something is found."""
    from core import audit  # noqa: PLC0415 - only it looks into sidecars too

    logs = findings = 0
    with output(1):
        for source, log in log_sources.open_each(log_sources.find(targets), progress=True):
            logs += 1
            for finding in audit.check(log, source.assets):
                findings += 1
                if as_json:
                    print_json({source.kind: source.name, **finding._asdict()})
                else:
                    where = f"{for_terminal(source.name)}: line {finding.line}: "
                    print_line(f"{where}{finding.rule}: {for_terminal(finding.message)}", "red")
        if not as_json:
            print_line(f"{logs} {'log' if logs == 1 else 'logs'} checked, {findings or 'nothing'} found", "bold")
    if findings:
        raise typer.Exit(1)


@app.command()
def repair(targets: Targets = None, *, as_json: AsJson = False) -> None:
    """Remove the lines that are no JSON, and keep a backup beside each log. Nothing else is changed.

    Not while `ishiki run` is at work on that data folder.
    """
    from bots.log_repair import repair  # noqa: PLC0415 - only it needs more than the standard library's readers

    with output():
        repair(targets, as_json=as_json)


@app.command()
def search(
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="What was said, word for word.")],
    *,
    session: Annotated[str | None, typer.Option("--session", metavar="ID", help="Only in this session.")] = None,
    within: Annotated[str | None, typer.Option("--range", metavar="1d|7d|1m|1y", help="Only so new.")] = None,
    count: Annotated[int, typer.Option("-n", help="How many, at most 32.")] = 8,
    as_json: AsJson = False,
) -> None:
    """Find what was said in any chat, newest first. Needs the archive that `ishiki run` keeps."""
    from bots.log_search import show  # noqa: PLC0415 - only it needs the database

    with output():
        show(words, session=session, within=within, most=count, as_json=as_json)


def _follow(targets: list[str] | None, positions: dict[Path, int], *, as_json: bool) -> NoReturn:
    """New lines as they come, also of sessions that begin meanwhile."""
    newest: Path | None = None
    while True:
        time.sleep(POLL_SECONDS)
        sources = log_sources.find(targets, journal=False)
        for source in sources:
            for raw in _grown(source.path, positions):
                if newest != source.path:
                    newest = source.path
                    _print_heading(source, sources, as_json=as_json)
                _print_tail(source, raw, as_json=as_json)
        sys.stdout.flush()


def _grown(path: Path, positions: dict[Path, int]) -> Iterator[bytes]:
    """The lines that a file has got since it was last looked at. A last one without its LF is still being written."""
    position = positions.get(path, 0)
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return
    if size == position:
        return
    if size < position:  # a repair, or another file in its place: what stands there is not new
        positions[path] = size
        return
    with View(path) as log:
        for _, raw, ended in cuts(log.read_at, position, log.size):
            if not ended:
                break
            position += len(raw) + 1
            if raw.strip():
                yield raw
    positions[path] = position


def _print_heading(source: Source, sources: list[Source], *, as_json: bool) -> None:
    if len(sources) > 1 and not as_json:
        print_line(f"== {for_terminal(source.name)}", "bold")


def _print_line(source: Source, raw: bytes, number: int, *, ended: bool, as_json: bool) -> bool:
    """Whether there was something to show."""
    if not raw.strip():
        return False
    kind = scan.kind_of(raw)
    if kind is None and not ended:
        return False
    try:
        said = moment(decode(raw))
    except InvalidEntry as error:
        say(f"{for_terminal(source.name)}: line {number} is skipped: {for_terminal(str(error))}")
        return False
    if not as_json:
        for line in said.lines():
            print_line(line, said.style)
        return True
    assert kind is not None
    print_json({
        source.kind: source.name, "line": number, "timestamp": said.at, "type": kind.name,
        "kind": kind.message if kind.data.type or kind.data.role else None, "turnId": kind.turn_id, "who": said.who,
        "what": said.what,
    })  # fmt: skip
    return True


def _print_tail(source: Source, raw: bytes, *, as_json: bool) -> None:
    try:
        said = moment(decode(raw))
    except InvalidEntry as error:
        say(f"{for_terminal(source.name)}: a line is skipped: {for_terminal(str(error))}")
        return
    if as_json:
        print_raw(raw.decode("utf-8", "replace").strip())
        return
    for line in said.lines():
        print_line(line, said.style)


def _print_stats(source: Source, found: scan.Stats) -> None:
    print_line(f"== {for_terminal(source.name)}", "bold")
    period = (
        f", {clock(found.first)} to {clock(found.last)}" if found.first is not None and found.last is not None else ""
    )
    print_line(f"   {found.lines} entries, {found.size} bytes{period}")
    for name, counts in (("types", found.types), ("messages", found.messages), ("turns", found.turns)):
        if counts:
            print_line(f"   {name}")
        for kind, number in sorted(counts.items()):
            print_line(f"   {number:9}  {for_terminal(kind)}")
    if found.bad_lines:
        named = ", ".join(map(str, found.bad[:20])) + (" …" if found.bad_lines > 20 else "")
        print_line(f"   {found.bad_lines} bad {'line' if found.bad_lines == 1 else 'lines'}: {named}", "red")
    if found.torn_tail:
        print_line("   torn tail: the last write was cut short; the next append closes it off", "yellow")
