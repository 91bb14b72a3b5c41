"""What Discord lets a member do, by examples of its documentation."""

from bots.doctor.permissions import EVERYTHING, Overwrite, Right, Role, missing, rights

GUILD, CREW, ME = "1", "2", "9"
SEE = int(Right.VIEW_CHANNEL)
SAY = int(Right.SEND_MESSAGES)


def granted(everybody: int, crew: int, *overwrites: Overwrite) -> int:
    """What holds for a member of the crew."""
    roles = [
        Role(id=GUILD, permissions=everybody),
        Role(id=CREW, permissions=crew),
        Role(id="3", permissions=EVERYTHING),
    ]
    return rights(GUILD, roles, [CREW], ME, overwrites)


def overwrite(whose: str, *, allow: int = 0, deny: int = 0) -> Overwrite:
    return Overwrite(id=whose, type=int(whose == ME), allow=allow, deny=deny)


def test_roles_add_up_and_those_of_others_do_not_count() -> None:
    assert granted(SEE, SAY) == SEE | SAY


def test_an_administrator_may_everything_whatever_a_channel_denies() -> None:
    assert granted(0, int(Right.ADMINISTRATOR), overwrite(ME, deny=SEE)) == EVERYTHING


def test_a_role_gives_back_what_everybody_is_denied() -> None:
    assert granted(SEE | SAY, 0, overwrite(CREW, allow=SAY), overwrite(GUILD, deny=SAY)) == SEE | SAY


def test_what_is_said_of_the_member_comes_last() -> None:
    assert granted(SEE | SAY, 0, overwrite(ME, deny=SAY), overwrite(CREW, allow=SAY)) == SEE


def test_among_roles_a_permission_beats_a_denial() -> None:
    roles = [Role(id=GUILD, permissions=SEE), Role(id=CREW, permissions=0), Role(id="3", permissions=0)]
    both = [overwrite("3", deny=SAY), overwrite(CREW, allow=SAY)]
    assert rights(GUILD, roles, [CREW, "3"], ME, both) == SEE | SAY


def test_who_cannot_see_a_channel_may_nothing_there() -> None:
    assert granted(SEE | SAY, 0, overwrite(GUILD, deny=SEE)) == 0


def test_what_is_missing_is_named_as_the_client_does() -> None:
    assert missing(SEE, [Right.VIEW_CHANNEL, Right.SEND_MESSAGES]) == ["Send Messages"]
