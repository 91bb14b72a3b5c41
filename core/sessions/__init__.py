"""One conversation: what was said, what is true now, and who may write it down."""
