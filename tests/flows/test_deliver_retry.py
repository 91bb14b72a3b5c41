"""``ishiki deliver retry`` against the whole program: what a runtime refused reaches it in the end."""

import json
from pathlib import Path

from bots.sandbox.discord import DiscordSandbox
from bots.sandbox.runtime import RuntimeSandbox
from bots.sandbox.telegram import TelegramSandbox
from core.ids import telegram_session
from tests.conftest import Until
from tests.flows.operators import Operator


async def test_what_a_runtime_refused_is_shown_and_taken_up_again(
    tmp_path: Path, discord: DiscordSandbox, telegram: TelegramSandbox, until: Until
):
    operator, anna = Operator(tmp_path, discord, telegram), telegram.user("Anna")
    there = telegram_session(anna.id)

    async def parked() -> int:
        return json.loads((await operator.ishiki("sessions", "--json"))[1])["parked"]

    async with RuntimeSandbox() as runtime:
        async with operator.running(
            ISHIKI_RUNTIME_URL=runtime.url, ISHIKI_RUNTIME_TOKEN=runtime.token, ISHIKI_WAKE="never"
        ):
            runtime.fail("/deliver", 422)
            await anna.say(anna.private_chat, "one")
            await until(lambda: [call.status for call in runtime.calls] == [422])
            await anna.say(anna.private_chat, "two")
            await until(lambda: runtime.texts(there) == ["two"])
            assert await parked() == 1
            runtime.fail("/deliver", 422)
            code, output, _ = await operator.ishiki("deliver", "retry", there, "--json")
            assert (code, json.loads(output)) == (1, {"taken": 0, "refused": 1, "left": 0, "problem": ""})
            assert await parked() == 1
            code, output, errors = await operator.ishiki("deliver", "retry")
            assert (code, output, errors) == (0, "1 taken, 0 refused again, 0 left\n", "")
            assert runtime.texts(there) == ["two", "one"]
            assert await parked() == 0
        code, _, errors = await operator.ishiki("deliver", "retry", "nonsense")
        assert (code, errors.count("\n")) == (2, 1)
