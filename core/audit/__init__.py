"""Whether a log keeps the rules of its format (log-format 12 and 13.6). Reads, never writes."""

from core.audit.check import check
from core.audit.finding import Finding

__all__ = ["Finding", "check"]
