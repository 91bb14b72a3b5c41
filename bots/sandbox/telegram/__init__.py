"""A Telegram Bot API server on loopback, with people in it, for the demo and the tests."""

from bots.sandbox.telegram.chats import BusinessConnection, Chat, Message, Topic
from bots.sandbox.telegram.files import File
from bots.sandbox.telegram.payloads import Contact, Poll, Venue
from bots.sandbox.telegram.people import Person
from bots.sandbox.telegram.sandbox import TelegramSandbox
from bots.sandbox.telegram.world import CallbackAnswer, CallbackPress

__all__ = [
    "BusinessConnection",
    "CallbackAnswer",
    "CallbackPress",
    "Chat",
    "Contact",
    "File",
    "Message",
    "Person",
    "Poll",
    "TelegramSandbox",
    "Topic",
    "Venue",
]
