"""Work on pending files and on resources for trials: what is done, and what must hold however it ended."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from core.confirmations.folder import Folder
from core.errors import ResourceError
from core.ids import AssetId, TaskHash
from core.resources.store import Resources
from core.sidecars import Sidecar, read_sidecar, write_sidecar
from tests.builders import SESSION, a_confirmation, a_task
from tests.torture.disk.machine import Machine

OPEN: Final = a_confirmation(a_task(1), at=1)
NOTED: Final = OPEN.model_copy(update={"text": "more of it " * 50})
DECIDED: Final = OPEN.model_copy(update={"status": "approved", "choice": "yes", "decided_at": 2})
STAGES: Final = (OPEN, NOTED, DECIDED)
BROKEN: Final = TaskHash(a_task(2))
TORN: Final = b'{"task_hash":"000'


def folder_of(folder: Path) -> Folder:
    return Folder(lambda session: folder / "runtimes" / session)


def prepare_pending(folder: Path) -> None:
    """A session with one pending file that nobody can read."""
    pending = folder / "runtimes" / SESSION / "pending"
    pending.mkdir(parents=True)
    (pending / f"{BROKEN}.json").write_bytes(TORN)


def prepare_nothing(folder: Path) -> None:
    (folder / "runtimes").mkdir()


def keep_pending(machine: Machine) -> None:
    """Read what is there, then ask, note something, decide and file."""
    folder = folder_of(machine.folder)
    session = machine.folder / "runtimes" / SESSION
    if not session.is_dir():
        session.mkdir()
    list(folder.read_all([SESSION]))
    machine.say(b"read")
    for number, record in enumerate(STAGES):
        folder.write(record)
        machine.say(b"%d" % number)
    machine.say(b"filing")
    folder.remove(DECIDED)


def reopen_pending(folder: Path) -> None:
    list(folder_of(folder).read_all([SESSION]))


def check_pending(folder: Path, promised: Iterable[bytes]) -> None:
    said = [*promised]
    pending = folder / "runtimes" / SESSION / "pending"
    found = {record.task_hash: record for record in folder_of(folder).read_all([SESSION])}
    assert found.keys() <= {OPEN.task_hash, BROKEN}
    assert {path.name for path in pending.rglob(".*")} <= {".new.0"}, "temporary files pile up"
    least = max((int(word) for word in said if word.isdigit()), default=-1)
    record = found.get(OPEN.task_hash)
    if b"filing" not in said:
        assert record is not None or least < 0, "what was promised is gone"
    assert record is None or record in STAGES[max(least, 0) :], "what was promised is not what is there"
    if (pending / "broken").exists() or BROKEN in found:
        assert found[BROKEN].status == "denied"
        assert (pending / "broken" / f"{BROKEN}.json").read_bytes() == TORN


# --- resources ----------------------------------------------------------------------------------------------------

KEPT: Final = AssetId("a" * 32)
GIVEN_UP: Final = AssetId("b" * 32)
RETRACTED: Final = AssetId("c" * 32)
BYTES: Final = b"\x89PNG\r\n\x1a\n" + bytes(3000)


def prepare_resources(folder: Path) -> None:
    """What an append leaves: sidecars of three files, one of which is fetched by now."""
    assets = folder / "runtimes" / SESSION / "resources" / "assets"
    assets.mkdir(parents=True)
    for asset in (KEPT, GIVEN_UP, RETRACTED):
        (assets / f"{asset}.json").write_bytes(write_sidecar(Sidecar(id=asset, kind="asset", name=asset, created_at=1)))
    (assets / RETRACTED).write_bytes(BYTES)


def keep_resources(machine: Machine) -> None:
    """Fetch one, give one up, remove one, and store what a tool made."""
    resources = Resources(machine.folder / "runtimes")
    with resources.receive(SESSION, KEPT) as incoming:
        incoming.write(BYTES[:1000])
        incoming.write(BYTES[1000:])
        resources.keep(SESSION, KEPT, incoming)
    machine.say(b"kept")
    resources.give_up(SESSION, GIVEN_UP, "resource_not_found", "it is gone")
    machine.say(b"given up")
    resources.remove(SESSION, RETRACTED)
    machine.say(b"removed")
    url = resources.put_artifact(SESSION, "tool", BYTES)
    machine.say(url.encode())


def reopen_resources(folder: Path) -> None:
    """All of it is done again, as who is not told of an end does."""
    check_resources(folder, [], again=False)


def check_resources(folder: Path, promised: Iterable[bytes], *, again: bool = True) -> None:
    said = {*promised}
    resources = Resources(folder / "runtimes")
    assets = folder / "runtimes" / SESSION / "resources" / "assets"
    for path in (folder / "runtimes").rglob("*.json"):
        read_sidecar(path.read_bytes())
    kept = _found(resources, f"asset://{KEPT}")
    assert kept in {BYTES, None}
    assert kept == BYTES or b"kept" not in said
    sidecar = resources.sidecar(SESSION, f"asset://{KEPT}")
    assert sidecar.fetched_at is None or kept == BYTES, "the sidecar tells of bytes that are not there"
    assert sidecar.content_hash in {None, hashlib.sha256(BYTES).hexdigest()}
    assert resources.sidecar(SESSION, f"asset://{GIVEN_UP}").error is not None or b"given up" not in said
    if b"removed" in said:
        assert resources.sidecar(SESSION, f"asset://{RETRACTED}").removed_at is not None
        assert not (assets / RETRACTED).exists()
    for url in (word.decode() for word in said if b"://" in word):
        assert _found(resources, url) == BYTES
    if again:
        with Machine(folder) as machine:
            keep_resources(machine)
        check_resources(folder, machine.said(), again=False)
        assert not [*(folder / "runtimes").rglob(".*")], "what a crash left is used again"


def _found(resources: Resources, url: str) -> bytes | None:
    try:
        return resources.open(SESSION, url).path.read_bytes()
    except ResourceError:
        return None
