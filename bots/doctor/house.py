"""The data folder, who holds it, and the file with the secrets."""

import fcntl
import os
import stat
from pathlib import Path
from typing import NamedTuple

from bots.doctor.verdict import Verdict, fail, ok, warn
from core.ids import SessionId, is_session_id

_OF_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class Holder(NamedTuple):
    """Whether a process holds the data folder, and what it calls itself."""

    there: bool
    name: str = ""


def holder(folder: Path) -> Holder:
    """Who holds a data folder. Blocks; raises `OSError`.

    Only taking a lock tells whether it is free: a shared one, let go of at once, which no other look runs into.
    """
    try:
        descriptor = os.open(folder / "ishiki.lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return Holder(there=False)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return Holder(there=True, name=os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip())
    else:
        return Holder(there=False)
    finally:
        os.close(descriptor)  # which lets go of the lock too


def look_at_holder(folder: Path) -> Verdict:
    """Who is at work."""
    try:
        found = holder(folder)
    except OSError as error:
        return fail(
            f"ishiki.lock in {folder} cannot be opened ({error.strerror})", "give the folder to who runs ishiki"
        )
    if found.there:
        return ok(f"{folder} is held by {found.name or 'a process'}, which is at work")
    return ok(f"nobody holds {folder}; `ishiki run` is not at work")


def look_at_folder(folder: Path) -> Verdict:
    """Whether the data folder is ours, and ours alone."""
    try:
        found = folder.stat()
    except FileNotFoundError:
        return _of_one_to_be_made(folder)
    except OSError as error:
        return fail(f"{folder} cannot be looked at ({error.strerror})", "set ISHIKI_DATA_DIR to a folder of your own")
    if not stat.S_ISDIR(found.st_mode):
        return fail(f"{folder} is no folder", "set ISHIKI_DATA_DIR to a folder of your own")
    return _of_rights(folder, found)


def look_at_dotenv(path: Path) -> Verdict:
    """Whether others can read the tokens."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return ok(f"there is no {path} here; settings come from the environment")
    except OSError as error:
        return warn(f"{path} cannot be looked at ({error.strerror})", f"check the owner and rights of {path}")
    if found.st_mode & _OF_OTHERS:
        mode = stat.S_IMODE(found.st_mode)
        return warn(f"others on this machine can read {path} ({mode:04o}), where tokens stand", f"chmod 600 {path}")
    return ok(f"{path} can be read by its owner only")


def sessions_of(folder: Path) -> list[SessionId]:
    """All sessions, those first whose log was written last. Blocks; raises `OSError`."""
    dated: list[tuple[float, SessionId]] = []
    try:
        with os.scandir(folder / "runtimes") as entries:
            names = [entry.name for entry in entries if is_session_id(entry.name)]
    except FileNotFoundError:
        return []
    for name in names:
        try:
            written = (folder / "runtimes" / name / "events.jsonl").stat().st_mtime
        except OSError:
            written = 0.0
        dated.append((written, SessionId(name)))
    return [session for _, session in sorted(dated, reverse=True)]


def standing(folder: Path) -> Path:
    """The folder itself, or what stands of the way to it."""
    place = folder.absolute()
    while not place.is_dir() and place != place.parent:
        place = place.parent
    return place


def _of_one_to_be_made(folder: Path) -> Verdict:
    above = standing(folder)
    if os.access(above, os.W_OK | os.X_OK):
        return ok(f"{folder} is not there yet; `ishiki run` makes it")
    return fail(f"{folder} is not there, and {above} cannot be written by us", "make it, or set ISHIKI_DATA_DIR")


def _of_rights(folder: Path, found: os.stat_result) -> Verdict:
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return fail(f"{folder} cannot be read and written by us", f"chown -R {_us()} {folder}")
    if found.st_uid != os.geteuid():
        cure = f"run ishiki as that user, or chown -R {_us()} {folder}"
        return warn(f"{folder} belongs to user {found.st_uid}, and we are {os.geteuid()}", cure)
    if found.st_mode & _OF_OTHERS:
        mode = stat.S_IMODE(found.st_mode)
        return warn(f"others can look into {folder} ({mode:04o}), where chats are kept", f"chmod 700 {folder}")
    return ok(f"{folder} is ours alone (0700)")


def _us() -> str:
    return f"{os.geteuid()}:{os.getegid()}"
