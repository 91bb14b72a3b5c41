"""Raw updates: named, placed, blanked, and completed where the library wants more than a server sends."""

import telegram

from bots.telegram.updates import blanked, completed, kind_of, number_of, place_of

POLL = {
    "id": "9",
    "question": "When?",
    "options": [{"text": "Fri", "voter_count": 0}],
    "total_voter_count": 0,
    "is_closed": False,
    "is_anonymous": True,
    "type": "regular",
    "allows_multiple_answers": False,
}
MESSAGE = {"message_id": 5, "date": 1, "chat": {"id": 7, "type": "private"}, "poll": POLL}
UPDATE = {"update_id": 1, "message": MESSAGE | {"reply_to_message": MESSAGE}}


def test_a_poll_of_an_older_server_is_read_wherever_it_stands() -> None:
    update = telegram.Update.de_json(completed(UPDATE), None)  # pyright: ignore[reportArgumentType] - JSON in, JSON out
    assert update.message is not None
    assert update.message.poll is not None
    assert [option.text for option in update.message.poll.options] == ["Fri"]
    assert update.message.reply_to_message is not None
    assert update.message.reply_to_message.poll is not None


def test_completing_leaves_everything_else_as_it_is() -> None:
    odd: list[object] = [1, None, {"poll": "none", "options": []}, {"poll": {"options": 5, "allows_revoting": True}}]
    assert completed(odd) == [
        1,
        None,
        {"poll": "none", "options": []},
        {"poll": {"allows_revoting": True, "members_only": False, "options": []}},
    ]


def test_what_is_no_update_has_a_kind_that_can_be_counted() -> None:
    odd: list[object] = [None, 5, [], {}, {"update_id": "x"}, {"\u202e": {}}]
    for raw in odd:
        assert kind_of(raw) == "no update"
        assert number_of(raw) is None
        assert place_of(raw) is None
    assert kind_of({"update_id": 1, "brand_new_kind": {}}) == "brand_new_kind"


def test_tokens_and_query_strings_are_blanked() -> None:
    token = "123456:AAexample-token-of-nobody-at-all"
    raw = {"message": {"text": f"{token} https://files.example/a?sig=1 123456789:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc"}}
    text = blanked(raw, token)
    assert "example-token" not in text
    assert "sig=1" not in text
    assert "QXMENQ" not in text
    assert "files.example/a" in text
