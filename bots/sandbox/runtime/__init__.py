"""A small agent runtime on loopback, speaking contract section 6, for the demo and the tests."""

from bots.sandbox.runtime.server import Call, Fault, RuntimeSandbox, Turn

__all__ = ["Call", "Fault", "RuntimeSandbox", "Turn"]
