"""Bytes on disk; knows no meaning."""
