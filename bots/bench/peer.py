"""A process beside the one that is measured, so that the other side takes nothing of its time."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import IO, Any, Self

READY_WITHIN = 120.0


class Peer:
    """``with Peer("bots.bench.discord_peer", "100") as peer:`` runs a module; its first line is in ``ready``.

    It ends when its standard input does.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        self._command = [sys.executable, "-m", module, *arguments]
        self.ready: Any = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 - our own module
        self.ready = self.answer()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pipe(self._process.stdin).close()
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._pipe(self._process.stdout).close()

    def tell(self, line: str) -> None:
        """Say one line to it."""
        pipe = self._pipe(self._process.stdin)
        pipe.write(line.encode() + b"\n")
        pipe.flush()

    def answer(self) -> Any:  # noqa: ANN401 - JSON of whatever shape the module gives
        """The next line that it says, as JSON. Blocks. Raises `RuntimeError` where it ended instead."""
        line = self._pipe(self._process.stdout).readline()
        if not line:
            raise RuntimeError(f"{self._command[2]} ended with code {self._process.wait()}")
        return json.loads(line)

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        assert pipe is not None
        return pipe


def say(value: object) -> None:
    """From within such a process: one line."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def bare_environment(**settings: str) -> Mapping[str, str]:
    """The environment without any setting of ours or of a platform's, but for these."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("ISHIKI_", "DISCORD_", "TELEGRAM_"))
    }
    return kept | settings


def resident_mib(process: int | None = None) -> float:
    """How much memory a process holds, in MiB; None: this one."""
    with open(f"/proc/{process or 'self'}/status", encoding="ascii") as status:  # noqa: PTH123 - no file
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:")) / 1024
