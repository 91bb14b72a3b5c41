"""The seam to people: what the core asks of a platform, and the text work that platforms share."""
