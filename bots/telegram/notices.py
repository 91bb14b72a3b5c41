"""What Telegram itself says in a chat, its service messages, in neutral English (Bot API, Message)."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Final

import telegram

from bots.telegram.cards import moment, money
from bots.telegram.people import name_of, names_of

# By the member of the message that makes it a notice. {who} is the author, {it} that member's value.
_WORDS: Final[Mapping[str, str]] = {
    "new_chat_title": "{who} changed the chat's name to {it}.",
    "new_chat_photo": "{who} changed the chat's photo.",
    "delete_chat_photo": "{who} removed the chat's photo.",
    "group_chat_created": "{who} created the group.",
    "supergroup_chat_created": "{who} created the supergroup.",
    "channel_chat_created": "{who} created the channel.",
    "message_auto_delete_timer_changed": "{who} changed the time after which messages are deleted.",
    "migrate_to_chat_id": "The group became the supergroup {it}.",
    "migrate_from_chat_id": "The supergroup was the group {it} before.",
    "connected_website": "{who} logged in to {it}.",
    "write_access_allowed": "{who} allowed the bot to write.",
    "passport_data": "{who} shared Telegram Passport data.",
    "boost_added": "{who} boosted the chat {it.boost_count} times.",
    "chat_background_set": "{who} changed the chat's background.",
    "forum_topic_created": "{who} created the topic {it.name}.",
    "forum_topic_closed": "{who} closed the topic.",
    "forum_topic_reopened": "{who} reopened the topic.",
    "general_forum_topic_hidden": "{who} hid the topic General.",
    "general_forum_topic_unhidden": "{who} showed the topic General again.",
    "giveaway_created": "{who} created a giveaway.",
    "giveaway_completed": "A giveaway ended with {it.winner_count} winners.",
    "video_chat_started": "{who} started a video chat.",
    "video_chat_ended": "The video chat ended.",
    "web_app_data": "{who} sent data from the web app {it.button_text}: {it.data}",
    "unique_gift": "{who} sent a unique gift.",
    "gift_upgrade_sent": "{who} paid for the upgrade of a gift.",
    "paid_message_price_changed": "{who} set the price of a message to {it.paid_message_star_count} stars.",
    "direct_message_price_changed": "{who} changed the price of direct messages to the channel.",
    "suggested_post_approved": "{who} approved a suggested post.",
    "suggested_post_approval_failed": "The approval of a suggested post failed.",
    "suggested_post_paid": "A suggested post was paid for.",
    "suggested_post_refunded": "The payment for a suggested post was returned.",
    "poll_option_added": "{who} added an answer to a poll: {it.option_text}",
    "poll_option_deleted": "{who} removed an answer from a poll: {it.option_text}",
}
_OTHERS: Final = (
    "new_chat_members",
    "left_chat_member",
    "video_chat_participants_invited",
    "users_shared",
    "chat_shared",
    "chat_owner_left",
    "chat_owner_changed",
    "managed_bot_created",
    "successful_payment",
    "refunded_payment",
    "gift",
    "suggested_post_declined",
    "checklist_tasks_added",
    "checklist_tasks_done",
    "video_chat_scheduled",
    "proximity_alert_triggered",
    "forum_topic_edited",
)
"""The members that take more than words."""
_TOLD: Final = attrgetter(*_WORDS, *_OTHERS)
"""All of them with one look, as nearly every message has none."""


def is_notice(message: telegram.Message) -> bool:
    """Whether a message says anything that nobody wrote."""
    return any(_TOLD(message))


def notice(message: telegram.Message, *, who: str) -> str:
    """What a message that nobody wrote says; empty for one that somebody wrote. Names in it mention nobody."""
    for member, words in _WORDS.items():
        if value := getattr(message, member):
            return words.format(who=who, it=value)
    return _of_people(message, who) or _of_payments(message, who) or _of_tasks(message, who) or _of_times(message, who)


def _of_people(message: telegram.Message, who: str) -> str:  # noqa: PLR0911 - a table, with a line for each notice
    sender = message.from_user
    if message.new_chat_members:
        alone = sender is not None and [user.id for user in message.new_chat_members] == [sender.id]
        return f"{who} joined the chat." if alone else f"{who} added {names_of(message.new_chat_members)}."
    if left := message.left_chat_member:
        alone = sender is not None and left.id == sender.id
        return f"{who} left the chat." if alone else f"{who} removed {name_of(left) or 'somebody'}."
    if invited := message.video_chat_participants_invited:
        return f"{who} invited {names_of(invited.users)} to a video chat."
    if shared := message.users_shared:
        return f"{who} shared {names_of(shared.users)} with the bot."
    if chat := message.chat_shared:
        return f"{who} shared the chat {chat.title or chat.username or chat.chat_id} with the bot."
    if left_by := message.chat_owner_left:
        heir = name_of(left_by.new_owner) if left_by.new_owner else ""
        return f"The chat's owner left; {heir} is to be the next." if heir else "The chat's owner left."
    if changed := message.chat_owner_changed:
        return f"{name_of(changed.new_owner) or 'Somebody'} is the chat's new owner."
    if managed := message.managed_bot_created:
        return f"{who} created the bot {name_of(managed.bot)}."
    return ""


def _of_payments(message: telegram.Message, who: str) -> str:
    if paid := message.successful_payment:
        return f"{who} paid {money(paid.total_amount, paid.currency)}."
    if refunded := message.refunded_payment:
        return f"{who} got back {money(refunded.total_amount, refunded.currency)}."
    if gift := message.gift:
        return f"{who} sent a gift: {gift.text}" if gift.text else f"{who} sent a gift."
    if declined := message.suggested_post_declined:
        why = f": {declined.comment}" if declined.comment else "."
        return f"{who} declined a suggested post{why}"
    return ""


def _of_tasks(message: telegram.Message, who: str) -> str:
    if added := message.checklist_tasks_added:
        return f"{who} added to a checklist: {', '.join(task.text for task in added.tasks)}"
    if marked := message.checklist_tasks_done:
        listed = marked.checklist_message.checklist if marked.checklist_message else None
        named = {task.id: task.text for task in listed.tasks} if listed else {}
        changes = {"as done": marked.marked_as_done_task_ids, "as not done": marked.marked_as_not_done_task_ids}
        told = [
            f"{', '.join(named.get(task, f'task {task}') for task in ids)} {how}" for how, ids in changes.items() if ids
        ]
        return f"{who} marked {' and '.join(told) or 'tasks'}."
    return ""


def _of_times(message: telegram.Message, who: str) -> str:
    if scheduled := message.video_chat_scheduled:
        return f"{who} scheduled a video chat for {moment(scheduled.start_date)}."
    if near := message.proximity_alert_triggered:
        traveler, watcher = name_of(near.traveler) or "Somebody", name_of(near.watcher) or "somebody"
        return f"{traveler} is within {near.distance} m of {watcher}."
    if edited := message.forum_topic_edited:
        return f"{who} renamed the topic to {edited.name}." if edited.name else f"{who} changed the topic's icon."
    return ""
