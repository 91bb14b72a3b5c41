"""A conversation, as the real discord.py sees it."""

import struct
import zlib

import discord
import pytest

from bots.sandbox.discord import DiscordSandbox, File, Poll
from bots.sandbox.discord.model import Channel
from bots.sandbox.discord.people import Person
from bots.sandbox.discord.places import Server
from tests.bots.sandbox.discord_client import Listener


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\x80" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


async def test_a_client_logs_in_and_knows_the_guild(
    sandbox: DiscordSandbox, channel: Channel, client: Listener
) -> None:
    assert client.user is not None
    assert str(client.user.id) == sandbox.bot.id
    assert client.application_flags.gateway_message_content_limited
    (guild,) = client.guilds
    (known,) = guild.text_channels
    assert (guild.name, known.name, str(known.id)) == ("Film club", "general", channel.id)
    assert known.permissions_for(guild.me).read_message_history


async def test_a_message_arrives_with_its_author_and_time(channel: Channel, mona: Person, client: Listener) -> None:
    said = await mona.say(channel, f"hello <@{client.application_id}>")
    heard = await client.heard(said.content)
    assert (heard.author.display_name, heard.author.bot, heard.created_at) == ("Mona", False, said.timestamp)
    assert heard.mentions == [client.user]
    assert isinstance(heard.author, discord.Member)


async def test_an_edit_carries_the_whole_message_and_its_time(channel: Channel, mona: Person, client: Listener) -> None:
    said = await mona.say(channel, "one")
    await mona.edit(said, "two")
    (edit,) = await client.events("raw_message_edit")
    assert (edit.message.content, edit.message.edited_at) == ("two", said.edited_timestamp)


async def test_previews_and_pins_are_updates_without_an_edit(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, client: Listener
) -> None:
    said = await mona.say(channel, "see https://example.org/film")
    await sandbox.embed_preview(said)
    await mona.pin(said)
    preview, pin = await client.events("raw_message_edit", 2)
    assert [preview.message.edited_at, pin.message.edited_at] == [None, None]
    assert preview.message.embeds[0].url == "https://example.org/film"
    assert pin.message.pinned
    notice: discord.Message = (await client.events("message", 2))[-1]
    assert (notice.type, notice.content) == (discord.MessageType.pins_add, "")
    assert notice.reference is not None
    assert str(notice.reference.message_id) == said.id


async def test_deletions_come_one_by_one_or_in_bulk(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, client: Listener
) -> None:
    first, second, third = [await mona.say(channel, text) for text in "abc"]
    await mona.delete(first)
    await sandbox.bulk_delete(channel, [second, third])
    (bulk,) = await client.events("raw_bulk_message_delete")
    (single,) = client.all("raw_message_delete")
    assert str(single.message_id) == first.id
    assert {str(item) for item in bulk.message_ids} == {second.id, third.id}
    assert sandbox.history(channel) == []


async def test_a_reply_quotes_and_pings_unless_told_not_to(channel: Channel, mona: Person, client: Listener) -> None:
    said = await mona.say(channel, "question")
    await mona.say(channel, "loud", reply_to=said)
    await mona.say(channel, "quiet", reply_to=said, ping=False)
    await mona.delete(said)
    await mona.say(channel, "late", reply_to=said)
    loud, quiet, late = [await client.heard(text) for text in ("loud", "quiet", "late")]
    assert loud.type is discord.MessageType.reply
    assert [user.display_name for user in loud.mentions] == ["Mona"]
    assert quiet.mentions == []
    assert isinstance(loud.reference and loud.reference.resolved, discord.Message)
    assert isinstance(late.reference and late.reference.resolved, discord.DeletedReferencedMessage)


async def test_a_forward_keeps_what_was_forwarded(channel: Channel, mona: Person, client: Listener) -> None:
    said = await mona.say(channel, "original", files=[File("a.txt", b"text", "text/plain")])
    await mona.say(channel, forward=said)
    await mona.edit(said, "changed")
    forward = await client.until(lambda: next((m for m in client.messages if m.message_snapshots), None))
    assert (forward.content, forward.message_snapshots[0].content) == ("", "original")
    assert forward.message_snapshots[0].attachments[0].filename == "a.txt"
    assert forward.reference is not None
    assert forward.reference.type is discord.MessageReferenceType.forward


@pytest.mark.parametrize("name", ["../../etc/x", "evil\u202egpj.exe", "n" * 300 + ".png", "a b?#%2F.png"])
async def test_a_file_is_fetched_whatever_its_name(channel: Channel, mona: Person, client: Listener, name: str) -> None:
    picture = png(7, 5)
    await mona.say(channel, "look", files=[File(name, picture, "image/png", description="a grey card")])
    (attachment,) = (await client.heard("look")).attachments
    assert (attachment.filename, attachment.width, attachment.height) == (name, 7, 5)
    assert (attachment.size, attachment.content_type) == (len(picture), "image/png")
    assert await attachment.read() == picture


