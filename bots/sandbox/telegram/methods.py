"""The Bot API methods about what is already there: the account, edits, answers, files and chats."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

from bots.sandbox.telegram.arguments import Arguments
from bots.sandbox.telegram.chats import Json, Message
from bots.sandbox.telegram.delivery import DELIVERY
from bots.sandbox.telegram.errors import bad_request
from bots.sandbox.telegram.files import DOWNLOAD_LIMIT
from bots.sandbox.telegram.sending import (
    SENDING,
    caption_fields,
    chat_to_speak_in,
    find_chat,
    read_markup,
    text_fields,
)
from bots.sandbox.telegram.world import CallbackAnswer, World, member

_ACTIONS = frozenset(
    {
        "typing",
        "upload_photo",
        "record_video",
        "upload_video",
        "record_voice",
        "upload_voice",
        "upload_document",
        "choose_sticker",
        "find_location",
        "record_video_note",
        "upload_video_note",
    }
)
_NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same"
    " as a current content and reply markup of the message"
)
_OLD_QUERY = "query is too old and response timeout expired or query ID is invalid"


def get_me(world: World, _arguments: Arguments) -> Json:
    """`getMe`."""
    return world.bot.user() | {
        "can_join_groups": True,
        "can_read_all_group_messages": world.bot.can_read_all_group_messages,
        "supports_inline_queries": False,
        "supports_guest_queries": False,
        "can_connect_to_business": True,
        "has_main_web_app": False,
        "has_topics_enabled": False,
        "allows_users_to_create_topics": False,
        "can_manage_bots": False,
    }


def edit_message_text(world: World, arguments: Arguments) -> Json:
    """`editMessageText`."""
    message = _own_message(world, arguments)
    if "text" not in message.payload:
        raise bad_request("there is no text in the message to edit")
    return _edited(world, message, {"entities": None} | text_fields(world, arguments), arguments)


def edit_message_caption(world: World, arguments: Arguments) -> Json:
    """`editMessageCaption`."""
    message = _own_message(world, arguments)
    if "text" in message.payload:
        raise bad_request("there is no caption in the message to edit")
    empty: Json = {"caption": None, "caption_entities": None}
    return _edited(world, message, empty | caption_fields(world, arguments), arguments)


def edit_message_reply_markup(world: World, arguments: Arguments) -> Json:
    """`editMessageReplyMarkup`."""
    return _edited(world, _own_message(world, arguments), {}, arguments)


def delete_message(world: World, arguments: Arguments) -> bool:
    """`deleteMessage`: its own anywhere, others' in direct chats and where it is an administrator."""
    chat = find_chat(world, arguments)
    message = chat.messages.get(arguments.integer("message_id") or 0)
    if message is None:
        raise bad_request("message to delete not found")
    if chat.kind != "private" and not message.by_bot and chat.status_of(world.bot.id) != "administrator":
        raise bad_request("message can't be deleted")
    world.remove(message)
    return True


def answer_callback_query(world: World, arguments: Arguments) -> bool:
    """`answerCallbackQuery`: once per press, and only for a while."""
    press = world.presses.get(arguments.text("callback_query_id"))
    if press is None or press.expired or press.answer is not None:
        raise bad_request(_OLD_QUERY)
    press.answer = CallbackAnswer(
        arguments.text("text"),
        arguments.flag("show_alert"),
        arguments.text("url"),
        arguments.integer("cache_time") or 0,
    )
    world.pulse.beat()
    return True


def get_file(world: World, arguments: Arguments) -> Json:
    """`getFile`, up to 20 MB."""
    stored = world.files.by_id(arguments.text("file_id"))
    if (stored.file.size or 0) > DOWNLOAD_LIMIT:
        raise bad_request("file is too big")
    return stored.reference() | {"file_path": stored.file_path}


def get_chat(world: World, arguments: Arguments) -> Json:
    """`getChat`."""
    chat = find_chat(world, arguments)
    gifts = dict.fromkeys(
        ("unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription", "gifts_from_channels"),
        chat.kind == "private",
    )
    full = chat.payload() | {"accent_color_id": 0, "max_reaction_count": 11, "accepted_gift_types": gifts}
    if chat.linked is not None:
        full["linked_chat_id"] = chat.linked.id
    if chat.kind in {"group", "supergroup"}:
        full["permissions"] = {right: right not in chat.forbidden for right in _PERMISSIONS}
    return full


