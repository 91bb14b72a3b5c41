"""Work on the log for trials: what is done, and what must hold however it ended."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, cast

from core.errors import LogUnavailable
from core.log.file import FileLog
from core.log.journal import Batch, Journal
from core.log.records import Record, pack
from tests.torture.disk.machine import Machine

SESSIONS: Final = ("dc-1", "tg-2", "chat-3")
ROUNDS: Final = 3
TURN_OVER_AT: Final = 900
OLD: Final = b'{"old":1}\n{"old":2}\n'
TORN: Final = b'{"old":3,"te'


def a_batch(session: str, number: int) -> list[bytes]:
    return [f'{{"s":"{session}","n":{number},"part":{part},"pad":"{"é" * number * 9}"}}'.encode() for part in (1, 2)]


def sidecars_of(number: int) -> dict[str, bytes]:
    return {f"resources/assets/{number}.json": b'{"id":"%d"}' % number} if number % 2 else {}


class _Witness(asyncio.SelectorEventLoop):
    """Knows of an acknowledgement when the committer gives it, not when the loop comes to it."""

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self._machine = machine

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: Any, context: Any = None) -> asyncio.Handle:
        if args and isinstance(args[0], list):
            for batch in cast("list[object]", args[0]):
                if isinstance(batch, Batch) and batch.failure is None:
                    self._machine.say(batch.lines[0])
        return super().call_soon_threadsafe(callback, *args, context=context)


def prepare(folder: Path) -> None:
    """One session has lines, and a last one that was cut off."""
    path = path_of(folder, SESSIONS[0])
    path.parent.mkdir(parents=True)
    path.write_bytes(OLD + TORN)


def append(machine: Machine) -> None:
    """Open, append to all sessions at once, several times over, and stop. What fails is handed in once more."""
    with asyncio.Runner(loop_factory=lambda: _Witness(machine)) as runner:
        runner.run(_append_all(machine.folder))


async def _append_all(folder: Path) -> None:
    journal = Journal(folder, turn_over_at=TURN_OVER_AT)
    await asyncio.to_thread(journal.start)
    try:
        logs = [FileLog(folder / "runtimes", session, journal) for session in SESSIONS]
        for number in range(ROUNDS):
            await asyncio.gather(*(_insist(log, session, number) for log, session in zip(logs, SESSIONS, strict=True)))
    finally:
        await asyncio.to_thread(journal.stop)


async def _insist(log: FileLog, session: str, number: int) -> None:
    for _ in range(2):
        try:
            await log.append(a_batch(session, number), sidecars_of(number))
        except LogUnavailable:
            continue
        return


def left_by_a_crash(folder: Path) -> None:
    """A journal with several batches of each session, and session files in every state that a crash leaves."""
    prepare(folder)
    states = dict(zip(SESSIONS, ("torn", "lacking", "zeros"), strict=True))
    packed: list[bytes] = []
    for session, state in states.items():
        path = path_of(folder, session)
        path.parent.mkdir(exist_ok=True)
        start = path.read_bytes() if path.exists() else b""
        whole = start
        for number in range(ROUNDS):
            guard = b"\n" if whole and not whole.endswith(b"\n") else b""
            content = guard + b"\n".join(a_batch(session, number)) + b"\n"
            packed.append(pack([Record(session, len(whole), content, sidecars_of(number))], b"8 bytes."))
            whole += content
        middle = (len(start) + len(whole)) // 2
        if state == "torn":
            path.write_bytes(whole[:middle])
        elif state == "zeros":
            path.write_bytes(whole[:middle] + bytes(len(whole) - middle))
    (folder / ".store").mkdir()
    (folder / ".store" / "journal").write_bytes(b"".join(packed))


ALL_PROMISED: Final = [a_batch(session, number)[0] for session in SESSIONS for number in range(ROUNDS)]


def recover(machine: Machine) -> None:
    open_and_close(machine.folder)


def open_and_close(folder: Path) -> None:
    journal = Journal(folder)
    journal.start()
    journal.stop()


def check(folder: Path, promised: Iterable[bytes]) -> None:
    """What was promised is there once and in order, whole batches with their sidecars, and nothing beside them."""
    kept = defaultdict[str, list[bytes]](list)
    said = list(promised)
    for session in SESSIONS:
        path = path_of(folder, session)
        found = path.read_bytes() if path.exists() else b""
        if session == SESSIONS[0]:
            assert found.startswith(OLD + TORN), "what stood there before is untouched"
            found = found.removeprefix(OLD + TORN).removeprefix(b"\n")
        assert not found or found.endswith(b"\n"), f"the last line of {session} is cut off: {found[-80:]!r}"
        kept[session] = lines = found.split(b"\n")[:-1]
        numbers = [number for number in range(ROUNDS) if a_batch(session, number)[0] in lines]
        assert lines == [line for number in numbers for line in a_batch(session, number)], f"{session} holds else"
        for number in numbers:
            for name, content in sidecars_of(number).items():
                assert (folder / "runtimes" / session / name).read_bytes() == content, f"{session} lacks {name}"
    assert {*said} <= {line for lines in kept.values() for line in lines}
    assert (folder / ".store" / "journal").stat().st_size == 0
    assert {path.name for path in (folder / ".store").iterdir()} == {"journal"}
    assert not [*(folder / "runtimes").rglob(".*")], "a temporary file was left"


def path_of(folder: Path, session: str) -> Path:
    return folder / "runtimes" / session / "events.jsonl"
