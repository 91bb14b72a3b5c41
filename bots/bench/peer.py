"""A process beside the one that is measured, so that the other side takes nothing of its time."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import IO, Any, Self

_NOT_HANDED_ON = ("ISHIKI_", "DISCORD_", "TELEGRAM_")


class Peer:
    """``with Peer("bots.bench.discord_peer", "100") as peer:`` runs a module; its first line is in ``ready``.

    It gets no setting of the operator's. It ends when its standard input does, and is told to when an error ends the
    ``with``; Ctrl-C comes to us alone, so that nobody else says anything about it.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        self._command = [sys.executable, "-m", module, *arguments]
        self.ready: Any = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=bare_environment(),
            start_new_session=True,
        )
        try:
            self.ready = self.answer()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pipe(self._process.stdin).close()
        if kind is not None:
            self._process.terminate()
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
    """The environment without any setting of ours or of a platform's, but for these; and without a proxy, which would
    stand between us and loopback."""
    names = (name for name in os.environ if not name.upper().startswith(_NOT_HANDED_ON))
    return {name: os.environ[name] for name in names if not name.upper().endswith("_PROXY")} | settings


def resident_mib(process: int | None = None) -> float:
    """How much memory a process holds, in MiB; None: this one."""
    with open(f"/proc/{process or 'self'}/status", encoding="ascii") as status:  # noqa: PTH123 - no file
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:")) / 1024
