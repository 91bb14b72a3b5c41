"""``ishiki bench``: what the project costs, as ratios measured in one run on one machine."""
