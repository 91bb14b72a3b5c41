"""People on Discord who talk, change their minds and take things back, and write down what they did."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from bots.sandbox.discord import DiscordSandbox, File
from bots.sandbox.discord.model import Channel, Message
from bots.sandbox.discord.people import Person
from core.ids import SessionId, discord_session
from tests.torture.book import Book, Said, word

A_MOMENT = timedelta(milliseconds=2)
"""Nobody edits faster; the log tells edits apart by the millisecond."""


MOST_UNHEARD = 80
MOST_STANDING = 100
"""Together these stay below the 200 newest messages of a channel, which are looked at again for changes."""


class DiscordCrowd:
    """`act` does one thing, chosen by ``chance``, in channels, threads and, seldom, direct messages."""

    def __init__(
        self, discord: DiscordSandbox, book: Book, chance: random.Random, *, heard: Callable[[], bool]
    ) -> None:
        """``heard``: whether the bot knows by now what it missed."""
        self._discord = discord
        self._book = book
        self._chance = chance
        self._people = [discord.user(name) for name in ("Mona", "Jiro", "Kofi")]
        self._guild = discord.guild("Film club")
        self._rooms = [self._guild.text_channel(name) for name in ("general", "films", "books")]
        self._standing: list[tuple[Person, Message, Said]] = []
        self._threads = 0
        self._heard = heard
        self._unheard = 0

    async def open(self) -> None:
        """What has to be heard before the first kill: a bot does not ask for what was before its first start, and knows
        of a direct chat, and takes questions for a session, only when it has heard something there."""
        for room in self._rooms[:2]:
            await self._start_thread(room)
        for room in self._rooms:
            await self._say(room, self._people[0])
        for person in self._people:
            await self._say(self._discord.dm(person), person)

    def places(self) -> list[tuple[SessionId, Person]]:
        """Where somebody may be asked."""
        return [(discord_session(room.id), self._people[0]) for room in self._rooms]

    async def act(self) -> None:
        if self._heard():
            self._unheard = 0
        elif self._unheard > MOST_UNHEARD:
            return
        self._unheard += 1
        act = self._chance.choices(
            [self._talk, self._talk_aside, self._edit, self._send_file, self._take_back, self._take_many, self._branch],
            [60, 2, 20, 4, 6, 1, 0.3],
        )[0]
        await act()

    async def _talk(self) -> None:
        await self._say(self._chance.choice(self._rooms), self._chance.choice(self._people))

    async def _talk_aside(self) -> None:
        person = self._chance.choice(self._people)
        await self._say(self._discord.dm(person), person)

    async def _send_file(self) -> None:
        data = self._chance.randbytes(self._chance.randrange(1, 5000))
        await self._say(self._chance.choice(self._rooms), self._chance.choice(self._people), data)

    async def _branch(self) -> None:
        if self._threads < 5:
            await self._start_thread(self._chance.choice(self._rooms[:3]))

    async def _start_thread(self, room: Channel) -> None:
        """Discord writes a notice into the channel, which is a message too."""
        self._threads += 1
        thread = await self._people[0].start_thread(room, f"thread {self._threads}")
        self._book.place(discord_session(thread.id), thread)
        for notice in self._discord.history(room):
            session = discord_session(room.id)
            if notice.id not in self._book.said.get(session, {}) and notice.author is not self._discord.bot:
                self._book.write(Said(session, notice.id, [""], all_told=False))
        self._rooms.append(thread)

    async def _say(self, place: Channel, person: Person, data: bytes | None = None) -> None:
        session = discord_session(place.id)
        self._book.place(session, place)
        wakes = place.guild is None or self._chance.random() < 0.02
        if wakes and not self._book.may_wake(session):
            if place.guild is None:
                return
            wakes = False
        number = self._book.next_word()
        text = word(number, 0)
        spoken = f"<@{self._discord.bot.id}> {text}" if wakes else text
        files = [File("notes.bin", data, "application/octet-stream")] if data is not None else []
        message = await person.say(place, spoken, files=files)
        said = Said(session, message.id, [text], all_told=False, file=data, wakes=wakes, number=number)
        self._standing = [*self._standing[-MOST_STANDING:], (person, message, self._book.write(said))]

    async def _edit(self) -> None:
        if not self._standing:
            return
        person, message, said = self._chance.choice(self._standing)
        if message.edited_timestamp is not None and datetime.now(UTC) - message.edited_timestamp < A_MOMENT:
            return
        said.versions.append(word(said.number, len(said.versions)))
        await person.edit(message, said.versions[-1])

    async def _take_back(self) -> None:
        if self._standing:
            person, message, said = self._standing.pop(self._chance.randrange(len(self._standing)))
            said.gone = True
            await person.delete(message)

    async def _take_many(self) -> None:
        """A moderation bot deletes several messages of a channel at once."""
        room = self._chance.choice(self._rooms)
        there = [one for one in self._standing if one[1].channel is room][-5:]
        if len(there) < 2:
            return
        self._standing = [one for one in self._standing if one not in there]
        for _, _, said in there:
            said.gone = True
        await self._discord.bulk_delete(room, [message for _, message, _ in there])
