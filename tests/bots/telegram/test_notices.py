"""One look tells whether a message is a notice at all."""

import inspect
import re
from datetime import UTC, datetime
from typing import Any

import telegram

from bots.telegram import notices


def message(**members: Any) -> telegram.Message:
    return telegram.Message(1, datetime(2026, 11, 1, tzinfo=UTC), telegram.Chat(7, "private"), **members)


def test_what_somebody_wrote_is_no_notice() -> None:
    assert not notices.is_notice(message(text="it is loud", from_user=telegram.User(1, "Mona", is_bot=False)))


def test_no_member_that_makes_a_notice_is_overlooked() -> None:
    members = set(re.findall(r"\bmessage\.([a-z_]+)", inspect.getsource(notices))) - {"from_user"}
    assert members > {"new_chat_members", "successful_payment", "checklist_tasks_done", "video_chat_scheduled"}
    assert [member for member in members if not notices.is_notice(message(**{member: ["told"]}))] == []
