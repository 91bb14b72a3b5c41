"""A data folder in one file, taken while it is in use, and made a folder again (contract section 9, "Commands")."""

from core.backup.restore import restore
from core.backup.take import Taken, take

__all__ = ["Taken", "restore", "take"]
