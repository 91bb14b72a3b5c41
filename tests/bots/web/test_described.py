"""The API keeps to its own description, whatever is sent: schemathesis asks it over real sockets.

``API_TRIAL_EXAMPLES`` is how many requests each operation gets from chance, beside those at the edges of its schema;
``API_TRIAL_PHASES`` is what is asked without the operator's right.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from bots.web.guard import Access
from bots.web.server import WebServer
from core.ids import SessionId, new_session
from tests.bots.web.api import Api, fill
from tests.bots.web.test_resources import a_stored_picture
from tests.builders import SESSION, a_confirmation, a_task
from tests.conftest import House
from tests.fakes import FakeRuntime

EXAMPLES = os.environ.get("API_TRIAL_EXAMPLES", "15")
PHASES = os.environ.get("API_TRIAL_PHASES", "fuzzing")
ACCESS = Access(token="the-operator", runtime_token="the-runtime", rate=0)
OPERATOR = {"Authorization": "Bearer the-operator"}
UNSAID = "positive_data_acceptance"
"""What is right may depend on more than a schema says: on two members together, on the session, on what is open."""


@pytest.mark.parametrize(
    ("token", "phases"),
    [("the-operator", "coverage,fuzzing"), ("the-runtime", PHASES), (None, PHASES)],
    ids=["operator", "runtime", "nobody"],
)
async def test_no_answer_is_undocumented_and_none_is_a_fault_of_ours(
    house: House, tmp_path: Path, token: str | None, phases: str
) -> None:
    api = Api(house, ACCESS, runtime=FakeRuntime())
    sessions = await inhabited(api)
    more = [SessionId((await api.post("/v1/session", {}, OPERATOR)).json()["session_id"]) for _ in range(3)]
    async with api.at_work():
        server = WebServer(api.app, "127.0.0.1", 0)
        await server.start()
        try:
            asked = await asyncio.create_subprocess_exec(
                *trial(tmp_path, server.address, token, phases, at_home(await described(api), sessions, more)),
                cwd=tmp_path,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            told, _ = await asked.communicate()
        finally:
            await server.stop()
    assert asked.returncode == 0, told.decode()


async def inhabited(api: Api) -> list[SessionId]:
    """A session of each kind, with something in the first: messages, a picture, what is open."""
    await a_stored_picture(api)
    await fill(api.house, 3)
    await api.desk.open(a_confirmation(a_task(1)))
    sessions = [SESSION, SessionId("tg--1002000000001"), *(new_session(kind) for kind in ("cli", "chat", "temp"))]
    for session in sessions:
        await api.house.sessions.create(session)
    return sessions


async def described(api: Api) -> Any:
    return (await api.get("/openapi.json", OPERATOR)).json()


def trial(folder: Path, address: str, token: str | None, phases: str, document: Any) -> list[str]:
    """The command."""
    (folder / "openapi.json").write_text(json.dumps(document))
    command = [sys.executable, "-m", "schemathesis.cli", "run", "openapi.json", "--url", address]
    shown = ["-H", f"Authorization: Bearer {token}"] if token else []
    chosen = ["--phases", phases, "-n", EXAMPLES, "--checks", "all", "--exclude-checks", UNSAID]
    return [*command, *shown, *chosen, "--no-color", "--seed", "1", "--warnings", "off", "--request-timeout", "15"]


def at_home(document: Any, sessions: list[SessionId], more: list[SessionId]) -> Any:
    """The description with what is there named in its paths, as chance would find none of it.

    A stream has no end, and so is asked for where there is none; only ``more`` of them are removed; and nobody waits
    for what nobody decides.
    """
    known = {"sid": sessions, "task_hash": [a_task(1), a_task(2)]}
    for path, calls in document["paths"].items():
        for method, call in calls.items():
            for parameter in call.get("parameters", ()):
                if parameter["name"] == "sid" and path.endswith("/stream"):
                    parameter["schema"]["enum"] = ["dc-77", "x"]
                elif parameter["name"] == "sid" and method == "delete":
                    parameter["schema"]["enum"] = [SESSION, *more]
                elif parameter["name"] in known:
                    parameter["schema"]["enum"] = known[parameter["name"]]
            call["parameters"] = [known for known in call.get("parameters", ()) if known["name"] != "wait"]
    return document
