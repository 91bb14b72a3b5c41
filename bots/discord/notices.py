"""What Discord itself says in a channel, in neutral English (API reference, Message Types).

Not the library's ``system_content``, which greets newcomers at random and trips over payloads that lack a member.
"""

from collections.abc import Mapping
from typing import Final

import discord

PLAIN_TYPES: Final = frozenset(
    {
        discord.MessageType.default,
        discord.MessageType.reply,
        discord.MessageType.chat_input_command,
        discord.MessageType.context_menu_command,
    }
)
"""Messages that somebody wrote; all others are notices."""

# {who} is the author, {whom} whoever is mentioned, {text} the content, {months} and {tier} of a subscription.
_WORDS: Final[Mapping[discord.MessageType, str]] = {
    discord.MessageType.recipient_add: "{who} added {whom}.",
    discord.MessageType.recipient_remove: "{who} removed {whom}.",
    discord.MessageType.call: "{who} started a call.",
    discord.MessageType.channel_name_change: "{who} changed the channel's name to {text}.",
    discord.MessageType.channel_icon_change: "{who} changed the channel's icon.",
    discord.MessageType.pins_add: "{who} pinned a message to this channel.",
    discord.MessageType.new_member: "{who} joined the server.",
    discord.MessageType.premium_guild_subscription: "{who} boosted the server.",
    discord.MessageType.premium_guild_tier_1: "{who} boosted the server, which has reached level 1.",
    discord.MessageType.premium_guild_tier_2: "{who} boosted the server, which has reached level 2.",
    discord.MessageType.premium_guild_tier_3: "{who} boosted the server, which has reached level 3.",
    discord.MessageType.channel_follow_add: "{who} made this channel follow {text}.",
    discord.MessageType.guild_stream: "{who} started streaming.",
    discord.MessageType.guild_discovery_disqualified: "The server was removed from Server Discovery.",
    discord.MessageType.guild_discovery_requalified: "The server is in Server Discovery again.",
    discord.MessageType.guild_discovery_grace_period_initial_warning: (
        "The server has not met the requirements of Server Discovery for a week."
    ),
    discord.MessageType.guild_discovery_grace_period_final_warning: (
        "The server has not met the requirements of Server Discovery for three weeks."
    ),
    discord.MessageType.thread_created: "{who} started a thread: {text}",
    discord.MessageType.guild_invite_reminder: "Discord suggests inviting more people to the server.",
    discord.MessageType.auto_moderation_action: "AutoMod acted on a message of {who}.",
    discord.MessageType.role_subscription_purchase: "{who} subscribed to a role.",
    discord.MessageType.interaction_premium_upsell: "{who} was offered a subscription of an app.",
    discord.MessageType.stage_start: "{who} started the stage {text}.",
    discord.MessageType.stage_end: "{who} ended the stage {text}.",
    discord.MessageType.stage_speaker: "{who} is now a speaker.",
    discord.MessageType.stage_raise_hand: "{who} asked to speak.",
    discord.MessageType.stage_topic: "{who} changed the stage's topic to {text}.",
    discord.MessageType.guild_application_premium_subscription: "{who} subscribed to an app for the server.",
    discord.MessageType.guild_incident_alert_mode_enabled: "{who} enabled security actions until {text}.",
    discord.MessageType.guild_incident_alert_mode_disabled: "{who} disabled security actions.",
    discord.MessageType.guild_incident_report_raid: "{who} reported a raid.",
    discord.MessageType.guild_incident_report_false_alarm: "{who} reported a false alarm.",
    discord.MessageType.purchase_notification: "{who} bought something in the server's shop.",
    discord.MessageType.poll_result: "{who}'s poll has closed: {poll}",
    discord.MessageType.emoji_added: "{who} added the emoji {text}.",
}


def notice(message: discord.Message, *, who: str) -> str:
    """What a message that nobody wrote says; empty for one that somebody wrote. Names in it mention nobody."""
    if message.type in PLAIN_TYPES or message.type is discord.MessageType.thread_starter_message:
        return ""
    text = message.content.strip()
    words = _WORDS.get(message.type)
    if words is None:
        number = message.type.value
        return text or f"[a message of type {number}, which this version does not know, from {who}]"
    whom = ", ".join(user.display_name for user in getattr(message, "mentions", ())) or "somebody"
    return words.format(who=who, whom=whom, text=text or "something", poll=_poll_result(message)).strip()


def _poll_result(message: discord.Message) -> str:
    """The question and the winner, which stand in the fields of an embed (API reference, Poll Results)."""
    fields = {field.name: field.value for embed in message.embeds for field in embed.fields}
    winner = fields.get("victor_answer_text")
    return f"{fields.get('poll_question_text') or 'it'}" + (f" ({winner} won)" if winner else "")
