"""One row in a process of its own, so that no row runs in the heap of another.

``python -m bots.bench ROW FOLDER full|quick`` prints what came out as one line.
"""

import sys
from dataclasses import asdict
from pathlib import Path

from bots.bench.goal import FULL, QUICK, Bench
from bots.bench.peer import say
from bots.bench.rows import ROWS


def main(name: str, folder: str, sizes: str) -> None:
    row = next(row for row in ROWS if row.name == name)
    say(asdict(row.measure(Bench(Path(folder), QUICK if sizes == "quick" else FULL))))


if __name__ == "__main__":
    main(*sys.argv[1:])
