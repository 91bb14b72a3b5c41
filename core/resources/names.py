"""File names as people sent them, made safe to show and to offer; never used as a path (log-format 9.3)."""

import re
import unicodedata
from typing import Final

MAX_LENGTH: Final = 150
_MAX_EXTENSION: Final = 16

# Control, format (direction marks and overrides, zero width, tags), surrogates, line and paragraph separators.
_UNSHOWN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# "Naming Files, Paths, and Namespaces" of the Windows documentation, with the superscript digits it lists.
_DEVICE: Final = re.compile(r"(?:CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[0-9¹²³]) *+(?:[.:]|$)", re.IGNORECASE)


def safe_filename(name: str) -> str | None:
    """The last component of `name`, safe to show to people and to offer for saving, or `None` if nothing is left.

    `/` and `\\` both separate components. Control, direction, zero-width and other invisible characters are removed,
    blanks around the name and dots behind it too; a device name of Windows gets `_` in front. At most `MAX_LENGTH`
    characters, with the extension kept. Safe names come back unchanged.
    """
    shown = "".join(character for character in name if unicodedata.category(character) not in _UNSHOWN)
    last = _without_tail(shown.replace("\\", "/").rstrip("/ ").rpartition("/")[2]).lstrip()
    if not last:
        return None
    if _DEVICE.match(last):
        last = f"_{last}"
    stem, dot, extension = last.rpartition(".")
    if len(last) <= MAX_LENGTH:
        return last
    if not stem or len(extension) > _MAX_EXTENSION:
        return _without_tail(last[:MAX_LENGTH])
    return stem[: MAX_LENGTH - len(extension) - 1] + dot + extension


def _without_tail(name: str) -> str:
    end = len(name)
    while end and (name[end - 1] == "." or name[end - 1].isspace()):
        end -= 1
    return name[:end]
