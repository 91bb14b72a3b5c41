"""Telegram: what happens there becomes facts, and what we say becomes messages there."""
