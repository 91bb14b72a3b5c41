"""What the settings say together."""

from collections.abc import Collection

from bots.doctor.verdict import Verdict, ok, warn
from core.access import AllowRules


def look_at_settings(rules: dict[str, AllowRules], paired: Collection[str]) -> Verdict:
    """Whether there is somebody to hear. ``rules`` are those of the platforms that have a token."""
    if not rules:
        return warn("neither DISCORD_TOKEN nor TELEGRAM_TOKEN is set, so there is nobody to hear", "set one in .env")
    shut = [name for name, allow in rules.items() if not allow.including]
    if shut and not paired:
        keys = " and ".join(f"{name.upper()}_ALLOW" for name in shut)
        cure = f"say who may use the bot with {keys}, or let in with `ishiki pair` who asks"
        return warn(f"nobody is let in by {keys}, so nothing is recorded there", cure)
    return ok(f"settings are of use; on: {', '.join(rules)}")
