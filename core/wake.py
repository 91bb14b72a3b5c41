"""Shall the runtime be woken by this entry? (log-format 14.1.) Pure: what was written, and the settings."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

from core.content import mentions, plain_text
from core.entries import AnyEntry, CustomMessage, MessageCreated, UserMessage

Rule = Literal["direct", "mention", "reply", "keyword", "always"]

BACKLOG_MS: Final = 10 * 60 * 1000
"""What was older than this when it was recorded is not answered as if it were fresh."""
ALBUM_QUIET_MS: Final = 1500
"""An album is judged when no part came for this long."""


@dataclass(frozen=True, slots=True)
class WakeRules:
    """What wakes. An empty set of rules wakes nobody (``never``)."""

    rules: frozenset[Rule]
    keywords: tuple[str, ...] = ()

    @classmethod
    def parse(cls, rules: str, keywords: str = "") -> "WakeRules":
        """Read ``ISHIKI_WAKE`` and ``ISHIKI_KEYWORDS``. Raises `ValueError` naming the word that is no rule."""
        named = [word.strip() for word in rules.split(",") if word.strip()]
        known: dict[str, Rule] = {rule: rule for rule in get_args(Rule)}
        unknown = [word for word in named if word not in known and word != "never"]
        if unknown or not named or ("never" in named and len(named) > 1):
            given = f"{unknown[0][:40]!r} is no wake rule" if unknown else "that names no rule, or never beside others"
            raise ValueError(f"{given}; wanted are any of {', '.join(known)}, or never alone")
        words = tuple(word.strip().casefold() for word in keywords.split(",") if word.strip())
        return cls(frozenset(known[word] for word in named if word in known), words)


def rule_met(entry: AnyEntry, rules: WakeRules) -> Rule | None:
    """The rule by which this entry, taken by itself, would wake; None where it wakes nobody."""
    match entry.data:
        case UserMessage():
            return "direct"
        case CustomMessage(data=MessageCreated() as message):
            if message.edited is not None or message.via is not None:
                return None
            if entry.timestamp - message.timestamp > BACKLOG_MS:
                return None
            return _rule_of(message, rules)
        case _:
            return None


def _rule_of(message: MessageCreated, rules: WakeRules) -> Rule | None:
    wanted = rules.rules
    if "direct" in wanted and message.is_direct:
        return "direct"
    if "mention" in wanted and message.self_id in mentions(message.content):
        return "mention"
    if "reply" in wanted and message.quote and message.quote.user and message.quote.user.id == message.self_id:
        return "reply"
    if "keyword" in wanted and rules.keywords:
        text = plain_text(message.content).casefold()
        if any(word in text for word in rules.keywords):
            return "keyword"
    return "always" if "always" in wanted else None