async def test_polls_stickers_and_voice_messages_have_no_text(channel: Channel, mona: Person, client: Listener) -> None:
    assert isinstance(channel.guild, Server)
    wave = channel.guild.sticker("wave", png(1, 1))
    await mona.say(channel, poll=Poll("Which?", ["This", "That"], multiselect=True, emoji=["🍎", None]))
    await mona.say(channel, sticker=wave)
    await mona.say(channel, files=[File("voice-message.ogg", b"OggS", "audio/ogg", duration_secs=1.5, waveform="AAA=")])
    poll, sticker, voice = await client.events("message", 3)
    assert poll.poll is not None
    assert [answer.text for answer in poll.poll.answers] == ["This", "That"]
    assert str(poll.poll.answers[0].emoji) == "🍎"
    assert (sticker.stickers[0].name, sticker.content) == ("wave", "")
    assert voice.flags.voice
    assert voice.attachments[0].duration == 1.5


async def test_a_thread_on_a_message_bears_its_id(channel: Channel, mona: Person, client: Listener) -> None:
    said = await mona.say(channel, "spoilers?")
    thread = await mona.start_thread(channel, "spoilers", message=said)
    await mona.say(thread, "he dies")
    heard = await client.heard("he dies")
    assert thread.id == said.id
    assert isinstance(heard.channel, discord.Thread)
    assert (heard.channel.name, str(heard.channel.parent_id)) == ("spoilers", channel.id)
    starter = next(m for m in client.messages if m.type is discord.MessageType.thread_starter_message)
    assert str(starter.channel.id) == thread.id


async def test_archived_threads_are_listed_and_wake_up_when_spoken_to(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, client: Listener
) -> None:
    thread = await mona.start_thread(channel, "old")
    await sandbox.archive(thread)
    known = client.get_channel(int(channel.id))
    assert isinstance(known, discord.TextChannel)
    assert [str(item.id) async for item in known.archived_threads()] == [thread.id]
    await mona.say(thread, "anybody?")
    assert [str(item.id) for item in await known.guild.active_threads()] == [thread.id]


async def test_direct_messages_have_no_guild(sandbox: DiscordSandbox, mona: Person, client: Listener) -> None:
    await mona.say(sandbox.dm(mona), "psst")
    heard = await client.heard("psst")
    assert heard.guild is None
    await heard.channel.send("yes?")
    assert (await sandbox.bot_message(sandbox.dm(mona))).content == "yes?"


async def test_webhooks_other_bots_and_newcomers_speak_as_what_they_are(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, client: Listener
) -> None:
    await sandbox.webhook(channel, "Feed").say("news", username="@everyone")
    await sandbox.user("Helper", bot=True).say(channel, "beep")
    assert channel.guild is not None
    await mona.join(channel.guild)
    news, beep = await client.heard("news"), await client.heard("beep")
    assert (news.webhook_id, news.author.name) == (news.author.id, "@everyone")
    assert (beep.author.bot, beep.webhook_id) == (True, None)
    joined: discord.Message = (await client.events("message", 3))[-1]
    assert joined.type is discord.MessageType.new_member


async def test_what_the_bot_says_comes_back_and_is_waited_for_once(
    sandbox: DiscordSandbox, channel: Channel, client: Listener
) -> None:
    known = client.get_channel(int(channel.id))
    assert isinstance(known, discord.TextChannel)
    sent = await known.send("one", file=discord.File(__file__, "test.py"))
    await known.send("two")
    assert (await sandbox.bot_message(channel, containing="two")).content == "two"
    first = await sandbox.bot_message(channel)
    assert (first.content, first.attachments[0].file.name) == ("one", "test.py")
    assert (await known.fetch_message(sent.id)).attachments[0].url.startswith(f"http://{sandbox.cdn_host}/attachments/")
    with pytest.raises(TimeoutError):
        await sandbox.bot_message(channel, within=0.01)


async def test_places_come_and_go_while_a_client_is_connected(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, client: Listener
) -> None:
    later = sandbox.guild("Book club")
    await mona.say(later.text_channel("shelf"), "new here")
    assert str((await client.heard("new here")).guild) == "Book club"
    thread = await mona.start_thread(channel, "brief")
    await sandbox.delete_channel(thread)
    await sandbox.delete_channel(channel)
    await sandbox.leave(later)
    await client.events("guild_remove")
    assert [guild.text_channels for guild in client.guilds] == [[]]
    with pytest.raises(discord.NotFound):
        await client.fetch_channel(int(channel.id))
