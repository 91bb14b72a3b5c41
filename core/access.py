"""Who is let in (contract section 4, "Allow rules"): a verdict on one message, from the rules and the paired chats."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from core.ids import ChannelId, UserId


@dataclass(frozen=True, slots=True)
class Visit:
    """Where a message was written, and by whom; what the platform does not say is None.

    ``parent`` is the channel that a thread belongs to: a rule for a Discord channel covers its threads.
    """

    channel: ChannelId
    parent: ChannelId | None = None
    guild: str | None = None
    user: UserId | None = None
    direct: bool = False
    business: bool = False


@dataclass(frozen=True, slots=True)
class AllowRules:
    """The rules of one platform. The first rule with ``!`` that matches excludes; then any match lets in."""

    excluding: frozenset[str] = frozenset()
    including: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str) -> "AllowRules":
        """Read ``DISCORD_ALLOW`` or ``TELEGRAM_ALLOW``. Raises `ValueError` naming the rule that is none."""
        excluding: set[str] = set()
        including: set[str] = set()
        for rule in (piece.strip() for piece in text.split(",")):
            if not rule:
                continue
            name = rule.removeprefix("!").strip()
            if not _is_rule(name):
                raise ValueError(
                    f"{rule[:40]!r} is no allow rule; wanted are a channel or chat id, guild:<id>, dm, business, "
                    "user:<id> or *, each with ! in front to exclude"
                )
            (excluding if rule.startswith("!") else including).add(name)
        return cls(frozenset(excluding), frozenset(including))

    def excludes(self, visit: Visit) -> bool:
        """Whether a rule keeps this out whatever else is said for it, pairing included."""
        return bool(self.excluding) and not self.excluding.isdisjoint({*_names(visit), visit.channel})

    def admit(self, visit: Visit) -> bool:
        """Whether a rule lets this in and none keeps it out."""
        return not self.excludes(visit) and not self.including.isdisjoint(_names(visit))

    def may_admit(self, place: Visit) -> bool:
        """Whether a rule lets in anybody at all in a place of which only the people are not known."""
        by_person = any(rule.startswith("user:") for rule in self.including)
        return self.admit(place) or (by_person and not self.excludes(place))


class Admission:
    """The rules of one platform, and the chats that an operator let in beside them. Answers from memory.

    ``paired`` says since when, in ms; whoever keeps it may change it. A pairing covers the threads of its channel, as a
    rule does, and never a business chat, which bears the number of somebody's direct chat. Excluding rules beat it.
    """

    def __init__(self, rules: AllowRules, paired: Mapping[ChannelId, int] | None = None) -> None:
        self.excludes = rules.excludes
        self._rules = rules
        self._admits = lru_cache(maxsize=4096)(rules.admit)  # nearly always the same people in the same places
        self._paired: Mapping[ChannelId, int] = {} if paired is None else paired

    @property
    def paired(self) -> list[ChannelId]:
        """The channels and chats that are paired now."""
        return list(self._paired)

    def admits(self, visit: Visit, *, said_at: int | None = None) -> bool:
        """Whether this is let in. ``said_at`` (ms) is for what was said before now: a pairing does not reach back."""
        return self._admits(visit) or (bool(self._paired) and self._covers(visit, said_at))

    def may_admit(self, place: Visit) -> bool:
        """Whether anybody at all is let in, in a place of which only the people are not known."""
        return self._rules.may_admit(place) or self._covers(place, None)

    def _covers(self, visit: Visit, said_at: int | None) -> bool:
        if visit.business or self.excludes(visit):
            return False
        places = (visit.channel,) if visit.parent is None else (visit.channel, visit.parent)
        since = [self._paired[place] for place in places if place in self._paired]
        return bool(since) and (said_at is None or said_at >= min(since))


def _names(visit: Visit) -> set[str]:
    """Every rule that this visit would match."""
    names = {"*", visit.channel}
    if visit.parent is not None:
        names.add(visit.parent)
    if visit.guild is not None:
        names.add(f"guild:{visit.guild}")
    if visit.user is not None:
        names.add(f"user:{visit.user}")
    if visit.business:
        # A business chat bears the number of that person's direct chat, which a bare id would let in unmeant.
        names = (names - {visit.channel}) | {"business"}
    elif visit.direct:
        names.add("dm")
    return names


def _is_rule(name: str) -> bool:
    kind, colon, number = name.partition(":")
    if colon:
        return kind in {"guild", "user"} and _is_id(number)
    return name in {"*", "dm", "business"} or _is_id(name)


def _is_id(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and len(digits) <= 20
