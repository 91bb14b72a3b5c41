"""The Bot API methods that send a message."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from bots.sandbox.telegram.arguments import Arguments
from bots.sandbox.telegram.chats import Chat, Json, Message, Topic
from bots.sandbox.telegram.entities import Entity, utf16_length
from bots.sandbox.telegram.errors import bad_request, forbidden, migrated
from bots.sandbox.telegram.files import File, describe
from bots.sandbox.telegram.payloads import formatted, media
from bots.sandbox.telegram.world import World

MESSAGE_LIMIT = 4096
CAPTION_LIMIT = 1024
_GENERAL_TOPIC = 1


def find_chat(world: World, arguments: Arguments) -> Chat:
    """The chat that `chat_id` names, within the business connection if one is named."""
    name = arguments.text("chat_id")
    if not name:
        raise bad_request("chat_id is empty")
    if connection_id := arguments.text("business_connection_id"):
        connection = world.connections.get(connection_id)
        if connection is None or not connection.is_enabled:
            raise bad_request("business connection not found")
        chats = connection.chats
    else:
        chats = world.chats
    if name.startswith("@"):
        username = name[1:].lower()
        chat = next((one for one in chats.values() if one.face.get("username", "").lower() == username), None)
        chat = chat if chat is not None and chat.kind != "private" else None
    else:
        chat = chats.get(arguments.integer("chat_id") or 0)
    if chat is None or (chat.kind == "private" and not chat.started):
        raise bad_request("chat not found")
    return chat


def chat_to_speak_in(world: World, arguments: Arguments) -> Chat:
    """The same, refused where the bot may not speak."""
    chat = find_chat(world, arguments)
    if chat.migrated_to is not None:
        raise migrated(chat.migrated_to)
    if chat.blocked:
        raise forbidden("bot was blocked by the user")
    status = chat.status_of(world.bot.id)
    if chat.kind != "private" and status == "kicked":
        raise forbidden(f"bot was kicked from the {chat.kind} chat")
    if chat.kind != "private" and status == "left":
        raise forbidden(f"bot is not a member of the {chat.kind} chat")
    if chat.kind == "channel" and status != "administrator":
        raise bad_request("need administrator rights in the channel chat")
    if "can_send_messages" in chat.forbidden and status == "member":
        raise bad_request("not enough rights to send text messages to the chat")
    return chat


def read_words(world: World, arguments: Arguments, name: str) -> tuple[str, list[Entity]]:
    """The text or caption under `name`, parsed."""
    field = "entities" if name == "text" else f"{name}_entities"
    mode = arguments.text("parse_mode")
    if mode and mode.lower() != "html":
        raise bad_request("unsupported parse_mode")
    given = cast("list[Entity]", arguments.array(field) or [])
    return formatted(world, arguments.text(name), html=bool(mode), entities=given)


def text_fields(world: World, arguments: Arguments) -> Json:
    """`text` and `entities`, within the limit of 4096 UTF-16 units after parsing."""
    text, entities = read_words(world, arguments, "text")
    if not text:
        raise bad_request("message text is empty")
    if utf16_length(text) > MESSAGE_LIMIT:
        raise bad_request("message is too long")
    fields: Json = {"text": text} | ({"entities": entities} if entities else {})
    preview = arguments.object("link_preview_options")
    if preview is None and arguments.flag("disable_web_page_preview"):
        preview = {"is_disabled": True}
    return fields | ({"link_preview_options": preview} if preview else {})


def caption_fields(world: World, arguments: Arguments) -> Json:
    """`caption` and `caption_entities`, within the limit of 1024 UTF-16 units after parsing."""
    caption, entities = read_words(world, arguments, "caption")
    if utf16_length(caption) > CAPTION_LIMIT:
        raise bad_request("message caption is too long")
    return ({"caption": caption} if caption else {}) | ({"caption_entities": entities} if entities else {})


def read_markup(arguments: Arguments) -> Json | None:
    """`reply_markup`, its inline buttons checked."""
    markup = arguments.object("reply_markup")
    if not markup:
        return None
    for row in markup.get("inline_keyboard", []):
        for button in row:
            if not button.get("text"):
                raise bad_request('can\'t parse inline keyboard button: Field "text" must be of type String')
            if len(button) < 2:
                raise bad_request(
                    "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard"
                )
            if "callback_data" in button and not 1 <= len(button["callback_data"].encode()) <= 64:
                raise bad_request("BUTTON_DATA_INVALID")
    return markup


def deliver(world: World, chat: Chat, fields: Json, arguments: Arguments) -> Message:
    """Put the bot's message into the chat, as a reply and in a topic where asked."""
    markup = read_markup(arguments)
    topic, thread_id = _topic(chat, arguments)
    reply_to, quote = _replied(world, chat, arguments)
    if chat.kind == "channel":
        sender: Json = {"sender_chat": chat.payload()}
    elif chat.business is not None:
        sender = {"from": chat.business.owner, "sender_business_bot": world.bot.user()}
    else:
        sender = {"from": world.bot.user()}
    if markup and markup.get("inline_keyboard"):
        fields = fields | {"reply_markup": {"inline_keyboard": markup["inline_keyboard"]}}
    if arguments.flag("protect_content"):
        fields = fields | {"has_protected_content": True}
    message = world.compose(chat, fields, sender, reply_to=reply_to, quote=quote, topic=topic)
    if thread_id is not None:
        message.payload["message_thread_id"] = thread_id
    message.sent_markup, message.by_bot = markup, True
    world.spoken.append(message)
    if chat.business is not None:
        world.announce(message)
    world.forward_to_discussion(message)
    world.pulse.beat()
    return message


