"""REST: pages, refusals, limits and lost answers."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import discord
import httpx
import pytest

from bots.sandbox.discord import CdnFault, DiscordSandbox, File, Permission
from bots.sandbox.discord.model import Channel
from bots.sandbox.discord.people import Person
from tests.bots.sandbox.discord_client import Listener


@pytest.fixture
async def http(sandbox: DiscordSandbox) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bot {sandbox.token}"}
    async with httpx.AsyncClient(base_url=sandbox.api_url, headers=headers, trust_env=False) as client:
        yield client


def room(client: Listener, channel: Channel) -> discord.TextChannel:
    found = client.get_channel(int(channel.id))
    assert isinstance(found, discord.TextChannel)
    return found


def one_error(answer: httpx.Response, *path: str) -> str:
    assert (answer.status_code, answer.json()["code"]) == (400, 50035)
    tree: Any = answer.json()["errors"]
    for part in path:
        tree = tree[part]
    return tree["_errors"][0]["code"]


async def test_history_is_paged_newest_first(channel: Channel, mona: Person, http: httpx.AsyncClient) -> None:
    ids = [(await mona.say(channel, str(number))).id for number in range(10)]
    route = f"/channels/{channel.id}/messages"

    async def page(**query: str) -> list[int]:
        answer = await http.get(route, params=query)
        assert answer.headers["Content-Type"] == "application/json"
        return [ids.index(message["id"]) for message in answer.json()]

    assert await page(limit="3") == [9, 8, 7]
    assert await page(limit="3", before=ids[7]) == [6, 5, 4]
    assert await page(limit="3", after=ids[1]) == [4, 3, 2]
    assert await page(limit="3", around=ids[5]) == [6, 5, 4]
    assert one_error(await http.get(route, params={"limit": "101"}), "limit") == "NUMBER_TYPE_MAX"


async def test_a_long_history_is_read_oldest_first_by_the_library(
    channel: Channel, mona: Person, client: Listener
) -> None:
    said = [await mona.say(channel, str(number)) for number in range(250)]
    read = [m.content async for m in room(client, channel).history(limit=None, after=discord.Object(int(said[9].id)))]
    assert read == [str(number) for number in range(10, 250)]


async def test_a_message_that_is_gone_is_unknown(channel: Channel, mona: Person, client: Listener) -> None:
    said = await mona.say(channel, "soon gone")
    await mona.delete(said)
    with pytest.raises(discord.NotFound) as refusal:
        await room(client, channel).fetch_message(int(said.id))
    assert refusal.value.code == 10008
    with pytest.raises(discord.NotFound):
        await client.fetch_channel(1)


async def test_rights_taken_away_are_missed(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, client: Listener
) -> None:
    place, said = room(client, channel), await mona.say(channel, "hello")
    await sandbox.deny(channel, Permission.SEND_MESSAGES | Permission.READ_MESSAGE_HISTORY)
    await client.events("guild_channel_update")
    assert not place.permissions_for(place.guild.me).send_messages
    assert [m async for m in place.history()] == []
    for attempt in (place.send("no"), place.fetch_message(int(said.id))):
        with pytest.raises(discord.Forbidden) as refusal:
            await attempt
        assert refusal.value.code == 50013
    await sandbox.deny(channel, Permission.VIEW_CHANNEL)
    await mona.say(channel, "unheard")
    with pytest.raises(discord.Forbidden) as refusal:
        await client.fetch_channel(place.id)
    assert refusal.value.code == 50001
    await sandbox.deny(channel, Permission.NONE)
    await place.send("again")
    assert [message.content for message in client.messages] == ["hello"] or await client.heard("again")
    assert "unheard" not in [message.content for message in client.messages]


async def test_somebody_else_s_words_cannot_be_edited(channel: Channel, mona: Person, http: httpx.AsyncClient) -> None:
    said = await mona.say(channel, "mine")
    answer = await http.patch(f"/channels/{channel.id}/messages/{said.id}", json={"content": "yours"})
    assert (answer.status_code, answer.json()["code"]) == (403, 50005)


@pytest.mark.parametrize(
    ("body", "path", "code"),
    [
        ({"content": "x" * 2001}, ["content"], "BASE_TYPE_MAX_LENGTH"),
        ({"content": "x", "nonce": "n" * 26}, ["nonce"], "BASE_TYPE_MAX_LENGTH"),
        ({"content": "x", "message_reference": {"message_id": 1}}, ["message_reference"], "REPLIES_UNKNOWN_MESSAGE"),
        (
            {"content": "x", "components": [{"type": 1, "components": [{"type": 2, "custom_id": "x" * 101}]}]},
            ["components", "0", "components", "0", "custom_id"],
            "BASE_TYPE_BAD_LENGTH",
        ),
        (
            {"content": "x", "components": [{"type": 1, "components": [{"type": 2, "custom_id": "a"}] * 2}]},
            ["components", "0", "components", "1", "custom_id"],
            "COMPONENT_CUSTOM_ID_DUPLICATED",
        ),
    ],
)
async def test_what_is_beyond_a_limit_is_named(
    channel: Channel, http: httpx.AsyncClient, body: Any, path: list[str], code: str
) -> None:
    assert one_error(await http.post(f"/channels/{channel.id}/messages", json=body), *path) == code


async def test_an_empty_message_and_broken_json_are_refused(channel: Channel, http: httpx.AsyncClient) -> None:
    route = f"/channels/{channel.id}/messages"
    assert (await http.post(route, json={"content": ""})).json()["code"] == 50006
    assert (await http.post(route, content=b"{")).json()["code"] == 50109
    assert (await http.get("/no/such/route")).json() == {"message": "404: Not Found", "code": 0}


async def test_a_reply_to_what_is_gone_can_be_let_through(channel: Channel, http: httpx.AsyncClient) -> None:
    reference = {"message_id": 1, "fail_if_not_exists": False}
    answer = await http.post(f"/channels/{channel.id}/messages", json={"content": "x", "message_reference": reference})
    assert (answer.json()["type"], "message_reference" in answer.json()) == (0, False)


async def test_allowed_mentions_decide_who_is_pinged(
    channel: Channel, mona: Person, client: Listener, sandbox: DiscordSandbox
) -> None:
    text = f"{mona.mention} @everyone"
    said = await mona.say(channel, "hey")
    place = room(client, channel)
    loud = await place.send(text)
    still = await place.send(text, allowed_mentions=discord.AllowedMentions.none())
    quiet = await (await client.heard(said.content)).reply("re", mention_author=False)
    assert ([user.id for user in loud.mentions], loud.mention_everyone) == ([int(mona.id)], True)
    assert (still.mentions, still.mention_everyone, quiet.mentions) == ([], False, [])


async def test_a_nonce_makes_a_repeated_post_harmless(
    sandbox: DiscordSandbox, channel: Channel, client: Listener
) -> None:
    sandbox.lose_answer("POST /channels/", times=1, status=500)
    sent = await room(client, channel).send("once", nonce="part-1")
    assert [message.content for message in sandbox.history(channel)] == ["once"]
    assert str(sent.id) == sandbox.history(channel)[0].id
    assert [call.json["nonce"] for call in sandbox.calls if call.method == "POST"] == ["part-1", "part-1"]


async def test_a_rate_limit_is_waited_for_only_as_the_api_words_it(
    sandbox: DiscordSandbox, channel: Channel, client: Listener
) -> None:
    place, clock = room(client, channel), asyncio.get_running_loop().time
    began = clock()
    sandbox.rate_limit("POST /channels/", 0.3)
    await place.send("waited")
    assert clock() - began >= 0.3
    sandbox.rate_limit("POST /channels/", 0.3, via=False)
    with pytest.raises(discord.HTTPException) as refusal:
        await place.send("banned")
    assert refusal.value.status == 429


async def test_a_429_carries_all_that_the_reference_names(
    sandbox: DiscordSandbox, channel: Channel, http: httpx.AsyncClient
) -> None:
    sandbox.rate_limit("/users/@me", 1.25, is_global=True)
    limited, normal = await http.get("/users/@me"), await http.get("/users/@me")
    assert limited.json() == {"message": "You are being rate limited.", "retry_after": 1.25, "global": True}
    assert (limited.headers["Retry-After"], limited.headers["Via"]) == ("2", "1.1 google")
    assert limited.headers["X-RateLimit-Scope"] == "global"
    wanted = ("Limit", "Remaining", "Reset", "Reset-After", "Bucket")
    assert all(f"X-RateLimit-{name}" in normal.headers for name in wanted)


async def test_too_many_requests_are_limited_without_being_told_to() -> None:
    async with DiscordSandbox(requests_per_second=2) as sandbox:
        headers = {"Authorization": f"Bot {sandbox.token}"}
        async with httpx.AsyncClient(base_url=sandbox.api_url, headers=headers, trust_env=False) as http:
            statuses = [(await http.get("/users/@me")).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]


async def test_a_cut_connection_is_no_answer(sandbox: DiscordSandbox, http: httpx.AsyncClient) -> None:
    sandbox.fail("/users/@me", 0)
    with pytest.raises(httpx.RemoteProtocolError):
        await http.get("/users/@me")
    sandbox.fail("/users/@me", 503)
    assert (await http.get("/users/@me")).status_code == 503


async def test_an_answer_may_be_slow(sandbox: DiscordSandbox, http: httpx.AsyncClient) -> None:
    sandbox.slow("/users/@me", 30)
    with pytest.raises(httpx.ReadTimeout):
        await http.get("/users/@me", timeout=0.05)
    assert (await http.get("/users/@me")).json()["bot"]


async def test_a_direct_channel_is_opened_once_and_may_be_closed_to_the_bot(
    sandbox: DiscordSandbox, mona: Person, http: httpx.AsyncClient
) -> None:
    first, second = [(await http.post("/users/@me/channels", json={"recipient_id": int(mona.id)})).json() for _ in "ab"]
    assert (first["id"], first["type"]) == (second["id"], 1)
    mona.accepts_dms = False
    answer = await http.post(f"/channels/{first['id']}/messages", json={"content": "hi"})
    assert (answer.status_code, answer.json()["code"]) == (403, 50007)
    assert sandbox.history(sandbox.dm(mona)) == []


async def test_own_messages_are_edited_reacted_to_and_deleted(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, client: Listener
) -> None:
    place = room(client, channel)
    sent = await place.send("one", file=discord.File(__file__, "a.txt"))
    edited = await sent.edit(content="two", attachments=[])
    assert (edited.content, edited.attachments, edited.edited_at is not None) == ("two", [], True)
    await sent.add_reaction("👍")
    assert sandbox.history(channel)[0].reactions == {"👍": [sandbox.bot]}
    async with place.typing():
        pass
    await sent.delete()
    with pytest.raises(discord.NotFound):
        await sent.delete()


async def test_dead_links_live_again_when_the_message_is_fetched(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, client: Listener
) -> None:
    await mona.say(channel, "look", files=[File("a.txt", b"text", "text/plain")])
    heard = await client.heard("look")
    assert await heard.attachments[0].read() == b"text"
    sandbox.expire_links()
    with pytest.raises(discord.NotFound):
        await heard.attachments[0].read()
    sandbox.expire_links(status=403)
    with pytest.raises(discord.Forbidden):
        await heard.attachments[0].read()
    fresh = await room(client, channel).fetch_message(heard.id)
    assert await fresh.attachments[0].read() == b"text"
    assert len(sandbox.downloads) == 4


async def test_downloads_misbehave_on_demand(
    sandbox: DiscordSandbox, channel: Channel, mona: Person, http: httpx.AsyncClient
) -> None:
    said = await mona.say(channel, files=[File("a.txt", b"text", "text/plain", size=700 << 20)])
    (shown,) = sandbox.payload(said)["attachments"]
    assert shown["size"] == 700 << 20
    sandbox.cdn_fault(CdnFault(redirect_to="http://127.0.0.1:1/"))
    assert (await http.get(shown["url"])).headers["Location"] == "http://127.0.0.1:1/"
    sandbox.cdn_fault(CdnFault(content_type="text/html", extra=100_000))
    longer = await http.get(shown["url"])
    assert (longer.headers["Content-Type"], len(longer.content)) == ("text/html", 100_004)
    sandbox.cdn_fault(CdnFault(cut=True))
    with pytest.raises(httpx.RemoteProtocolError):
        await http.get(shown["url"])
    sandbox.cdn_fault(CdnFault(endless=True))
    received = 0
    async with http.stream("GET", shown["url"]) as response:
        async for chunk in response.aiter_bytes():
            received += len(chunk)
            if received > 1 << 20:
                break
    assert (await http.get(shown["url"])).content == b"text"


async def test_answers_can_be_no_json_and_tell_a_time_that_is_off(
    sandbox: DiscordSandbox, http: httpx.AsyncClient
) -> None:
    sandbox.garble("/users/@me")
    with pytest.raises(ValueError, match="Expecting value"):
        (await http.get("/users/@me")).json()
    sandbox.shift_clock(-3600)
    told = parsedate_to_datetime((await http.get("/users/@me")).headers["Date"])
    assert abs(datetime.now(UTC) - told - timedelta(hours=1)) < timedelta(seconds=5)


async def test_the_owner_may_change_switches_and_logins_may_run_out(
    sandbox: DiscordSandbox, http: httpx.AsyncClient
) -> None:
    sandbox.world.switches["bot_public"] = False
    sandbox.world.logins_left = 3
    assert (await http.get("/applications/@me")).json()["bot_public"] is False
    assert (await http.get("/gateway/bot")).json()["session_start_limit"]["remaining"] == 3
