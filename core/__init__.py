"""The log in the middle: sessions, their facts, and what is done about them. Speaks no platform's language."""
