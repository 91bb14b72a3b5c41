"""What people write in chats, as the platforms tell it: plain and marked text, mentions, emoji, replies, files."""

from typing import Any, Final

Json = dict[str, Any]

CHANNELS: Final = 20
PEOPLE: Final = 50
BOT: Final = 900_000_000_000_000_009
GUILD: Final = 900_000_000_000_000_001
_FIRST_CHANNEL: Final = 910_000_000_000_000_000
_FIRST_PERSON: Final = 920_000_000_000_000_000
_FIRST_MESSAGE: Final = 1_400_000_000_000_000_000
_NAMES: Final = ("Mona", "Jiro", "阿岚", "Søren", "Amélie", "Иван", "小林", "Noor")

TEXTS: Final = (
    "the kettle is in the left cupboard",
    "ok",
    "has anybody seen the projector cable? I put it on the shelf behind the screen on Tuesday and now it is gone",
    "<@{someone}> are you coming on **Friday** or on ~~Thursday~~ *Saturday*?",
    "今晚八点在老地方见，记得带上投影仪的遥控器！",
    "lol 😂😂",
    "look: `ffmpeg -i in.mkv -c copy out.mp4`\n```python\nfor reel in reels:\n    print(reel.title)\n```\nthat did it",
    "1. tickets\n2. popcorn\n3. the *long* way home\n\n> quoted from the list\nand that is all & nothing < more >",
    "https://example.org/films/1968/playtime?lang=fr is the page, see <#{channel}>",
    "<:reel:930000000000000001> nice one <@{someone}>, thank you ❤️",
    "No. I mean it: no, not again, and certainly not in the small hall, where nobody hears a word. ||It is haunted.||",
    "ничего страшного, посмотрим в следующий раз",
)


def _person(number: int) -> Json:
    name = _NAMES[number % len(_NAMES)]
    return {
        "id": str(_FIRST_PERSON + number),
        "username": f"person{number}",
        "global_name": f"{name} {number}",
        "discriminator": "0",
        "avatar": "a" * 32,
        "public_flags": 0,
        "avatar_decoration_data": None,
        "clan": None,
    }


def _member(number: int) -> Json:
    return {
        "roles": [],
        "nick": None if number % 3 else f"nick {number}",
        "joined_at": "2024-01-01T00:00:00.000000+00:00",
        "premium_since": None,
        "communication_disabled_until": None,
        "avatar": None,
        "deaf": False,
        "mute": False,
        "pending": False,
        "flags": 0,
    }


def discord_channel(number: int) -> Json:
    return {
        "id": str(_FIRST_CHANNEL + number % CHANNELS),
        "type": 0,
        "guild_id": str(GUILD),
        "name": f"channel-{number}",
        "position": number,
        "permission_overwrites": [],
        "nsfw": False,
        "parent_id": None,
        "topic": None,
        "rate_limit_per_user": 0,
    }


def discord_guild() -> Json:
    """GUILD_CREATE."""
    everyone = {"id": str(GUILD), "name": "@everyone", "permissions": str(0x400 | 0x800 | 0x10000), "position": 0}
    everyone |= {"color": 0, "hoist": False, "managed": False, "mentionable": False}
    return {
        "id": str(GUILD),
        "name": "Film club",
        "owner_id": str(_FIRST_PERSON),
        "roles": [everyone],
        "channels": [discord_channel(number) for number in range(CHANNELS)],
        "threads": [],
        "members": [{"user": discord_bot(), **_member(1)}],
        "emojis": [],
        "features": [],
        "unavailable": False,
        "member_count": PEOPLE,
        "verification_level": 0,
        "default_message_notifications": 0,
        "explicit_content_filter": 0,
        "mfa_level": 0,
        "nsfw_level": 0,
        "premium_tier": 0,
        "preferred_locale": "en-US",
        "system_channel_flags": 0,
    }


def discord_bot() -> Json:
    return {"id": str(BOT), "username": "Ishiki", "discriminator": "0", "avatar": None, "bot": True, "flags": 0}


def lines_of(messages: int) -> int:
    """How many lines a log has of the first so many messages."""
    return messages + (messages + 19) // 20


def text_of(number: int) -> str:
    text = TEXTS[number % len(TEXTS)]
    return (
        text.format(someone=_FIRST_PERSON + (number * 7) % PEOPLE, channel=_FIRST_CHANNEL + (number * 3) % CHANNELS)
        if "{" in text and "}" in text and "```" not in text
        else text
    )


