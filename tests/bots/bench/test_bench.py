"""`ishiki bench` as an operator calls it, and each row with next to nothing to measure."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bots.bench.bare import SLOW, SlowDisk, bare_in
from bots.bench.goal import TINY, Bench, Goal, Measured, Row, shown
from bots.bench.made_logs import write_log
from bots.bench.peer import Peer, bare_environment
from bots.bench.replays import JQ, log_stats
from bots.bench.rows import ROWS
from bots.bench.said import CHANNELS, discord_message, lines_of, telegram_update
from core.log.disk import Disk

CALL = (sys.executable, "-c", "from bots.cli import main; main()", "bench")


def bench(folder: Path, *arguments: str, **settings: str) -> "subprocess.CompletedProcess[str]":
    command = [*CALL, "--quick", "--folder", str(folder), *arguments]
    environment = {**bare_environment(), **settings}
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=False)


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Measured]:
    """What each row gives, each in a process of its own; some at a time, as most of them wait most of the time."""

    base = tmp_path_factory.mktemp("rows")

    def measure(row: Row) -> Measured:
        folder = base / row.name
        folder.mkdir()
        with Peer("bots.bench", row.name, str(folder), "tiny") as peer:
            return Measured(**peer.ready)

    with ThreadPoolExecutor(4) as pool:
        return {row.name: measured for row, measured in zip(ROWS, pool.map(measure, ROWS), strict=True)}


@pytest.mark.parametrize("name", [row.name for row in ROWS if row.goal.unit == "×"])
def test_a_row_that_compares_gives_a_ratio(figures: dict[str, Measured], name: str) -> None:
    value, detail = figures[name].value, figures[name].detail
    if value is None and "is not installed" in detail:
        pytest.skip(detail)
    assert value is not None
    assert 0 < value < 1_000
    assert " of " in detail or " beside " in detail


@pytest.mark.parametrize("name", [row.name for row in ROWS if row.goal.unit != "×"])
def test_a_row_with_a_unit_gives_a_figure_in_it(figures: dict[str, Measured], name: str) -> None:
    value, detail = figures[name].value, figures[name].detail
    assert value is not None
    assert abs(value) < {"s": 10, "ms": 10_000, "MiB": 100}[next(row.goal.unit for row in ROWS if row.name == name)]
    assert detail.count(".") >= 2  # the two figures that it was made of


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed; apt-get install jq")
def test_jq_and_the_stats_count_the_same(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write_log(path, lines=2_000)
    names = subprocess.run(["jq", "-r", JQ, str(path)], capture_output=True, text=True, check=True).stdout.split()
    ours = subprocess.run([*CALL[:-1], "log", "stats", "--json", str(path)], capture_output=True, check=True).stdout
    found = json.loads(ours)
    counted = {name: count for name, count in found["types"].items() if name != "message"} | found["messages"]
    assert counted == dict(Counter(names))
    assert found["badCount"] == 0


def test_without_jq_the_row_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    measured = log_stats(Bench(tmp_path, TINY))
    assert measured == Measured(None, "not measured: jq is not installed; apt-get install jq")


async def test_every_kind_of_sync_of_a_slow_disk_is_slow_on_both_sides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at_once(*_arguments: object) -> None: ...

    for name in ("sync", "fsync", "fdatasync"):  # what is slow is not the real disk
        monkeypatch.setattr(os, name, at_once)
    disk, file = SlowDisk(), os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    for sync in (lambda: disk.sync(file), lambda: disk.sync_folder(tmp_path), disk.sync_all):
        began = time.perf_counter()
        sync()
        assert time.perf_counter() - began >= SLOW
    os.close(file)
    async with bare_in(tmp_path / "bare", disk) as bare:
        began = time.perf_counter()
        await bare.append(b"line\n")
        assert time.perf_counter() - began >= SLOW


async def test_a_bare_group_commit_syncs_once_for_all_that_is_under_way(tmp_path: Path) -> None:
    syncs: list[int] = []

    class Counting(Disk):
        def sync(self, descriptor: int) -> None:
            syncs.append(descriptor)
            super().sync(descriptor)

    async with bare_in(tmp_path / "bare", Counting()) as bare:
        await asyncio.gather(*(bare.append(b"line\n") for _ in range(64)))
        assert (tmp_path / "bare").read_bytes() == b"line\n" * 64
    assert len(syncs) == 1


def test_a_reply_quotes_an_earlier_message_of_its_channel() -> None:
    for number in range(25, 1_000, 10):
        reply, original = discord_message(number), discord_message(number - CHANNELS)
        assert reply["referenced_message"]["id"] == reply["message_reference"]["message_id"] == original["id"]
        assert reply["channel_id"] == original["channel_id"]
        assert reply["referenced_message"]["content"] == original["content"]


def test_what_is_said_makes_as_many_lines_as_the_rows_wait_for() -> None:
    for count in (1, 20, 21, 200):
        files = sum(len(discord_message(number)["attachments"]) for number in range(count))
        photos = sum("photo" in telegram_update(number)["message"] for number in range(count))
        assert lines_of(count) == count + files == count + photos


def test_a_figure_has_its_unit() -> None:
    assert shown(0.65, "×") == "0.65×"
    assert shown(50.0, "ms") == "50 ms"
    assert str(Goal(0.8, at_least=True)) == "≥ 0.8×"
    assert str(Goal(8.0, "MiB")) == "≤ 8 MiB"


def test_a_goal_is_met_at_its_limit_and_missed_beyond() -> None:
    assert Goal(0.8, at_least=True).met_by(0.8)
    assert not Goal(0.8, at_least=True).met_by(0.79)
    assert Goal(2.0, "ms").met_by(2.0)
    assert not Goal(2.0, "ms").met_by(2.01)
    assert not Goal(8.0, "MiB").met_by(float("inf"))


def test_an_unknown_row_is_named_with_those_that_there_are(tmp_path: Path) -> None:
    ended = bench(tmp_path, "discrod")
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.startswith("ishiki: there is no row 'discrod'; rows are discord, telegram, ")
    assert ended.stderr.count("\n") == 1


def test_a_folder_that_is_not_there_is_named_with_the_cure(tmp_path: Path) -> None:
    ended = bench(tmp_path, "--folder", str(tmp_path / "nowhere"), "last")
    assert ended.returncode == 2
    assert "nowhere cannot be written to (No such file or directory); name another with --folder" in ended.stderr


def test_json_is_one_object_a_row_and_settings_of_the_operator_change_nothing(tmp_path: Path) -> None:
    settings = {"ISHIKI_DATA_DIR": str(tmp_path / "data"), "ISHIKI_MISSPELT": "1", "ISHIKI_HTTP_PORT": "none"}
    ended = bench(tmp_path, "--json", "append-alone", **settings)
    document = json.loads(ended.stdout)
    assert ended.returncode == (0 if document["result"] == "met" else 1)
    assert document["value"] > 0
    assert (document["row"], document["unit"], document["goal"]) == ("append-alone", "×", 3.0)
    assert "1 of 1, append-alone" in ended.stderr
    assert [*tmp_path.iterdir()] == []


def test_no_token_and_no_proxy_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ISHIKI_DATA_DIR", "DISCORD_TOKEN", "TELEGRAM_TOKEN", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("KEPT", "yes")
    handed_on = bare_environment(ISHIKI_HTTP_PORT="0")
    assert "http://127.0.0.1:9" not in handed_on.values()
    assert (handed_on["KEPT"], handed_on["ISHIKI_HTTP_PORT"]) == ("yes", "0")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_cut_short_it_leaves_no_file_and_no_process(tmp_path: Path, number: signal.Signals, code: int) -> None:
    with subprocess.Popen(
        [*CALL, "--folder", str(tmp_path), "start"], stderr=subprocess.PIPE, text=True, env=bare_environment()
    ) as process:
        assert process.stderr is not None
        while not [*tmp_path.glob("ishiki-bench-*/start/none/.store")]:
            assert process.poll() is None
            time.sleep(0.05)
        began = time.monotonic()
        process.send_signal(number)
        said = process.stderr.read()  # ends when the last process that could say something has ended
        assert time.monotonic() - began < 5.0  # it was told to end, not waited for and killed
    assert process.returncode == code
    assert "Traceback" not in said
    assert [*tmp_path.iterdir()] == []
