"""What comes back from controls, as sparse as Discord may send it."""

from typing import Any

import discord
import pytest

from bots.discord import prompts
from bots.discord.veil import Veil
from core.confirmations.life import Given
from core.ids import Control, TaskHash, discord_session
from tests.bots.discord.payloads import Library

TASK = TaskHash("7d0f2b34-9a51-4f8e-9c11-0c2f5e6a7b80")
VEIL = Veil(("cdn.discordapp.com",))


@pytest.fixture
def library() -> Library:
    return Library()


def interaction(library: Library, data: dict[str, Any], **members: Any) -> discord.Interaction:
    payload: dict[str, Any] = {
        "id": "1",
        "application_id": "2",
        "type": 3,
        "token": "abc",
        "channel_id": "900000000000000002",
        "user": {"id": "11", "username": "mona", "global_name": "Mona"},
        "data": data,
    }
    library.tell("INTERACTION_CREATE", payload | members)
    return library.heard.interactions[-1]


def pressed(library: Library, option: str, **members: Any) -> tuple[discord.Interaction, Control]:
    told = interaction(library, {"custom_id": str(Control(TASK, 0, option)), "component_type": 2}, **members)
    control = prompts.control_of(told)
    assert control is not None
    return told, control


async def test_the_place_is_the_channel_that_the_event_names_though_it_says_nothing_else(library: Library) -> None:
    told, control = pressed(library, "1")
    assert prompts.place_of(told) == discord_session("900000000000000002")
    assert prompts.given(told, control, VEIL) == Given(question=0, option=1)
    me = {"id": "2", "username": "ishiki", "discriminator": "0", "avatar": None}
    library.tell("READY", {"user": me, "application": {"id": "2", "flags": 0}, "guilds": [], "private_channels": []})
    for kind in (0, 2, 5, 11, 13, None):
        member = {"user": {"id": "11", "username": "mona"}}
        channel = None if kind is None else {"id": "5", "type": kind}
        odd, _ = pressed(library, "1", channel=channel, channel_id="78", guild_id="77", member=member)
        assert prompts.place_of(odd) == discord_session("78")


def test_a_person_is_known_by_number_and_nobody_else_is_one(library: Library) -> None:
    told, _ = pressed(library, "0")
    person = prompts.person_of(told, VEIL)
    assert person is not None
    assert (person.platform, person.id, person.name) == ("discord", "11", "Mona")
    robot, _ = pressed(library, "0", user={"id": "12", "username": "robot", "bot": True})
    assert prompts.person_of(robot, VEIL) is None
    nobody, _ = pressed(library, "0", user=None)
    assert prompts.person_of(nobody, VEIL) is None


def test_choices_of_a_menu_and_the_text_of_a_form_are_read_in_whatever_they_are_wrapped(library: Library) -> None:
    data = {"custom_id": str(Control(TASK, 2, "m")), "component_type": 3, "values": ["3", "x", "1"]}
    told = interaction(library, data)
    assert prompts.given(told, Control(TASK, 2, "m"), VEIL) == Given(question=2, options=(3, 1))
    field = {"type": 4, "custom_id": "answer", "value": "because"}
    for components in ([{"type": 1, "components": [field]}], [{"type": 18, "component": field}]):
        form = interaction(library, {"custom_id": str(Control(TASK, 0, "f")), "components": components}, type=5)
        assert prompts.given(form, Control(TASK, 0, "f"), VEIL) == Given(question=0, text="because")


def test_commands_and_foreign_buttons_are_no_controls(library: Library) -> None:
    assert prompts.control_of(interaction(library, {"id": "1", "name": "help"}, type=2)) is None
    assert prompts.control_of(interaction(library, {"custom_id": "ik1:short:0:0", "component_type": 2})) is None
