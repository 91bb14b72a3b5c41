"""Payloads that lack what the library demands, completed before it parses."""

import json
from typing import Any

import pytest

from bots.discord.payloads import completed

USER = {"id": "11", "username": "mona", "discriminator": "0", "avatar": None}


def message(**members: Any) -> dict[str, Any]:
    return {"id": "1", "channel_id": "2", "timestamp": "2026-11-01T00:00:00+00:00", "author": USER} | members


@pytest.mark.parametrize("author", [None, {}, {"username": "x"}, {"id": "x"}, [], "mona"])
def test_an_author_without_a_number_is_none(author: Any) -> None:
    found = completed("MESSAGE_CREATE", message(author=author, member={"roles": []}))
    assert "author" not in found
    assert "member" not in found


def test_an_author_with_a_number_is_kept_and_completed() -> None:
    found = completed("MESSAGE_CREATE", message(author={"id": "11", "global_name": "Mona"}, member={"roles": []}))
    assert found["author"] == {"id": "11", "username": "", "discriminator": "0", "avatar": None, "global_name": "Mona"}
    assert "member" in found


def test_a_poll_of_emoji_that_never_ends_is_completed_wherever_it_stands() -> None:
    poll: dict[str, Any] = {
        "question": {},
        "answers": [{"answer_id": 1, "poll_media": {"emoji": {"name": "🍵"}}}],
        "expiry": None,
    }
    found = completed("MESSAGE_CREATE", message(poll=poll, referenced_message=message(poll=poll)))
    for where in (found, found["referenced_message"]):
        assert where["poll"]["question"] == {"text": ""}
        assert where["poll"]["answers"][0]["poll_media"] == {"text": "", "emoji": {"name": "🍵"}}
        assert where["poll"]["expiry"] == "2026-11-01T00:00:00+00:00"


def test_null_threads_and_bare_attachments_are_completed() -> None:
    found = completed("MESSAGE_UPDATE", message(thread=None, attachments=[{"id": "5", "url": "u"}, 5]))
    assert "thread" not in found
    assert found["attachments"] == [{"id": "5", "url": "u", "filename": "file", "size": 0, "proxy_url": "u"}, 5]


def test_a_bulk_deletion_keeps_the_numbers_it_has() -> None:
    assert completed("MESSAGE_DELETE_BULK", {"ids": ["1", None, "x", "2"]}) == {"ids": ["1", "2"]}


def test_what_is_complete_or_unknown_stays_as_it_is() -> None:
    whole = message(mentions=[USER], attachments=[])
    before = json.dumps(whole, sort_keys=True)
    assert completed("MESSAGE_CREATE", whole) == whole
    assert json.dumps(whole, sort_keys=True) == before
    odds: list[Any] = [None, [], "x", {"a": 1}]
    for odd in odds:
        assert completed("GUILD_CREATE", odd) == odd
    assert completed("MESSAGE_CREATE", None) is None
