"""What is tried on a disk that fails: each with what is prepared, what is done and what must hold."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

from tests.torture.disk import logs, small_files
from tests.torture.disk.machine import Machine


class Trial(NamedTuple):
    """What is prepared, what is done, and what must hold however it ended; ``promised`` before anything is done."""

    prepare: Callable[[Path], None]
    work: Callable[[Machine], object]
    reopen: Callable[[Path], None]
    check: Callable[[Path, Iterable[bytes]], None]
    promised: tuple[bytes, ...] = ()

    def whole(self, folder: Path) -> Machine:
        """Do it where nothing fails."""
        folder.mkdir(mode=0o700)
        self.prepare(folder)
        with Machine(folder) as machine:
            self.work(machine)
        return machine

    def must_hold(self, folder: Path, said: Iterable[bytes]) -> None:
        """Open the folder again and look. Syncs are left out: nothing fails here any more."""
        with Machine(folder):
            self.reopen(folder)
        self.check(folder, [*self.promised, *said])


APPEND: Final = Trial(logs.prepare, logs.append, logs.open_and_close, logs.check)
RECOVER: Final = Trial(logs.left_by_a_crash, logs.recover, logs.open_and_close, logs.check, tuple(logs.ALL_PROMISED))
PENDING: Final = Trial(
    small_files.prepare_pending, small_files.keep_pending, small_files.reopen_pending, small_files.check_pending
)
RESOURCES: Final = Trial(
    small_files.prepare_resources, small_files.keep_resources, small_files.reopen_resources, small_files.check_resources
)
TRIALS: Final = {"append": APPEND, "recover": RECOVER, "pending": PENDING, "resources": RESOURCES}
