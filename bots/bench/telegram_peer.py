"""A Telegram whose answers to `getUpdates` are written before they are asked for.

``python -m bots.bench.telegram_peer UPDATES BLASTS``: its first line is the port. ``TOKEN`` on standard input lets the
next blast go, in answers of 100 updates, to whoever asks with that token. As the real one it tells updates again until
they are confirmed by the ``offset`` of a later call.
"""

import asyncio
import json
import sys
from collections import defaultdict, deque
from typing import NamedTuple

from aiohttp import web

from bots.bench.peer import say
from bots.bench.said import Json, telegram_update

TOGETHER = 100
"""Updates in one answer: the most that Telegram gives."""
ME = {"id": 7_000_000_001, "is_bot": True, "first_name": "Ishiki", "username": "ishiki_bot", "can_join_groups": True}


class Ready(NamedTuple):
    """An answer, and the number of its last update."""

    last: int
    answer: bytes


class Telegram:
    """One queue of answers for each token."""

    def __init__(self, updates: int, blasts: int) -> None:
        self._blasts: list[list[Ready]] = []
        for blast in range(blasts):
            starts = range(blast * updates, (blast + 1) * updates, TOGETHER)
            batches = ([telegram_update(first + each) for each in range(TOGETHER)] for first in starts)
            self._blasts.append([_ready(batch) for batch in batches])
        self._sent: defaultdict[str, int] = defaultdict(int)
        self._waiting: defaultdict[str, deque[Ready]] = defaultdict(deque)
        self._more = asyncio.Condition()

    async def serve(self) -> int:
        """Listen. Returns the port."""
        app = web.Application()
        app.router.add_post("/bot{token}/getMe", self._me)
        app.router.add_post("/bot{token}/getUpdates", self._updates)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return int(self._runner.addresses[0][1])

    async def blast(self, token: str) -> None:
        async with self._more:
            self._waiting[token].extend(self._blasts[self._sent[token]])
            self._sent[token] += 1
            self._more.notify_all()

    async def _me(self, _request: web.Request) -> web.Response:
        return web.Response(body=_answer(ME), content_type="application/json")

    async def _updates(self, request: web.Request) -> web.Response:
        waiting = self._waiting[request.match_info["token"]]
        asked = await request.post()
        offset, seconds = int(str(asked.get("offset", 0))), float(str(asked.get("timeout", 0)))
        while waiting and waiting[0].last < offset:
            waiting.popleft()
        try:
            async with asyncio.timeout(seconds), self._more:
                await self._more.wait_for(lambda: waiting)
        except TimeoutError:
            return web.Response(body=_answer([]), content_type="application/json")
        return web.Response(body=waiting[0].answer, content_type="application/json")


def _ready(updates: list[Json]) -> Ready:
    return Ready(updates[-1]["update_id"], _answer(updates))


def _answer(result: object) -> bytes:
    return json.dumps({"ok": True, "result": result}, ensure_ascii=False, separators=(",", ":")).encode()


async def main() -> None:
    telegram = Telegram(int(sys.argv[1]), int(sys.argv[2]))
    say(await telegram.serve())
    while line := await asyncio.to_thread(sys.stdin.readline):
        await telegram.blast(line.strip())


if __name__ == "__main__":
    asyncio.run(main())
