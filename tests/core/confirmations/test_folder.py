"""`pending/` on disk: what stands there is what was decided, and nothing that cannot be read is taken for leave."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from core.confirmations.folder import Folder
from core.confirmations.record import Record
from core.ids import SessionId, TaskHash
from tests.builders import MONA, SESSION, a_confirmation, a_task, an_ask


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / SESSION).mkdir()
    return Folder(lambda session: tmp_path / session)


def pending(tmp_path: Path) -> Path:
    return tmp_path / SESSION / "pending"


def names(path: Path) -> list[str]:
    return sorted(found.name for found in path.iterdir())


def test_a_record_is_read_back_equal_from_a_file_that_only_we_may_read(folder: Folder, tmp_path: Path) -> None:
    records = [
        a_confirmation(
            a_task(1), text="Ünï\u202e👍\n", args={"a": [1, None, 2.5]}, by=MONA, status="denied", decided_at=5
        ),
        an_ask(task=a_task(2)),
    ]
    for record in records:
        folder.write(record)
    assert list(folder.read_all([SESSION])) == records
    assert names(pending(tmp_path)) == [f"{a_task(1)}.json", f"{a_task(2)}.json"]
    assert stat.S_IMODE(pending(tmp_path).stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in pending(tmp_path).iterdir()} == {0o600}
    text = (pending(tmp_path) / f"{a_task(1)}.json").read_text()
    assert text.startswith("{\n  ")
    assert "Ünï" in text


def test_members_of_others_are_kept(folder: Folder, tmp_path: Path) -> None:
    folder.write(a_confirmation(a_task(1)))
    path = pending(tmp_path) / f"{a_task(1)}.json"
    document: dict[str, Any] = json.loads(path.read_text())
    others: dict[str, Any] = {"model": "m", "todos": [{"content": "x"}], "reply": "", "completed": None}
    path.write_text(json.dumps(document | others))
    (record,) = folder.read_all([SESSION])
    folder.write(record.with_(resolved_at=5))
    assert json.loads(path.read_text()) == document | others | {"resolved_at": 5}


def test_what_a_cut_off_write_left_and_what_is_not_ours_is_not_looked_at(folder: Folder, tmp_path: Path) -> None:
    folder.write(a_confirmation(a_task(1)))
    strange = [f".{a_task(2)}.json.1a2b", f".{a_task(3)}.json", "notes.json", f"{a_task(4)}.txt"]
    for name in strange:
        (pending(tmp_path) / name).write_text("{")
    assert [record.task_hash for record in folder.read_all([SESSION])] == [a_task(1)]
    assert names(pending(tmp_path)) == sorted([*strange, f"{a_task(1)}.json"])


def test_a_session_without_pending_has_none_and_one_without_folder_takes_none(folder: Folder) -> None:
    assert list(folder.read_all([SESSION, SessionId("dc-1")])) == []
    with pytest.raises(FileNotFoundError):
        folder.write(a_confirmation(session_id=SessionId("dc-1")))


GOOD: dict[str, Any] = a_confirmation(a_task(1)).document()
BROKEN: dict[str, bytes] = {
    "empty": b"",
    "cut off": json.dumps(GOOD).encode()[:-20],
    "no object": b"[]",
    "binary": b"\xff\xfe\x00",
    "half an emoji": json.dumps(GOOD | {"text": "\ud83d"}).encode(),
    "of another hash": json.dumps(GOOD | {"task_hash": a_task(2)}).encode(),
    "of another session": json.dumps(GOOD | {"session_id": "dc-1"}).encode(),
    "of no status": json.dumps(GOOD | {"status": "maybe"}).encode(),
    "approved by nobody at no time": json.dumps(GOOD | {"status": "approved"}).encode(),
    "open and decided": json.dumps(GOOD | {"decided_at": 5}).encode(),
    "without choices": json.dumps(GOOD | {"choices": []}).encode(),
    "with a choice that is none": json.dumps(GOOD | {"choices": ["yes", "sudo"]}).encode(),
    "for no session": json.dumps(GOOD | {"deliver_to": "../etc"}).encode(),
    "from no session": json.dumps(GOOD | {"origin": "x"}).encode(),
    "shown nowhere": json.dumps(
        GOOD | {"prompt": {"platform": "discord", "channelId": "1", "messageIds": [], "question": 0, "postedAt": 1}}
    ).encode(),
    "with nothing left to answer": json.dumps(
        an_ask(task=a_task(1)).document() | {"answers": [{"question": "Which one?", "answer": "a"}]}
    ).encode(),
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN.keys())
def test_what_cannot_be_read_is_kept_aside_and_denied(folder: Folder, tmp_path: Path, content: bytes) -> None:
    folder.write(a_confirmation(a_task(1)))
    folder.write(a_confirmation(a_task(3)))
    (pending(tmp_path) / f"{a_task(1)}.json").write_bytes(content)
    denied, other = folder.read_all([SESSION])
    assert (denied.task_hash, denied.status, denied.choice, denied.resolved_at) == (a_task(1), "denied", None, None)
    assert denied.closed_at is not None
    assert other.is_open
    assert (pending(tmp_path) / "broken" / f"{a_task(1)}.json").read_bytes() == content
    assert list(folder.read_all([SESSION])) == [denied, other], "it is told until that is noted, also after a crash"


def test_what_the_disk_does_not_give_is_left_alone_and_the_others_are_read(folder: Folder, tmp_path: Path) -> None:
    folder.write(a_confirmation(a_task(3)))
    (pending(tmp_path) / f"{a_task(1)}.json").mkdir()
    assert [record.task_hash for record in folder.read_all([SESSION])] == [a_task(3)]
    assert names(pending(tmp_path)) == [f"{a_task(1)}.json", f"{a_task(3)}.json"]


def test_a_disk_that_is_full_at_the_start_hides_neither_the_broken_one_nor_the_others(tmp_path: Path) -> None:
    class Full(Folder):
        full = False

        def write(self, record: Record) -> None:
            if self.full:
                raise OSError(28, "No space left on device")
            super().write(record)

    (tmp_path / SESSION).mkdir()
    folder = Full(lambda session: tmp_path / session)
    folder.write(a_confirmation(a_task(2)))
    (pending(tmp_path) / f"{a_task(1)}.json").write_text("{")
    folder.full = True
    assert [record.status for record in folder.read_all([SESSION])] == ["denied", "open"]
    folder.full = False
    assert [record.status for record in folder.read_all([SESSION])] == ["denied", "open"], "nor at the next start"
    assert (pending(tmp_path) / "broken" / f"{a_task(1)}.json").read_text() == "{"


def test_a_removed_record_is_gone_and_removing_it_again_is_no_error(folder: Folder) -> None:
    record = a_confirmation(TaskHash(a_task(1)))
    folder.write(record)
    folder.remove(record)
    folder.remove(record)
    assert list(folder.read_all([SESSION])) == []
