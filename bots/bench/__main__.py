"""One row in a process of its own, so that no row runs in the heap of another.

``python -m bots.bench ROW FOLDER full|quick|tiny`` prints what came out as one line.
"""

import signal
import sys
from dataclasses import asdict
from pathlib import Path

from bots.bench.goal import SIZES, Bench
from bots.bench.peer import say
from bots.bench.rows import ROWS


def main(name: str, folder: str, sizes: str) -> None:
    signal.signal(signal.SIGTERM, _end)
    row = next(row for row in ROWS if row.name == name)
    say(asdict(row.measure(Bench(Path(folder), SIZES[sizes]))))


def _end(_number: int, _frame: object) -> None:
    """Unwind, so that nothing that the row started is left running."""
    sys.exit(143)


if __name__ == "__main__":
    main(*sys.argv[1:])
