"""The ``ishiki`` command without the second that its imports take.

A nursery imports everything once and forks for each command; the child then does what ``ishiki`` does, in a folder and
an environment of its own. What all children print is kept together.
"""

import asyncio
import contextlib
import importlib
import json
import os
import random
import re
import resource
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

ROOT = Path(__file__).parents[2]
NURSERY = [sys.executable, "-c", "from tests.torture.forks import serve; serve()"]


@dataclass(frozen=True, slots=True)
class Size:
    """Resident memory, open files and threads of a process."""

    mebibytes: float
    descriptors: int
    threads: int


class Child:
    """One command that runs, or ran. ``code`` is its exit code, negative for a signal; None while it runs."""

    def __init__(self, forks: "Forks", pid: int) -> None:
        self._forks = forks
        self.pid = pid
        self.code: int | None = None
        self._proc = Path("/proc") / str(pid)

    def send(self, number: int) -> None:
        if self.code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it as a power cut would. It is still there until `wait`."""
        self.send(signal.SIGKILL)

    def limit_files(self, most: int) -> None:
        """Refuse every write beyond so many bytes into a file, -1: none. What is there stays."""
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))

    def size(self) -> "Size":
        """What it holds now."""
        status = (self._proc / "status").read_text()
        resident = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return Size(
            mebibytes=int(resident.split()[1]) / 1024,
            descriptors=len(list((self._proc / "fd").iterdir())),
            threads=len(list((self._proc / "task").iterdir())),
        )

    async def tasks(self) -> int:
        """How many asyncio tasks it has."""
        before = len(self._forks.output)
        self.send(signal.SIGUSR1)
        async with asyncio.timeout(10):
            while (found := _TASKS.search(self._forks.output, before)) is None:  # noqa: ASYNC110 - a process's output
                await asyncio.sleep(0.01)
        return int(found[1])

    async def poll(self) -> int | None:
        """The exit code; None while it runs."""
        if self.code is None:
            self.code = await self._forks.order({"poll": self.pid})
        return self.code

    async def wait(self, within: float = 10.0) -> int:
        """The exit code, as soon as there is one. Raises `TimeoutError`."""
        async with asyncio.timeout(within):
            while (code := await self.poll()) is None:  # noqa: ASYNC110 - a process of its own
                await asyncio.sleep(0.005)
        return code


_TASKS = re.compile(rb"^tasks (\d+)$", re.MULTILINE)


class Forks:
    """`async with Forks() as forks:` starts the nursery; on the way out whatever still runs is killed."""

    def __init__(self) -> None:
        self.output = bytearray()
        self._children: list[Child] = []
        self._ordering = asyncio.Lock()

    async def __aenter__(self) -> Self:
        pipe = asyncio.subprocess.PIPE
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
        self._nursery = await asyncio.create_subprocess_exec(
            *NURSERY, stdin=pipe, stdout=pipe, stderr=pipe, env=environment
        )
        self._reading = asyncio.create_task(self._read(), name="output of the children")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in self._children:
            if child.code is None:
                child.kill()
                await child.wait()
        assert self._nursery.stdin is not None
        self._nursery.stdin.close()
        await self._nursery.wait()
        await self._reading

    async def start(self, *arguments: str, folder: Path, environment: Mapping[str, str]) -> Child:
        """Begin a command."""
        about = {"arguments": arguments, "folder": str(folder), "environment": dict(environment)}
        pid = await self.order({"start": about})
        assert pid is not None
        child = Child(self, pid)
        self._children = [*(one for one in self._children if one.code is None), child]
        return child

    def said(self) -> str:
        """What the children printed so far."""
        return self.output.decode(errors="replace")

    def has_said(self, words: str, since: int) -> bool:
        """Whether words stand in the output behind a place."""
        return self.output.find(words.encode(), since) >= 0

    async def order(self, what: dict[str, Any]) -> int | None:
        """Ask the nursery for something."""
        assert self._nursery.stdin is not None
        assert self._nursery.stdout is not None
        async with self._ordering:
            self._nursery.stdin.write(json.dumps(what).encode() + b"\n")
            answer = await asyncio.shield(self._nursery.stdout.readline())
        if not answer:
            raise RuntimeError(f"the nursery died: {self.said()[-2000:]}")
        return json.loads(answer)

    async def _read(self) -> None:
        assert self._nursery.stderr is not None
        while piece := await self._nursery.stderr.read(65536):
            self.output += piece


# --- in the nursery ---------------------------------------------------------------------------------------------------


def serve() -> None:
    """Read orders from standard input, a line each, and answer each by a line."""
    for name in ("bots.run", "bots.commands", "bots.cli", "uvicorn.loops.auto", "uvicorn.protocols.http.auto"):
        importlib.import_module(name)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin:
        order = json.loads(line)
        if "start" in order:
            pid = os.fork()
            if pid == 0:
                answers.close()
                _be(**order["start"])
            print(pid, file=answers)
        else:
            done, status = os.waitpid(order["poll"], os.WNOHANG)
            print(json.dumps(os.waitstatus_to_exitcode(status) if done else None), file=answers)


def _count_tasks(*_: object) -> None:
    with contextlib.suppress(RuntimeError):  # no loop runs yet, or any more
        os.write(2, b"tasks %d\n" % len(asyncio.all_tasks()))


def _be(arguments: list[str], folder: str, environment: dict[str, str]) -> NoReturn:
    """Do what ``ishiki`` does."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    random.seed()
    signal.signal(signal.SIGUSR1, _count_tasks)
    sys.argv = ["ishiki", *arguments]
    importlib.import_module("bots.cli").main()
    sys.exit(0)
