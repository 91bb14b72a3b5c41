"""The audit line: ``action.log``, one line per event, for people (sessions.md 1.3)."""
