"""What a command prints: on a terminal in colour, in a pipe plain; never markup, never what could move a cursor."""

import json
import os
import re
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final, NoReturn

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from core.content import for_terminal

_UNITS: Final = (("d", 86_400), ("h", 3_600), ("min", 60))
_WHOLE: Final = frozenset({"session", "hash", "code"})
"""Columns of what is copied from the table into the next command: not broken where there is room."""
_WIDE: Final = 100
"""Columns of a terminal."""

console = Console(markup=False, highlight=False, emoji=False, soft_wrap=True)
_HARMFUL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@contextmanager
def output(code_when_cut: int = 0) -> Generator[None]:
    """Around all that a command does: a reader that went away ends it in peace, a disk that fails with a sentence."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(code_when_cut) from None
    except OSError as error:
        fail(f"reading failed ({error.strerror}); check the disk", 1)


def print_line(text: str, style: str = "") -> None:
    """One line to standard output; what comes from a chat went through `for_terminal` before."""
    if console.is_terminal:
        console.print(Text(text, style))
    else:
        sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace") + b"\n")


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], nothing: str) -> None:
    """A table on a terminal; in a pipe the rows alone, with tabs. All of it may come from a chat."""
    plain = [[for_terminal(cell) for cell in row] for row in rows]
    if not console.is_terminal:
        for row in plain:
            print_line("\t".join(row))
    elif not plain:
        print_line(nothing)
    else:
        table = Table(box=None, header_style="bold", pad_edge=False)
        for head in heads:
            table.add_column(head, overflow="fold", no_wrap=head in _WHOLE and console.width >= _WIDE)
        for row in plain:
            table.add_row(*map(Text, row))
        console.print(table, soft_wrap=False)


def span(milliseconds: int) -> str:
    """A time span in its largest unit."""
    seconds = max(milliseconds, 0) // 1000
    return next((f"{seconds // size} {unit}" for unit, size in _UNITS if seconds >= size), f"{seconds} s")


def print_json(document: object) -> None:
    """One object as one line."""
    print_raw(json.dumps(document, ensure_ascii=False, separators=(",", ":")))


def print_raw(text: str) -> None:
    """JSON as it is, but for characters that could move a terminal: those stand in strings, and are escaped there."""
    print_line(_HARMFUL.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def say(text: str) -> None:
    """One sentence to standard error."""
    sys.stdout.flush()
    sys.stderr.write(f"ishiki: {text}\n")


def fail(text: str, code: int) -> NoReturn:
    """End with one sentence that holds the cure."""
    say(text)
    raise typer.Exit(code)
