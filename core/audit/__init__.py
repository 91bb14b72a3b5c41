"""Whether a log keeps the rules of its format (log-format 12 and 13.6), and how unreadable lines leave it."""

from core.audit.check import check
from core.audit.finding import Finding
from core.audit.repair import Damage, damage, loosen, remove, sweep

__all__ = ["Damage", "Finding", "check", "damage", "loosen", "remove", "sweep"]