def _topic(chat: Chat, arguments: Arguments) -> tuple[Topic | None, int | None]:
    thread_id = arguments.integer("message_thread_id")
    if not thread_id:
        return None, None
    if chat.is_forum and thread_id != _GENERAL_TOPIC and (topic := chat.topics.get(thread_id)) is not None:
        if topic.closed:
            raise bad_request("TOPIC_CLOSED")
        return topic, None
    if chat.kind == "supergroup" and not chat.is_forum and thread_id in chat.messages:
        return None, thread_id
    raise bad_request("message thread not found")


def _replied(world: World, chat: Chat, arguments: Arguments) -> tuple[Message | None, str | None]:
    parameters = arguments.object("reply_parameters") or {}
    number = parameters.get("message_id") or arguments.integer("reply_to_message_id")
    if not number:
        return None, None
    place = chat
    if (other := parameters.get("chat_id")) is not None and other != chat.id:
        place = find_chat(world, Arguments({"chat_id": other}, {}))
    replied = place.messages.get(int(number))
    if replied is None:
        if parameters.get("allow_sending_without_reply") or arguments.flag("allow_sending_without_reply"):
            return None, None
        raise bad_request("message to be replied not found")
    quote = parameters.get("quote")
    if quote and quote not in replied.text:
        raise bad_request("QUOTE_TEXT_INVALID")
    return replied, quote


def send_message(world: World, arguments: Arguments) -> Json:
    """`sendMessage`."""
    chat = chat_to_speak_in(world, arguments)
    return deliver(world, chat, text_fields(world, arguments), arguments).payload


def send_medium(kind: str, world: World, arguments: Arguments) -> Json:
    """`sendPhoto` and its kin."""
    chat = chat_to_speak_in(world, arguments)
    fields = _medium(world, kind, arguments.values.get(kind, ""), arguments, fallback=kind)
    if kind == "sticker" and (emoji := arguments.text("emoji")):
        fields["sticker"]["emoji"] = emoji
    if kind not in {"sticker", "video_note"}:
        fields |= caption_fields(world, arguments)
    if arguments.flag("has_spoiler"):
        fields["has_media_spoiler"] = True
    for name in ("title", "performer"):
        if kind == "audio" and arguments.text(name):
            fields["audio"][name] = arguments.text(name)
    return deliver(world, chat, fields, arguments).payload


def send_media_group(world: World, arguments: Arguments) -> list[Json]:
    """`sendMediaGroup`: all parts or none."""
    chat = chat_to_speak_in(world, arguments)
    items = cast("list[Json]", arguments.array("media") or [])
    if not items:
        raise bad_request("there are no media to send")
    if len(items) > 10:
        raise bad_request("too many messages to send as an album")
    album_id = str(13_000_000_000_000_000 + next(world.numbers))
    parts: list[Json] = []
    for item in items:
        kind = item.get("type", "")
        if kind not in {"photo", "video", "document", "audio", "animation"}:
            raise bad_request(f'can\'t parse InputMedia: type "{kind}" is not supported')
        caption = caption_fields(world, Arguments(item, {}))
        parts.append(_medium(world, kind, item.get("media", ""), arguments) | caption)
    return [deliver(world, chat, part | {"media_group_id": album_id}, arguments).payload for part in parts]


def _medium(world: World, kind: str, value: object, arguments: Arguments, fallback: str = "") -> Json:
    """A medium by `attach://` name, by upload under the field's own name, or by `file_id`."""
    name = value.removeprefix("attach://") if isinstance(value, str) and value.startswith("attach://") else fallback
    if name and (upload := arguments.uploads.get(name)) is not None:
        measured = File(
            upload.name,
            upload.data,
            upload.content_type,
            width=arguments.integer("width") or 0,
            height=arguments.integer("height") or 0,
            duration=arguments.integer("duration") or 0,
        )
        return media(world, kind, measured)
    if not isinstance(value, str) or not value:
        raise bad_request(f"there is no {kind.replace('_', ' ')} in the request")
    if value.startswith(("http://", "https://")):
        raise bad_request("failed to get HTTP URL content")
    stored = world.files.by_id(value)
    if stored.kind != kind:
        raise bad_request(f"can't use file of type {stored.kind} as {kind}")
    return describe(world.files, stored)


SENDING: dict[str, Callable[[World, Arguments], Any]] = {
    "sendMessage": send_message,
    "sendMediaGroup": send_media_group,
    "sendPhoto": partial(send_medium, "photo"),
    "sendDocument": partial(send_medium, "document"),
    "sendAudio": partial(send_medium, "audio"),
    "sendVoice": partial(send_medium, "voice"),
    "sendVideo": partial(send_medium, "video"),
    "sendVideoNote": partial(send_medium, "video_note"),
    "sendAnimation": partial(send_medium, "animation"),
    "sendSticker": partial(send_medium, "sticker"),
}
