"""``ishiki log search``: who said that, and where. Needs no lock: it reads beside a running process."""

from typing import get_args

from rich.table import Table
from rich.text import Text

from bots.pending_sources import data_folder
from bots.printing import console, fail, print_json, print_line
from bots.timeline import clock
from core.archive.search import MOST, Hit, Range, reading, search
from core.content import for_terminal
from core.errors import InvalidId, InvalidRequest, StoreUnavailable
from core.ids import SessionId, session_id


def show(words: list[str], *, session: str | None, within: str | None, most: int, as_json: bool) -> None:
    """Print the newest messages that hold these words, newest first."""
    if within is not None and within not in get_args(Range):
        fail(f"{for_terminal(within)!r} is no range; give one of {', '.join(get_args(Range))}", 2)
    if not 1 <= most <= MOST:
        fail(f"-n takes 1 to {MOST}", 2)
    try:
        wanted = None if session is None else session_id(session)
        hits = _find(" ".join(words), wanted, within, most)
    except InvalidId as error:
        fail(str(error), 2)
    except InvalidRequest as error:
        fail(str(error), 2)
    except StoreUnavailable as error:
        fail(str(error), 1)
    if as_json:
        for hit in hits:
            print_json(hit._asdict())
    elif hits:
        _print_table(hits)
    else:
        print_line("nothing found; an edited or retracted text is not looked at", "dim")


def _find(words: str, session: SessionId | None, within: str | None, most: int) -> list[Hit]:
    chosen: Range | None = next((name for name in get_args(Range) if name == within), None)
    with reading(data_folder() / ".store" / "history.db") as database:
        return search(database, words, session=session, within=chosen, most=most)


def _print_table(hits: list[Hit]) -> None:
    if not console.is_terminal:
        for hit in hits:
            print_line("\t".join(_cells(hit)))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("when", "session", "who", "said"):
        table.add_column(name, overflow="fold", no_wrap=name in {"when", "session"})
    for hit in hits:
        table.add_row(*map(Text, _cells(hit)))
    console.print(table, soft_wrap=False)


def _cells(hit: Hit) -> tuple[str, str, str, str]:
    who = hit.sender or ("the bot" if hit.role == "assistant" else "-")
    return clock(hit.sent_at), hit.session_id, for_terminal(who), for_terminal(hit.content)
