"""The terminal menu, the platform of ``cli-``: reads the data folder without the lock, writes through its owner."""
