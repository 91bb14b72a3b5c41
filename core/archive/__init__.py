"""history.db: what an operator searches, and the receipts of those who follow the log."""
