"""The gateway: sessions that live on, die, and are refused."""

import asyncio
import json
import zlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import discord
import pytest

from bots.sandbox.discord import DiscordSandbox, Intent
from bots.sandbox.discord.model import Channel
from bots.sandbox.discord.people import Person
from tests.bots.sandbox.discord_client import Listener, pointed_at, running


class Wire:
    """A gateway client that speaks the protocol by hand."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket

    async def send(self, op: int, data: object) -> None:
        await self.socket.send_json({"op": op, "d": data})

    async def next(self) -> dict[str, Any]:
        return await self.socket.receive_json(timeout=5)

    async def closed_with(self) -> int | None:
        while not self.socket.closed:
            await self.socket.receive(timeout=5)
        return self.socket.close_code

    async def identify(self, token: str, intents: int = int(Intent.GUILD_MESSAGES)) -> None:
        await self.send(2, {"token": token, "intents": intents, "properties": {}})


@asynccontextmanager
async def wire(sandbox: DiscordSandbox, query: str = "v=10&encoding=json") -> AsyncGenerator[Wire]:
    async with (
        aiohttp.ClientSession() as http,
        http.ws_connect(f"{sandbox.gateway_url}?{query}", compress=0) as socket,
    ):
        yield Wire(socket)


async def test_what_was_missed_is_replayed_after_the_line_was_cut(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, client: Listener
) -> None:
    first = await mona.say(channel, "before")
    await client.heard("before")
    await sandbox.drop_connections()
    second = await mona.say(channel, "while away")
    await mona.edit(second, "while away, edited")
    await mona.delete(first)
    await client.events("resumed")
    assert (sandbox.gateway.identified, sandbox.gateway.resumed) == (1, 1)
    names = [name for name, _ in client.seen if name in ("message", "raw_message_edit", "raw_message_delete")]
    assert names == ["message", "message", "raw_message_edit", "raw_message_delete"]
    assert client.messages[-1].content == "while away"


async def test_a_client_asked_to_reconnect_resumes(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, client: Listener
) -> None:
    await sandbox.ask_to_reconnect()
    await client.events("resumed")
    await mona.say(channel, "still here")
    await client.heard("still here")
    assert sandbox.gateway.identified == 1


async def test_an_invalid_session_means_a_new_one_without_replay(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, client: Listener
) -> None:
    await client.events("ready")
    await sandbox.invalidate_sessions()
    await mona.say(channel, "nobody is told")
    await sandbox.until(lambda: sandbox.gateway.identified == 2)
    await mona.say(channel, "a new start")
    await client.heard("a new start")
    assert [message.content for message in client.messages] == ["a new start"]
    assert [message.content for message in sandbox.history(channel)] == ["nobody is told", "a new start"]


@pytest.mark.parametrize(("code", "sessions"), [(4000, 1), (4009, 2)])
async def test_a_close_code_says_whether_the_session_goes_on(
    sandbox: DiscordSandbox, client: Listener, code: int, sessions: int
) -> None:
    await sandbox.close_connections(code)
    await sandbox.until(lambda: sandbox.gateway.resumed + sandbox.gateway.identified == 2)
    assert sandbox.gateway.identified == sessions
    assert client.is_closed() is False


@pytest.mark.parametrize(("code", "left"), [(1000, 0), (1001, 0), (4000, 1)])
async def test_a_client_that_logs_out_leaves_no_session(sandbox: DiscordSandbox, code: int, left: int) -> None:
    async with wire(sandbox) as line:
        await line.identify(sandbox.token)
        await sandbox.connected()
        await line.socket.close(code=code)
    await sandbox.until(lambda: not sandbox.gateway.connections)
    assert len(sandbox.gateway.sessions) == left


async def test_a_payload_that_breaks_the_library_ends_its_client(
    sandbox: DiscordSandbox, channel: Channel, mona: Person
) -> None:
    client = Listener()
    async with pointed_at(sandbox):
        task = asyncio.create_task(client.start(sandbox.token))
        await sandbox.connected()
        broken = sandbox.payload(await mona.say(channel, "fine")) | {"attachments": [{"id": "1"}]}
        await sandbox.dispatch("MESSAGE_CREATE", broken)
        with pytest.raises(KeyError):
            await task
        await client.close()


async def test_a_privileged_intent_that_is_not_granted_is_refused(channel: Channel) -> None:
    async with DiscordSandbox(granted=Intent.ANY) as sandbox, pointed_at(sandbox):
        client = Listener()
        with pytest.raises(discord.PrivilegedIntentsRequired):
            await client.start(sandbox.token)
        await client.close()


async def test_without_message_content_only_direct_messages_mentions_and_own_words_are_read() -> None:
    blind = discord.Intents(guilds=True, guild_messages=True, dm_messages=True)
    async with DiscordSandbox(granted=Intent.ANY) as sandbox:
        channel = sandbox.guild("Film club").text_channel("general")
        mona = sandbox.user("Mona")
        async with running(sandbox, Listener(blind)) as client:
            secret = await mona.say(channel, "secret", embeds=[{"title": "secret"}])
            await mona.say(channel, f"you, {sandbox.bot.mention}")
            await mona.say(sandbox.dm(mona), "between us")
            known = client.get_channel(int(channel.id))
            assert isinstance(known, discord.TextChannel)
            await known.send("mine")
            heard: list[discord.Message] = await client.events("message", 4)
            assert [message.content for message in heard] == ["", f"you, {sandbox.bot.mention}", "between us", "mine"]
            assert heard[0].embeds == []
            assert (await known.fetch_message(int(secret.id))).content == ""


async def test_intents_that_were_not_asked_for_bring_no_events(
    sandbox: DiscordSandbox, channel: Channel, mona: Person
) -> None:
    async with running(sandbox, Listener(discord.Intents(guilds=True, dm_messages=True))) as client:
        await mona.say(channel, "not for you")
        await mona.say(sandbox.dm(mona), "for you")
        await client.events("message")
        assert [message.guild for message in client.messages] == [None]


async def test_a_wrong_token_is_refused_by_both_doors(sandbox: DiscordSandbox) -> None:
    async with pointed_at(sandbox):
        client = Listener()
        with pytest.raises(discord.LoginFailure):
            await client.start("wrong")
        await client.close()
    async with wire(sandbox) as line:
        await line.identify("wrong")
        assert await line.closed_with() == 4004


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ({"op": 99, "d": None}, 4001),
        ("not json", 4002),
        ("x" * 5000, 4002),
        ({"op": 3, "d": {}}, 4003),
        ({"op": 2, "d": {"intents": 1 << 40}}, 4013),
    ],
)
async def test_nonsense_is_answered_by_a_close_code(sandbox: DiscordSandbox, frame: Any, code: int) -> None:
    async with wire(sandbox) as line:
        assert (await line.next())["op"] == 10
        if isinstance(frame, dict) and code == 4013:
            frame["d"]["token"] = sandbox.token
        await line.socket.send_str(frame if isinstance(frame, str) else json.dumps(frame))
        assert await line.closed_with() == code


async def test_another_api_version_is_refused(sandbox: DiscordSandbox) -> None:
    async with wire(sandbox, "v=5") as line:
        assert await line.closed_with() == 4012


async def test_a_client_without_a_heartbeat_is_closed() -> None:
    async with DiscordSandbox(heartbeat_interval=0.1) as sandbox, wire(sandbox) as line:
        await line.identify(sandbox.token)
        assert await line.closed_with() == 4009
        await sandbox.until(lambda: not sandbox.gateway.sessions)


async def test_a_session_is_resumed_from_the_number_the_client_names(
    sandbox: DiscordSandbox, channel: Channel, mona: Person
) -> None:
    async with wire(sandbox) as line:
        await line.identify(sandbox.token)
        assert (await line.next())["op"] == 10
        ready = await line.next()
        await mona.say(channel, "two")
        await mona.say(channel, "three")
        assert [(await line.next())["s"] for _ in range(2)] == [2, 3]
        await sandbox.drop_connections()
    async with wire(sandbox) as line:
        await line.send(6, {"token": sandbox.token, "session_id": ready["d"]["session_id"], "seq": 2})
        frames = [await line.next() for _ in range(3)]
        assert [frame["t"] for frame in frames] == [None, "MESSAGE_CREATE", "RESUMED"]
        assert [frame["s"] for frame in frames] == [None, 3, 4]
        await line.send(1, 4)
        assert (await line.next())["op"] == 11
        await sandbox.drop_connections()
    async with wire(sandbox) as line:
        await line.send(6, {"token": sandbox.token, "session_id": ready["d"]["session_id"], "seq": 2})
        assert [(await line.next())["op"] for _ in range(2)] == [10, 9]


async def test_the_stream_is_one_zlib_context_flushed_after_each_message(sandbox: DiscordSandbox) -> None:
    async with wire(sandbox, "v=10&encoding=json&compress=zlib-stream") as line:
        await line.identify(sandbox.token)
        inflate = zlib.decompressobj()
        frames: list[dict[str, Any]] = []
        for _ in range(2):
            data = await line.socket.receive_bytes(timeout=5)
            assert data.endswith(b"\x00\x00\xff\xff")
            frames.append(json.loads(inflate.decompress(data)))
        assert [frame["op"] for frame in frames] == [10, 0]
        assert frames[1]["d"]["resume_gateway_url"] == sandbox.gateway_url


async def test_five_thousand_messages_come_once_each_and_in_order(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, client: Listener
) -> None:
    for number in range(5000):
        await mona.say(channel, str(number))
        if number == 2500:
            await sandbox.drop_connections()
    await client.heard("4999")
    assert [message.content for message in client.messages] == [str(number) for number in range(5000)]
