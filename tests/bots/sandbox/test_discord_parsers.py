"""Second opinions: hikari, which shares no code with discord.py, and simcord, which imitates Discord by itself."""

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any, TypeVar

import discord
import hikari
import pytest
import simcord
from discord import ui

from bots.sandbox.discord import DiscordSandbox, File, Poll
from bots.sandbox.discord.model import Channel
from bots.sandbox.discord.people import Person
from bots.sandbox.discord.places import Server
from tests.bots.sandbox.discord_client import Listener, running

E = TypeVar("E", bound=hikari.Event)

HIKARI_INTENTS = hikari.Intents.ALL_UNPRIVILEGED | hikari.Intents.MESSAGE_CONTENT | hikari.Intents.GUILD_MEMBERS


class Hikari:
    """The real hikari client, remembering what it understood."""

    def __init__(self, sandbox: DiscordSandbox) -> None:
        self.bot = hikari.GatewayBot(
            sandbox.token,
            rest_url=sandbox.api_url,
            intents=HIKARI_INTENTS,
            banner=None,
            logs=None,
            suppress_optimization_warning=True,
        )
        self._seen: asyncio.Queue[hikari.Event] = asyncio.Queue()
        self.bot.subscribe(hikari.Event, self._remember)

    async def _remember(self, event: hikari.Event) -> None:
        self._seen.put_nowait(event)

    async def next(self, kind: type[E]) -> E:
        """The next event of a kind, others left out."""
        async with asyncio.timeout(10):
            while True:
                event = await self._seen.get()
                if isinstance(event, kind):
                    return event


async def test_hikari_reads_every_kind_of_message(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, caplog: pytest.LogCaptureFixture
) -> None:
    assert isinstance(channel.guild, Server)
    wave, film = channel.guild.sticker("wave", b"png"), channel.guild.role("film")
    client = Hikari(sandbox)
    await client.bot.start(check_for_updates=False)
    try:
        guild = (await client.next(hikari.GuildAvailableEvent)).guild
        assert (guild.name, guild.owner_id) == ("Film club", int(sandbox.world.owner.id))

        async def understood(said: Awaitable[object]) -> hikari.Message:
            await said
            return (await client.next(hikari.MessageCreateEvent)).message

        text = f"{sandbox.bot.mention} {film.mention} @everyone"
        voice = File("voice-message.ogg", b"OggS", "audio/ogg", duration_secs=1.5, waveform="AAA=")
        plain = await understood(mona.say(channel, text, files=[voice]))
        original = sandbox.history(channel)[-1]
        assert plain.user_mentions_ids == [int(sandbox.bot.id)]
        assert (plain.role_mention_ids, plain.mentions_everyone) == ([int(film.id)], True)
        assert (plain.attachments[0].duration, plain.flags) == (1.5, hikari.MessageFlag.IS_VOICE_MESSAGE)
        assert plain.member is not None

        reply = await understood(mona.say(channel, "reply", reply_to=original))
        assert reply.referenced_message is not None
        assert (reply.type, reply.referenced_message.content) == (hikari.MessageType.REPLY, text)

        forward = await understood(mona.say(channel, forward=original))
        assert (forward.content, forward.message_snapshots[0].content) == (None, text)

        poll = await understood(mona.say(channel, poll=Poll("Which?", ["This", "That"], emoji=["🍎"])))
        assert poll.poll is not None
        assert [answer.poll_media.text for answer in poll.poll.answers] == ["This", "That"]

        assert (await understood(mona.say(channel, sticker=wave))).stickers[0].name == "wave"
        assert (await understood(mona.pin(original))).type is hikari.MessageType.CHANNEL_PINNED_MESSAGE
        assert (await understood(mona.join(channel.guild))).type is hikari.MessageType.GUILD_MEMBER_JOIN
        feed = await understood(sandbox.webhook(channel, "Feed").say("news", embeds=[{"title": "t", "type": "rich"}]))
        assert (feed.webhook_id, feed.member, feed.embeds[0].title) == (feed.author.id, None, "t")
        assert (await understood(mona.say(sandbox.dm(mona), "psst"))).guild_id is None

        await mona.edit(original, "edited")
        assert (await client.next(hikari.MessageUpdateEvent)).message.content == "edited"
        thread = await mona.start_thread(channel, "spoilers", message=original)
        assert (await client.next(hikari.GuildThreadCreateEvent)).thread.id == int(thread.id)
        await mona.react(original, "👍")
        assert (await client.next(hikari.GuildReactionAddEvent)).emoji_name == "👍"
        await mona.delete(original)
        assert (await client.next(hikari.GuildMessageDeleteEvent)).message_id == plain.id
    finally:
        await client.bot.close()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_hikari_reads_every_answer_of_rest_and_presses(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, caplog: pytest.LogCaptureFixture
) -> None:
    assert channel.guild is not None
    client = Hikari(sandbox)
    await client.bot.start(check_for_updates=False)
    try:
        rest, guild_id, channel_id = client.bot.rest, int(channel.guild.id), int(channel.id)
        await mona.start_thread(channel, "spoilers")
        assert (await rest.fetch_application()).flags & hikari.ApplicationFlags.MESSAGE_CONTENT_INTENT_LIMITED
        assert (await rest.fetch_my_user()).is_bot
        assert (await rest.fetch_user(int(mona.id))).global_name == "Mona"
        assert (await rest.fetch_guild(guild_id)).name == "Film club"
        assert (await rest.fetch_channel(channel_id)).name == "general"
        assert [guild.id async for guild in rest.fetch_my_guilds()] == [guild_id]
        assert len(await rest.fetch_guild_channels(guild_id)) == 1
        assert len(await rest.fetch_active_threads(guild_id)) == 1
        assert (await rest.fetch_member(guild_id, int(mona.id))).display_name == "Mona"
        assert (await rest.create_dm_channel(int(mona.id))).recipient.id == int(mona.id)

        row = rest.build_message_action_row().add_interactive_button(hikari.ButtonStyle.PRIMARY, "ok", label="Fine")
        sent = await rest.create_message(channel_id, "Well?", component=row, attachment=hikari.Bytes("x", "a.txt"))
        assert await sent.attachments[0].read() == b"x"
        await rest.add_reaction(channel_id, sent, "👍")
        assert (await rest.fetch_message(channel_id, sent)).reactions[0].is_me
        assert (await rest.edit_message(channel_id, sent, "Well, well?")).edited_timestamp is not None
        assert len(await rest.fetch_messages(channel_id).limit(10)) == 2

        prompt = await sandbox.bot_message(channel)
        interaction = await mona.press_unanswered(prompt, "Fine")
        press = (await client.next(hikari.InteractionCreateEvent)).interaction
        assert isinstance(press, hikari.ComponentInteraction)
        await press.create_initial_response(hikari.ResponseType.MESSAGE_CREATE, "thanks")
        followup = await press.execute("and more")
        assert interaction.answer is not None
        assert [message.content for message in interaction.answer.messages] == ["thanks", followup.content]
        await rest.delete_message(channel_id, sent)
        with pytest.raises(hikari.NotFoundError) as refusal:
            await rest.fetch_message(channel_id, sent)
        assert refusal.value.code == 10008
    finally:
        await client.bot.close()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


