"""The disk refuses the k-th call, for every k: it is not acknowledged, and work goes on by itself."""

import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from core.errors import FolderUnusable
from tests.torture.disk import logs
from tests.torture.disk.machine import Kind, Machine
from tests.torture.disk.trials import APPEND, TRIALS, Trial


def try_it(folder: Path, trial: Trial, kind: Kind, *at: int) -> Machine:
    folder.mkdir(mode=0o700)
    trial.prepare(folder)
    with Machine(folder, kind, at) as machine, suppress(OSError, FolderUnusable):
        trial.work(machine)
    assert not machine.trusted_after_failure, f"{kind} at {at}"
    trial.must_hold(folder, machine.said())
    shutil.rmtree(folder)
    return machine


@pytest.mark.parametrize("kind", ["EIO", "ENOSPC", "short"])
@pytest.mark.parametrize("name", TRIALS)
def test_what_a_disk_refuses_is_not_acknowledged(tmp_path: Path, name: str, kind: Kind) -> None:
    whole = TRIALS[name].whole(tmp_path / "whole")
    for at in whole.writes if kind == "short" else range(1, whole.calls + 1):
        machine = try_it(tmp_path / str(at), TRIALS[name], kind, at)
        assert kind != "short" or machine.said() == whole.said(), "a short write is continued"


@pytest.mark.parametrize("kind", ["EIO", "ENOSPC"])
def test_appends_go_on_by_themselves_after_one_failure_anywhere(tmp_path: Path, kind: Kind) -> None:
    whole = APPEND.whole(tmp_path / "whole")
    for at in range(1, whole.calls + 1):
        machine = try_it(tmp_path / str(at), APPEND, kind, at)
        assert sorted(machine.said()) == sorted(logs.ALL_PROMISED) or not machine.said(), f"call {at}"
