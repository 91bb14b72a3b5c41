"""``ishiki tui``: the sessions in a terminal, and the platform of ``cli-``. It reads without the data folder's lock."""
