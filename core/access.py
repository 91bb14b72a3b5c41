"""Who is let in (contract section 4, "Allow rules"). Pure: a verdict on one message from the rules alone."""

from dataclasses import dataclass

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