def get_chat_member(world: World, arguments: Arguments) -> Json:
    """`getChatMember`."""
    chat = find_chat(world, arguments)
    user = world.users.get(arguments.integer("user_id") or 0)
    if user is None:
        raise bad_request("invalid user_id specified")
    return chat.members.get(user["id"]) or member(user, "member" if chat.kind == "private" else "left")


def get_chat_administrators(world: World, arguments: Arguments) -> list[Json]:
    """`getChatAdministrators`; other bots are left out."""
    chat = find_chat(world, arguments)
    if chat.kind == "private":
        raise bad_request("there are no administrators in the private chat")
    ranks = {"creator", "administrator"}
    admins = [one for one in chat.members.values() if one["status"] in ranks]
    return [one for one in admins if not one["user"]["is_bot"] or one["user"]["id"] == world.bot.id]


def get_business_connection(world: World, arguments: Arguments) -> Json:
    """`getBusinessConnection`."""
    connection = world.connections.get(arguments.text("business_connection_id"))
    if connection is None:
        raise bad_request("business connection not found")
    return connection.payload()


def send_chat_action(world: World, arguments: Arguments) -> bool:
    """`sendChatAction`."""
    chat_to_speak_in(world, arguments)
    if arguments.text("action") not in _ACTIONS:
        raise bad_request("wrong parameter action in request")
    return True


def set_message_reaction(world: World, arguments: Arguments) -> bool:
    """`setMessageReaction`."""
    chat = chat_to_speak_in(world, arguments)
    message = chat.messages.get(arguments.integer("message_id") or 0)
    if message is None:
        raise bad_request("message to react not found")
    wanted = cast("list[Json]", arguments.array("reaction") or [])
    message.reactions[world.bot.id] = [one.get("emoji", "") for one in wanted]
    world.pulse.beat()
    return True


def get_my_commands(world: World, _arguments: Arguments) -> list[Json]:
    """`getMyCommands`, without scopes and languages."""
    return world.commands


def set_my_commands(world: World, arguments: Arguments) -> bool:
    """`setMyCommands`, without scopes and languages."""
    commands = cast("list[Json]", arguments.array("commands") or [])
    if any(not re.fullmatch(r"[a-z0-9_]{1,32}", one.get("command", "")) for one in commands):
        raise bad_request("BOT_COMMAND_INVALID")
    world.commands = commands
    return True


def _own_message(world: World, arguments: Arguments) -> Message:
    chat = find_chat(world, arguments)
    message = chat.messages.get(arguments.integer("message_id") or 0)
    if message is None:
        raise bad_request("message to edit not found")
    has_keyboard_of_its_own = message.sent_markup is not None and "inline_keyboard" not in message.sent_markup
    if not message.by_bot or has_keyboard_of_its_own:
        raise bad_request("message can't be edited")  # only without markup or with inline keyboards: Updating messages
    return message


def _edited(world: World, message: Message, fields: Json, arguments: Arguments) -> Json:
    markup = read_markup(arguments)
    keyboard = (markup or {}).get("inline_keyboard")
    changes = fields | {"reply_markup": {"inline_keyboard": keyboard} if keyboard else None}
    if all(message.payload.get(name) == value for name, value in changes.items()):
        raise bad_request(_NOT_MODIFIED)
    world.revise(message, changes | {"edit_date": world.now()})
    message.sent_markup = markup
    return message.payload


_PERMISSIONS = (
    "can_send_messages",
    "can_send_audios",
    "can_send_documents",
    "can_send_photos",
    "can_send_videos",
    "can_send_video_notes",
    "can_send_voice_notes",
    "can_send_polls",
    "can_send_other_messages",
    "can_add_web_page_previews",
    "can_change_info",
    "can_invite_users",
    "can_pin_messages",
    "can_manage_topics",
)

METHODS: dict[str, Callable[[World, Arguments], Any]] = (
    SENDING
    | DELIVERY
    | {
        "getMe": get_me,
        "editMessageText": edit_message_text,
        "editMessageCaption": edit_message_caption,
        "editMessageReplyMarkup": edit_message_reply_markup,
        "deleteMessage": delete_message,
        "answerCallbackQuery": answer_callback_query,
        "getFile": get_file,
        "getChat": get_chat,
        "getChatMember": get_chat_member,
        "getChatAdministrators": get_chat_administrators,
        "getBusinessConnection": get_business_connection,
        "sendChatAction": send_chat_action,
        "setMessageReaction": set_message_reaction,
        "getMyCommands": get_my_commands,
        "setMyCommands": set_my_commands,
    }
)
