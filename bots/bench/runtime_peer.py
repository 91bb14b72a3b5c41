"""A runtime that takes so many entries a second, and notes when each came.

``python -m bots.bench.runtime_peer RATE``: its first line is the port; RATE 0 takes all that comes. A message says in
its text when it was due, on the clock that all processes share. ``report`` on standard input gives what came, ``open``
lifts the limit.
"""

import asyncio
import json
import sys
import time
from typing import Any

from aiohttp import web

from bots.bench.peer import say


class Runtime:
    """Takes entries one call after the other, as slowly as it was told."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._free_at = 0.0
        self._delays: dict[str, float] = {}
        self._again = 0
        self._disordered = 0
        self._newest: dict[str, int] = {}

    async def serve(self) -> int:
        """Listen. Returns the port."""
        app = web.Application(client_max_size=4 * 1024 * 1024)
        app.router.add_post("/deliver", self._deliver)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return int(self._runner.addresses[0][1])

    def report(self) -> dict[str, Any]:
        """How many came, how many came again, how many out of order, and the delays in seconds, shortest first."""
        delays = sorted(self._delays.values())
        return {"came": len(delays), "again": self._again, "disordered": self._disordered, "delays": delays}

    async def _deliver(self, request: web.Request) -> web.Response:
        body = await request.read()
        came = time.monotonic()
        call = json.loads(body)
        if self.rate:
            self._free_at = max(self._free_at, came) + len(call["entries"]) / self.rate
            await asyncio.sleep(self._free_at - came)
        for entry in call["entries"]:
            fact = entry["data"]["data"]
            if entry["id"] in self._delays:
                self._again += 1  # delivery is at least once; what counts is when it came first
                continue
            self._delays[entry["id"]] = came - float(fact["content"].split()[0])
            self._disordered += int(fact["messageId"]) <= self._newest.get(call["sessionId"], -1)
            self._newest[call["sessionId"]] = int(fact["messageId"])
        return web.Response(status=204)


async def main() -> None:
    runtime = Runtime(float(sys.argv[1]))
    say(await runtime.serve())
    while line := await asyncio.to_thread(sys.stdin.readline):
        if line.strip() == "open":
            runtime.rate = 0.0
        say(runtime.report() if line.strip() == "report" else {})


if __name__ == "__main__":
    asyncio.run(main())