class Onlooker(Listener):
    """Answers one question with buttons, and writes down what it saw in words that hold in any Discord."""

    def __init__(self) -> None:
        super().__init__(discord.Intents.all())
        self.notes: list[tuple[object, ...]] = []

    def note(self, *facts: object) -> None:
        self.notes.append(facts)
        self.changed()

    async def on_message(self, message: discord.Message) -> None:
        quoted = message.reference.resolved if message.reference else None
        self.note(
            "message",
            message.type,
            message.clean_content,
            message.author == self.user,
            isinstance(message.author, discord.Member),
            quoted.clean_content if isinstance(quoted, discord.Message) else None,
            [part.content for part in message.message_snapshots],
            [(item.filename, item.size) for item in message.attachments],
            [user == self.user for user in message.mentions],
            message.edited_at,
            len(message.components),
        )
        if message.content == "ask me":
            view = ui.View(timeout=None)
            view.add_item(ui.Button(label="Yes", custom_id="yes"))
            await message.reply("Shall I?", view=view)

    async def on_raw_message_edit(self, event: discord.RawMessageUpdateEvent) -> None:
        new = event.message
        self.note("edit", new.content, new.pinned, new.edited_at is not None, event.guild_id is not None)

    async def on_raw_message_delete(self, event: discord.RawMessageDeleteEvent) -> None:
        self.note("delete", event.guild_id is not None)

    async def on_interaction(self, press: discord.Interaction[Any]) -> None:
        data: Any = press.data
        self.note("press", data["custom_id"], int(data["component_type"]), press.message is not None)
        await press.response.edit_message(content="Done", view=None)


async def in_simcord() -> list[tuple[object, ...]]:
    bot = Onlooker()
    async with simcord.run(bot) as env:
        guild = env.create_guild("Film club")
        channel = guild.create_text_channel("general")
        mona = guild.add_member(env.create_user("mona"))
        bot.notes.clear()
        assert bot.user is not None
        said = await mona.send(channel, f"hello <@{bot.user.id}>", attachments=[("a.txt", b"text")])
        await mona.edit(said, "hello")
        await mona.send(channel, "reply", reply_to=said)
        await mona.forward(said, channel)
        await mona.send(channel, "ask me")
        assert channel.last_message is not None
        await mona.click(channel.last_message, label="Yes")
        await mona.delete(said)
        return bot.notes


async def in_the_sandbox(total: int) -> list[tuple[object, ...]]:
    bot = Onlooker()
    async with DiscordSandbox(bot_name="TestBot") as sandbox:
        channel = sandbox.guild("Film club").text_channel("general")
        mona = sandbox.user("mona")
        async with running(sandbox, bot):
            said = await mona.say(channel, f"hello {sandbox.bot.mention}", files=[File("a.txt", b"text", "text/plain")])
            await mona.edit(said, "hello")
            await mona.say(channel, "reply", reply_to=said)
            await mona.say(channel, forward=said)
            await mona.say(channel, "ask me")
            await mona.press(await sandbox.bot_message(channel), "Yes")
            await mona.delete(said)
            await bot.until(lambda: len(bot.notes) >= total)
            return bot.notes


async def test_simcord_and_the_sandbox_show_a_bot_the_same_conversation() -> None:
    expected = await asyncio.create_task(in_simcord())  # it leaves a context variable behind
    assert await in_the_sandbox(len(expected)) == expected
