"""Each message once, as it is now, in the place of its first line."""

from bots.terminal.conversation import items
from core.entries import AnyEntry, MessageDeleted
from core.ids import MessageId, UserId
from core.sessions.facts import Fact, Retracted, Said
from core.sessions.state import Draft, SessionState
from tests.builders import BOT, CHANNEL, a_message, a_picture, retracted, said

NOW = 1_793_600_000_000


def lines(*facts: Fact) -> list[AnyEntry]:
    """What a session writes for these facts."""
    draft = Draft(SessionState())
    return [entry for number, fact in enumerate(facts) for entry in draft.take(fact, now=NOW + number).entries]


def shown(entries: list[AnyEntry]) -> list[str]:
    return [f"{item.who}: {item.what}" for item in items(entries)]


def test_an_edit_takes_the_place_of_what_it_edits() -> None:
    found = items(lines(said(1, "first"), said(2, "second"), said(1, "better", edited_at=NOW + 50)))
    assert [item.what for item in found] == ["better", "second"]
    assert found[0].at == NOW
    assert "edited" in found[0].who


def test_the_files_of_a_message_stand_with_it_and_an_edit_brings_its_own() -> None:
    with_a_picture = Said(a_message(1, "look"), media=(a_picture(1),))
    assert shown(lines(with_a_picture, said(2, "nice"))) == ["Mona: look\n📎 cat.png (image/*)", "Mona: nice"]
    edited = Said(a_message(1, "gone"), edited_at=NOW + 5)
    assert [item.what for item in items(lines(with_a_picture, edited))] == ["gone"]


def test_a_retraction_leaves_who_and_when_and_nothing_of_what_was_said() -> None:
    by_an_operator = Retracted(
        MessageDeleted(
            platform="discord", self_id=BOT, channel_id=CHANNEL, message_id=MessageId("1"), timestamp=NOW,
            operator_id=UserId("77"), inferred=True,
        )
    )  # fmt: skip
    entries = lines(Said(a_message(1, "secret"), media=(a_picture(1),)), said(2, "what?"), by_an_operator)
    found = shown(entries)
    assert len(found) == 2
    assert found[0].startswith("Mona: ✗ retracted")
    assert "by 77, found out by comparing" in found[0]
    assert "secret" not in "".join(found)
    assert "cat.png" not in "".join(found)
    late = [*entries, *lines(said(1, "secret again"))]  # a line that should not be there, as from a repaired log
    assert "secret" not in "".join(shown(late))


def test_what_belongs_to_a_message_further_up_stands_by_itself() -> None:
    entries = lines(said(1, "up there"), said(2, "here"), said(1, "edited", edited_at=NOW + 9), retracted(1))
    assert [item.what for item in items(entries[1:3])] == ["here", "edited"]
    assert [item.style for item in items(entries[1:])][1:] == ["dim red"]
    assert "retracted" in items(entries[3:])[0].what


def test_what_people_write_cannot_move_the_terminal() -> None:
    found = items(lines(said(1, "a\x1b[31mb\u202ec [bold]x[/bold]")))[0]
    assert found.what == "a[31mbc [bold]x[/bold]"
