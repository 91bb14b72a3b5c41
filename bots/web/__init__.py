"""Our HTTP API (contract section 7)."""
