"""People on Telegram who talk, change their minds and take things back, and write down what they did."""

import random

from bots.sandbox.telegram import TelegramSandbox
from bots.sandbox.telegram.chats import Chat, Message
from bots.sandbox.telegram.files import File
from bots.sandbox.telegram.people import Person
from core.ids import SessionId, telegram_session
from tests.torture.book import Book, Said, word


class TelegramCrowd:
    """`act` does one thing, chosen by ``chance``. Groups are lively; direct and business chats say little."""

    def __init__(self, telegram: TelegramSandbox, book: Book, chance: random.Random) -> None:
        self._telegram = telegram
        self._book = book
        self._chance = chance
        self._people = [telegram.user(name) for name in ("Anna", "Bela", "Cleo")]
        self.groups = [telegram.supergroup("Film club", self._people), telegram.forum("Library", self._people)]
        self._said: dict[Chat, list[tuple[Person, Message, Said]]] = {}

    async def open(self) -> None:
        """What has to be there first."""
        owner = self._telegram.user("Owner")
        connection = await owner.connect_business()
        self._topic = await self._people[0].create_topic(self.groups[1], "Novels")
        session = telegram_session(self.groups[1].id)
        self._book.write(Said(session, str(self._topic.id), [""], all_told=True))
        for group in self.groups:
            await self._say(group, self._people[0])
        self.direct = [person.private_chat for person in self._people]
        self.business = [person.business_chat(connection) for person in self._people]

    def places(self) -> list[tuple[SessionId, Person]]:
        """Where somebody may be asked."""
        return [(telegram_session(chat.id), self._people[0]) for chat in self.groups]

    async def act(self) -> None:
        act = self._chance.choices(
            [self._talk, self._talk_aside, self._talk_business, self._edit, self._send_file, self._take_back],
            [50, 2, 4, 20, 4, 3],
        )[0]
        await act()

    async def _talk(self) -> None:
        await self._say(self._chance.choice(self.groups), self._chance.choice(self._people))

    async def _talk_aside(self) -> None:
        person = self._chance.choice(self._people)
        await self._say(person.private_chat, person)

    async def _talk_business(self) -> None:
        place = self._chance.randrange(len(self._people))
        await self._say(self.business[place], self._people[place])

    async def _send_file(self) -> None:
        data = self._chance.randbytes(self._chance.randrange(1, 5000))
        file = File("notes.bin", data, "application/octet-stream")
        await self._say(self._chance.choice(self.groups), self._chance.choice(self._people), file)

    async def _say(self, chat: Chat, person: Person, file: File | None = None) -> None:
        session = telegram_session(chat.id, chat.business.id if chat.business else None)
        self._book.place(session, chat)
        wakes = chat.kind == "private" or self._chance.random() < 0.02
        if wakes and not self._book.may_wake(session):
            if chat.kind == "private":
                return
            wakes = False
        number = self._book.next_word()
        text = word(number, 0)
        spoken = f"@{self._telegram.bot.username} {text}" if wakes else text
        topic = self._topic if chat is self.groups[1] and self._chance.random() < 0.5 else None
        if topic is not None:
            message = await person.say(chat, spoken, topic=topic)
        elif file is not None:
            message = await person.say(chat, spoken, document=file)
        else:
            message = await person.say(chat, spoken)
        data = file.data if file is not None and topic is None else None
        said = Said(session, str(message.id), [text], all_told=True, file=data, wakes=wakes, number=number)
        self._said.setdefault(chat, []).append((person, message, self._book.write(said)))

    async def _edit(self) -> None:
        recent = [one for said in self._said.values() for one in said[-30:]]
        if not recent:
            return
        person, message, said = self._chance.choice(recent)
        said.versions.append(word(said.number, len(said.versions)))
        await person.edit(message, said.versions[-1])

    async def _take_back(self) -> None:
        """Bots are told only of what is deleted in business chats."""
        standing = [one for chat in self.business for one in self._said.get(chat, [])[-30:]]
        if not standing:
            return
        person, message, said = self._chance.choice(standing)
        self._said[message.chat].remove((person, message, said))
        said.gone = True
        await person.delete(message)
