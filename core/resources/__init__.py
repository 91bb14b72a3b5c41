"""What `asset://` and `artifact://` stand for: bytes, sidecars and names."""
