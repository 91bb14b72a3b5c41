"""The power goes at any moment: what was promised is there, whatever of the rest is."""

import os
import random
from pathlib import Path
from typing import Final

import pytest

from tests.torture.disk.power import states
from tests.torture.disk.trials import TRIALS

TRIES: Final = int(os.environ.get("TORTURE_POWER", "1"))
"""Random combinations of what is not synced, at each sync."""


@pytest.mark.parametrize("name", TRIALS)
def test_a_power_cut_at_any_moment_keeps_what_was_promised(tmp_path: Path, name: str) -> None:
    trial = TRIALS[name]
    before = tmp_path / "before"
    before.mkdir()
    trial.prepare(before)
    whole = tmp_path / "whole"
    machine = trial.whole(whole)
    contents = {whole / path.relative_to(before): path.read_bytes() for path in before.rglob("*") if path.is_file()}
    tried = 0
    for tried, state in enumerate(states(machine, contents, random.Random(7), tries=TRIES), 1):
        folder = tmp_path / str(tried)
        folder.mkdir(mode=0o700)
        state.write(whole, folder)
        trial.must_hold(folder, state.said)
    assert tried > 30, "that is no trial"
