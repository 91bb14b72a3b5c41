"""Loopback stand-ins for Discord and Telegram: real protocols over real sockets, nobody else involved."""
