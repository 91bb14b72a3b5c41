"""The process ends at the k-th call that changes the disk, for every k until the work is done."""

import shutil
from itertools import count
from pathlib import Path

import pytest

from tests.torture.disk.machine import Kind, attempt
from tests.torture.disk.trials import TRIALS, Trial


def try_it(folder: Path, trial: Trial, kind: Kind, at: int) -> bool:
    """Returns whether the work came to that call at all."""
    folder.mkdir(mode=0o700)
    trial.prepare(folder)
    ended, said = attempt(folder, trial.work, kind, at)
    trial.must_hold(folder, said)
    shutil.rmtree(folder)
    return ended


@pytest.mark.parametrize("name", TRIALS)
def test_a_process_that_ends_before_any_call_keeps_what_it_promised(tmp_path: Path, name: str) -> None:
    last = next(at for at in count(1) if not try_it(tmp_path / str(at), TRIALS[name], "end", at))
    assert last > 10, "that is no trial"


@pytest.mark.parametrize("name", TRIALS)
def test_a_process_that_ends_within_any_write_keeps_what_it_promised(tmp_path: Path, name: str) -> None:
    machine = TRIALS[name].whole(tmp_path / "whole")
    assert machine.writes
    for at in machine.writes:
        try_it(tmp_path / str(at), TRIALS[name], "torn end", at)