def discord_message(number: int) -> Json:
    """MESSAGE_CREATE of the n-th message; every 20th has a file, every 10th is a reply to one in its channel."""
    message = _discord_message(number) | {
        "guild_id": str(GUILD),
        "member": _member((number * 13) % PEOPLE),
        "nonce": str(_FIRST_MESSAGE + number),
        "channel_type": 0,
    }
    if number % 10 == 5 and number >= CHANNELS:
        original = _discord_message(number - CHANNELS)
        place = {"message_id": original["id"], "channel_id": original["channel_id"], "guild_id": str(GUILD)}
        message |= {"type": 19, "message_reference": {"type": 0, **place}, "referenced_message": original}
    return message


def _discord_message(number: int) -> Json:
    """A message as a reply quotes it, and as it is by itself but for what only the gateway tells."""
    someone = (number * 7) % PEOPLE
    text = text_of(number)
    channel = str(_FIRST_CHANNEL + number % CHANNELS)
    return {
        "id": str(_FIRST_MESSAGE + number),
        "channel_id": channel,
        "author": _person((number * 13) % PEOPLE),
        "content": text,
        "timestamp": "2026-11-01T19:00:00.123000+00:00",
        "edited_timestamp": None,
        "tts": False,
        "mention_everyone": False,
        "mentions": [{**_person(someone), "member": _member(someone)}] if "<@" in text else [],
        "mention_roles": [],
        "attachments": [_discord_file(number, channel)] if number % 20 == 0 else [],
        "embeds": [],
        "components": [],
        "pinned": False,
        "type": 0,
        "flags": 0,
    }


def _discord_file(number: int, channel: str) -> Json:
    place = f"attachments/{channel}/{_FIRST_MESSAGE + number}/still-{number}.png"
    query = "?ex=6729c1d0&is=67287050&hm=0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0&"
    return {
        "id": str(_FIRST_MESSAGE + number),
        "filename": f"still-{number}.png",
        "size": 68_123,
        "url": f"https://cdn.discordapp.com/{place}{query}",
        "proxy_url": f"https://media.discordapp.net/{place}{query}",
        "width": 1280,
        "height": 720,
        "content_type": "image/png",
        "placeholder": "BhgKBwBIB4iPh3iIeIeIeHh4hw==",
        "placeholder_version": 1,
    }


def telegram_update(number: int) -> Json:
    """The n-th update: a message in one of the groups; every 20th has a photo, every 10th is a reply."""
    message = _telegram_message(number)
    if number % 10 == 5 and number >= CHANNELS:
        message["reply_to_message"] = _telegram_message(number - CHANNELS)
    return {"update_id": 500_000_000 + number, "message": message}


def _telegram_message(number: int) -> Json:
    person = (number * 13) % PEOPLE
    words, entities = _telegram_text(number)
    message: Json = {
        "message_id": 1 + number // CHANNELS,
        "from": {
            "id": 700_000 + person,
            "is_bot": False,
            "first_name": _NAMES[person % len(_NAMES)],
            "last_name": f"{person}",
            "username": f"person{person}",
            "language_code": "en",
        },
        "chat": {
            "id": -1_002_000_000_000 - number % CHANNELS,
            "title": f"Film club {number % CHANNELS}",
            "type": "supergroup",
        },
        "date": 1_793_531_000 + number,
    }
    if number % 20 == 0:
        sizes = ((90, 51, 1_320), (320, 180, 14_800), (1280, 720, 98_100))
        message["photo"] = [
            {
                "file_id": f"AgACAgIAAxkBAAI{number:08d}{width:04d}",
                "file_unique_id": f"AQAD{number:08d}{width:04d}",
                "width": width,
                "height": height,
                "file_size": size,
            }
            for width, height, size in sizes
        ]
        return message | {"caption": words, **({"caption_entities": entities} if entities else {})}
    return message | {"text": words, **({"entities": entities} if entities else {})}


def _telegram_text(number: int) -> tuple[str, list[Json]]:
    """What is said, and what is marked in it; offsets in UTF-16 code units, as Telegram counts."""
    words = text_of(number).replace("<@", "@person").replace(">", "").replace("**", "")
    entities: list[Json] = []
    for kind, sign in (("mention", "@person"), ("url", "https://"), ("bold", "Friday"), ("code", "ffmpeg")):
        place = words.find(sign)
        if place >= 0:
            end = len(words)
            length = next((at for at in range(place, end) if words[at] in " \n`,"), end) - place
            offset = len(words[:place].encode("utf-16-le")) // 2
            entities.append({"type": kind, "offset": offset, "length": length})
    return words, entities
