"""The documented JSON of each object: pure functions from state to payload.

Shapes follow the API reference for v10 (User, Guild, Channel, Message, Poll, Application). Optional keys that do not
apply are absent, never null, unless the reference says "nullable".
"""

from datetime import datetime

from bots.sandbox.discord.model import (
    EVERY_PERMISSION,
    Channel,
    ChannelType,
    Guild,
    Intent,
    JsonObject,
    Role,
    Sticker,
    User,
    moment_of,
)


def iso(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds")


def user(account: User) -> JsonObject:
    payload: JsonObject = {
        "id": account.id,
        "username": account.username,
        "discriminator": account.discriminator,
        "global_name": account.global_name,
        "avatar": None,
        "avatar_decoration_data": None,
        "collectibles": None,
        "display_name_styles": None,
        "primary_guild": None,
        "clan": None,
        "public_flags": 0,
    }
    if account.bot:
        payload["bot"] = True
    return payload


def own_user(account: User) -> JsonObject:
    """The bot about itself: `GET /users/@me` and READY."""
    return user(account) | {
        "bio": "",
        "flags": 0,
        "banner": None,
        "accent_color": None,
        "verified": True,
        "mfa_enabled": False,
        "locale": "en-US",
        "premium_type": 0,
        "email": None,
    }


def role(item: Role, position: int) -> JsonObject:
    payload: JsonObject = {
        "id": item.id,
        "name": item.name,
        "description": None,
        "permissions": str(item.permissions),
        "position": position,
        "color": 0,
        "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
        "hoist": False,
        "managed": item.bot_id is not None,
        "mentionable": item.mentionable,
        "icon": None,
        "unicode_emoji": None,
        "flags": 0,
    }
    if item.bot_id is not None:
        payload["tags"] = {"bot_id": item.bot_id}
    return payload


def partial_member(guild: Guild, account: User) -> JsonObject:
    """A member without its user, as messages carry it."""
    return {
        "nick": None,
        "avatar": None,
        "banner": None,
        "roles": list(guild.member_roles.get(account.id, [])),
        "joined_at": iso(moment_of(guild.id)),
        "premium_since": None,
        "communication_disabled_until": None,
        "deaf": False,
        "mute": False,
        "pending": False,
        "flags": 0,
    }


def member(guild: Guild, account: User) -> JsonObject:
    return partial_member(guild, account) | {"user": user(account)}


def channel(place: Channel, bot: User) -> JsonObject:
    """A channel of any type, from where the bot stands."""
    if place.is_thread:
        return _thread(place, bot)
    payload: JsonObject = {
        "id": place.id,
        "type": int(place.type),
        "flags": 0,
        "last_message_id": place.last_message_id,
    }
    if place.last_pin is not None:
        payload["last_pin_timestamp"] = iso(place.last_pin)
    if place.type is ChannelType.DM:
        return payload | {"recipients": [user(account) for account in place.recipients]}
    assert place.guild is not None
    overwrites = [{"id": bot.id, "type": 1, "allow": "0", "deny": str(int(place.denied))}] if place.denied else []
    return payload | {
        "guild_id": place.guild.id,
        "name": place.name,
        "position": list(place.guild.channels).index(place.id),
        "permission_overwrites": overwrites,
        "parent_id": None,
        "topic": None,
        "nsfw": False,
        "rate_limit_per_user": 0,
    }


def _thread(place: Channel, bot: User) -> JsonObject:
    assert place.guild is not None
    assert place.parent is not None
    assert place.owner is not None
    payload: JsonObject = {
        "id": place.id,
        "type": int(place.type),
        "guild_id": place.guild.id,
        "parent_id": place.parent.id,
        "owner_id": place.owner.id,
        "name": place.name,
        "flags": 0,
        "last_message_id": place.last_message_id,
        "rate_limit_per_user": 0,
        "message_count": len(place.messages),
        "total_message_sent": len(place.messages),
        "member_count": len(place.thread_members),
        "thread_metadata": {
            "archived": place.archived,
            "archive_timestamp": iso(place.archived_at or moment_of(place.id)),
            "auto_archive_duration": 4320,
            "locked": False,
            "create_timestamp": iso(moment_of(place.id)),
        },
    }
    if bot in place.thread_members:
        payload["member"] = thread_member(place, bot)
    return payload


def thread_member(place: Channel, account: User) -> JsonObject:
    return {"id": place.id, "user_id": account.id, "join_timestamp": iso(moment_of(place.id)), "flags": 1}


def guild(place: Guild) -> JsonObject:
    """A guild as `GET /guilds/{id}` answers it."""
    system = next(iter(place.channels), None)
    return {
        "id": place.id,
        "name": place.name,
        "icon": None,
        "icon_hash": None,
        "splash": None,
        "discovery_splash": None,
        "owner_id": place.owner_id,
        "afk_channel_id": None,
        "afk_timeout": 300,
        "widget_enabled": False,
        "widget_channel_id": None,
        "verification_level": 0,
        "default_message_notifications": 0,
        "explicit_content_filter": 0,
        "roles": [role(item, position) for position, item in enumerate(place.roles.values())],
        "emojis": [],
        "features": [],
        "mfa_level": 0,
        "application_id": None,
        "system_channel_id": system,
        "system_channel_flags": 0,
        "rules_channel_id": None,
        "max_presences": None,
        "max_members": 500_000,
        "max_video_channel_users": 25,
        "max_stage_video_channel_users": 50,
        "vanity_url_code": None,
        "description": None,
        "banner": None,
        "premium_tier": 0,
        "premium_subscription_count": 0,
        "premium_progress_bar_enabled": False,
        "preferred_locale": "en-US",
        "public_updates_channel_id": None,
        "safety_alerts_channel_id": None,
        "nsfw_level": 0,
        "stickers": [guild_sticker(item) for item in place.stickers.values()],
        "incidents_data": None,
    }


def gateway_guild(place: Guild, bot: User, *, with_members: bool) -> JsonObject:
    """A guild as GUILD_CREATE brings it. Without the presence intent the only member shown is the bot."""
    shown = list(place.members.values()) if with_members else [bot]
    threads = [thread for thread in place.threads.values() if not thread.archived]
    return guild(place) | {
        "joined_at": iso(moment_of(place.id)),
        "large": False,
        "unavailable": False,
        "member_count": len(place.members),
        "voice_states": [],
        "members": [member(place, account) for account in shown],
        "channels": [channel(item, bot) for item in place.channels.values()],
        "threads": [channel(item, bot) for item in threads],
        "presences": [],
        "stage_instances": [],
        "guild_scheduled_events": [],
        "soundboard_sounds": [],
    }


def own_guild(place: Guild) -> JsonObject:
    """An entry of `GET /users/@me/guilds`."""
    return {
        "id": place.id,
        "name": place.name,
        "icon": None,
        "banner": None,
        "owner": False,
        "permissions": str(EVERY_PERMISSION),
        "features": [],
        "approximate_member_count": len(place.members),
        "approximate_presence_count": len(place.members),
    }


def partial_emoji(text: str) -> JsonObject:
    """A character, or `name:id` for a custom emoji."""
    name, _, custom_id = text.partition(":")
    return {"id": custom_id or None, "name": name}


def sticker_item(item: Sticker) -> JsonObject:
    return {"id": item.id, "name": item.name, "format_type": item.format_type}


def guild_sticker(item: Sticker) -> JsonObject:
    return sticker_item(item) | {
        "description": None,
        "tags": "wave",
        "type": 2,
        "available": True,
        "guild_id": item.guild_id,
    }


def application(bot: User, owner: User, granted: Intent, guilds: int) -> JsonObject:
    """The bot's application. `flags` tell which privileged intents are switched on."""
    return {
        "id": bot.id,
        "name": bot.username,
        "icon": None,
        "description": "",
        "type": None,
        "summary": "",
        "bot": user(bot),
        "bot_public": True,
        "bot_require_code_grant": False,
        "owner": user(owner),
        "team": None,
        "verify_key": "0" * 64,
        "flags": application_flags(granted),
        "rpc_origins": [],
        "redirect_uris": [],
        "interactions_endpoint_url": None,
        "approximate_guild_count": guilds,
        "approximate_user_install_count": 0,
        "approximate_user_authorization_count": 0,
        "integration_types_config": {"0": {}},
        "event_webhooks_status": 1,
    }


def application_flags(granted: Intent) -> int:
    """Application flags of a bot in fewer than 100 servers (the "limited" ones)."""
    limited = {Intent.GUILD_PRESENCES: 1 << 13, Intent.GUILD_MEMBERS: 1 << 15, Intent.MESSAGE_CONTENT: 1 << 19}
    return sum(flag for intent, flag in limited.items() if intent in granted)


def permissions(place: Channel) -> str:
    """What the bot may do in a channel, as interactions and partial channels tell it."""
    return str(EVERY_PERMISSION & ~int((place.parent or place).denied | place.denied))
